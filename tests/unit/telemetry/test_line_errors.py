"""Why a line is not a record."""

from __future__ import annotations

import json

import pytest

from surefoot.telemetry.line_errors import did_you_mean, explain_no_record, explain_not_json, json_type, value_at
from surefoot.telemetry.schema import VERSION, EpisodeRecord


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b'{"a": 1', "torn: 7 bytes without a line end"),
        (b'{"a": NaN}\n', "NaN at byte 6 is not JSON; write null and name it in nonfinite"),
        (bytes(range(128, 200)) + b"\n", "not text (73 bytes)"),
        (b"{a: 1}\n", "not JSON: reason"),
    ],
)
def test_what_is_no_json_is_explained(line: bytes, words: str) -> None:
    assert words in explain_not_json(line, "reason")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({}, "no version"),
        ({"v": 2}, "it must be a string such as"),
        ({"v": "9.0.0"}, "version 9.0.0 is unknown"),
        ({"v": VERSION, "kind": "updat"}, "did you mean 'update'?"),
        ({"v": VERSION, "kind": "end", "run": "r", "seq": 1, "t": 0.0, "env_steps": 0}, "field 'updates' is missing"),
    ],
)
def test_an_object_that_is_no_record_is_explained(raw: dict[str, object], words: str) -> None:
    assert words in explain_no_record(json.dumps(raw).encode(), raw)


def test_values_are_found_by_their_dotted_name() -> None:
    record = EpisodeRecord(
        v=VERSION,
        run="r",
        seq=1,
        t=0.0,
        env_steps=0,
        updates=0,
        return_=None,
        length=3,
        env=0,
        nonfinite={"a.b": "nan"},
    )
    assert value_at(record, "length") == 3
    assert value_at(record, "nonfinite.a.b") == "nan"
    assert value_at(record, "return") is None
    assert value_at(record, "length.x") is None


def test_the_closest_name_is_suggested_only_if_it_is_close() -> None:
    assert did_you_mean("entrpy", ["entropy", "loss"]) == "; did you mean 'entropy'?"
    assert did_you_mean("zzz", ["entropy", "loss"]) == ""


def test_json_types_have_their_json_names() -> None:
    assert [json_type(x) for x in (None, True, 1, "a", [])] == ["null", "true or false", "number", "string", "list"]
