"""Whatever an old log holds, it is migrated or told; and what 1.1 can say, the way there and back keeps."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.compat.townlet import records as old
from surefoot.compat.townlet.record_writer import flat_lines
from surefoot.telemetry.reader import LineProblem, read_line
from surefoot.telemetry.schema import decode

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
KEYS = st.sampled_from(
    [*old.BASE, *old.LATE, *old.CONFLICT, *old.NEW_IN_1_1, *old.SOCIAL, *old.ANNEAL_NUMBERS, *old.ANNEAL_WORDS]
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
LINES = st.dictionaries(KEYS | st.text(max_size=8), ANYTHING, max_size=12)


@given(LINES, st.sampled_from(old.VERSIONS), st.integers(1, 10**9), st.floats(0, 1e9))
@settings(max_examples=200)
def test_migration_is_total(line: dict[str, Any], version: old.Version, number: int, before: float):
    before_it = dict(line)
    update = old.migrate(line, version, number=number, before=before)
    assert repr(line) == repr(before_it), "a pure function"
    again = decode(msgspec.json.encode(update))
    assert again == update
    old.errors(line, version)
    old.line_warnings(line, version)


@given(LINES, st.sampled_from([1.0, 1.1, 1.2, 1.3, "1.1", None]))
@settings(max_examples=100)
def test_every_line_is_a_record_or_a_problem_with_its_number(line: dict[str, Any], version: Any):
    item = read_line("log", 7, json.dumps(line | {"telemetry_version": version}).encode() + b"\n")
    assert not isinstance(item, LineProblem) or (item.line, bool(item.message)) == (7, True)


@st.composite
def valid_1_1(draw: st.DrawFn) -> dict[str, Any]:
    keys = [*old.BASE, *old.CONFLICT, *old.NEW_IN_1_1]
    keys += [key for key in (*old.LATE, *old.SOCIAL) if draw(st.booleans())]
    line: dict[str, Any] = {key: draw(NUMBERS) for key in keys}
    line["steps"] = float(draw(st.integers(0, 2**53)))
    line["epoch"] = float(draw(st.integers(1, 1000)))
    line["epoch_duration_sec"] = draw(st.floats(0, 1e9))
    return line | {"data_mode": draw(st.sampled_from(old.DATA_MODES)), "telemetry_version": 1.1}


@given(valid_1_1())
@settings(max_examples=100)
def test_there_and_back_changes_nothing(line: dict[str, Any]):
    assert old.errors(line, "1.1") == []
    update = old.migrate(line, "1.1", number=1)
    assert flat_lines(update, offset=99) == [line]
