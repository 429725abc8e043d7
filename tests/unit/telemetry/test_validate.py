import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from surefoot.errors import TelemetryError
from surefoot.telemetry.validate import MOST_MISTAKES, FileReport, validate, validate_lines
from surefoot.telemetry.writer import Recorder

SAMPLES = Path(__file__).parents[2] / "samples" / "telemetry"
LINES = (SAMPLES / "v2.0" / "full.ndjson").read_bytes().splitlines(keepends=True)


def changed(line: bytes, **fields: Any) -> bytes:
    raw = json.loads(line) | fields
    return json.dumps({name: x for name, x in raw.items() if x is not ...}).encode() + b"\n"


def report_on(*lines: bytes, strict: bool = False) -> FileReport:
    return validate_lines("x", lines, strict=strict)


def messages(*lines: bytes, strict: bool = False) -> list[tuple[int, str]]:
    return [(mistake.line, mistake.message) for mistake in report_on(*lines, strict=strict).mistakes]


def of_kind(kind: str) -> bytes:
    return next(line for line in LINES if f'"kind":"{kind}"'.encode() in line)


@pytest.mark.parametrize("file", sorted(SAMPLES.glob("v*/*.ndjson")), ids=lambda f: f"{f.parent.name}/{f.stem}")
def test_samples_are_valid_but_for_what_they_are_made_to_show(file: Path):
    (report,) = validate(file, strict=file.stem != "unversioned")
    old = file.parent.name != "v2.0"
    wrong = {"crash": 1, "nan": 2 if old else 0}.get(file.stem, 0)
    assert (report.errors, report.warnings) == (wrong, 0)
    assert report.lines == len(file.read_bytes().splitlines())
    assert report.records == report.lines - wrong


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b"hello\n", "not JSON: JSON is malformed"),
        (b"[1]\n", "a JSON list; every line is one JSON object"),
        (b"null\n", "a JSON null; every line is one JSON object"),
        (b"{}\n", 'no version; a record has "v": "2.0.0", or "telemetry_version": 1.1 in older ones'),
        (b"\x1f\x8b\x00\xff\n", "not text (5 bytes); is the file compressed, or not a record?"),
        (b'{"a":' * 5000 + b"\n", "nested too deep to be read; a record has at most a few levels"),
        (b'{"v":"3.0.0"}\n', "version 3.0.0 is unknown; known versions are 1.0, 1.1, 1.2 and 2.x"),
        (b'{"v":2.0}\n', 'v is 2.0; it must be a string such as "2.0.0"'),
        (b'{"telemetry_version":1.9}\n', "telemetry_version 1.9 is unknown; known versions are 1.0, 1.1, 1.2"),
        (changed(of_kind("update"), t=...), "field 't' is missing"),
        (changed(of_kind("update"), m=..., n={}), "field 'm' is missing"),
        (changed(of_kind("update"), env_steps=1.5), "env_steps is 1.5: expected int, got float"),
        (changed(of_kind("update"), env_steps=-1), "env_steps is -1: expected int >= 0"),
        (changed(of_kind("update"), m={"loss": "x"}), 'm[...] is {"loss": "x"}: expected float | null, got str'),
        (changed(of_kind("end"), reason="bored"), "one of finished, interrupted, error, diverged"),
        (changed(of_kind("update"), kind="updat"), 'kind is "updat"; did you mean \'update\'?; kinds are run, update'),
        (of_kind("update").replace(b'"t":', b'"t":NaN,"x":'), "is not JSON; write null and name it in nonfinite"),
        (of_kind("update").replace(b'"t":', b'"t":1e999,"x":'), "out of range"),
        (changed(of_kind("update"), nonfinite={"m.loss": "nan"}), "nonfinite names m.loss, but the number is there"),
        (changed(of_kind("update"), nonfinite={"m.x": "oops"}), "nonfinite.m.x is 'oops'; it must be 'nan', 'inf' or '-inf'"),
    ],
)  # fmt: skip
def test_a_wrong_line_is_told_with_what_would_be_right(line: bytes, sentence: str):
    header = LINES[0]
    report = report_on(header, line, LINES[-1])
    (mistake,) = [m for m in report.mistakes if m.weight == "error"]
    assert mistake.line == 2
    assert sentence in mistake.message
    assert str(mistake) == f"x:2: {mistake.message}"
    assert len(mistake.message) < 200


def test_a_line_twice_is_an_error_and_a_gap_a_warning():
    assert messages(*LINES[:3], LINES[2], *LINES[3:]) == [
        (4, "seq is 3 after 3; it must increase: two writers, or duplicate lines")
    ]
    report = report_on(*LINES[:3], *LINES[6:])
    assert (report.errors, report.warnings) == (0, 1)
    assert report.mistakes[0].message == "seq jumps from 3 to 7; 3 lines are missing"


def test_two_runs_in_one_file_are_told():
    assert "a record is of one run" in messages(*LINES[:-1], changed(LINES[-1], run="other"))[0][1]


def test_steps_that_go_back_are_told():
    updates = [line for line in LINES if b'"kind":"update"' in line]
    lines = [LINES[0], changed(updates[1], seq=2), changed(updates[0], seq=3), changed(LINES[-1], seq=4)]
    assert [message.split(";")[0] for _, message in messages(*lines)] == [
        "updates is 1 after 2",
        "env_steps is 64 after 128",
    ]


def test_a_record_without_an_end_is_a_warning():
    report = report_on(*LINES[:-1])
    assert (report.errors, report.warnings) == (0, 1)
    assert "no end record" in report.mistakes[0].message


def test_a_torn_tail_is_an_error_even_if_what_is_there_is_whole():
    assert "torn" in messages(*LINES[:-1], LINES[-1].rstrip(b"\n"))[0][1]
    assert "torn" in messages(*LINES[:-1], LINES[-1][:-5])[0][1]


@pytest.mark.parametrize("lines", [[], [b"\n"]])
def test_an_empty_record_has_an_answer_with_a_line(lines: list[bytes]):
    assert (1, "the file has no record; the first line is a header of version 2.0.0") in messages(*lines)


def test_strict_finds_typos():
    update = json.loads(of_kind("update"))
    update["m"]["polcy_loss"] = 1.0
    update["m"]["my_own_number"] = 1.0
    lines = [LINES[0], changed(of_kind("update"), seq=2, m=update["m"], episode={}), changed(LINES[-1], seq=3)]
    assert messages(*lines) == []
    assert messages(*lines, strict=True) == [
        (2, "field 'episode' is unknown; did you mean 'episodes'?"),
        (2, "number 'polcy_loss' is unknown; did you mean 'policy_loss'?"),
    ]


def test_versions_may_be_mixed_and_are_counted():
    old = (SAMPLES / "v1.1" / "minimal.ndjson").read_bytes()
    assert report_on(old, *LINES, old).versions == {"1.1": 2, "2": len(LINES)}
    config = changed(LINES[0], config={"telemetry_version": 1.1})
    assert report_on(old, config, *LINES[1:]).errors == 0


def test_rotated_parts_are_one_record(tmp_path: Path, open_recorder: Callable[..., Recorder]):
    with open_recorder(rotate_bytes=300) as recorder:
        recorder.header(env="x", seed=1, config={})
        for _ in range(6):
            recorder.event("tick")
    report = validate(tmp_path)
    assert len(report) > 2
    assert [f.errors for f in report] == [0] * len(report)
    part = min(tmp_path.glob("*.gz"))
    part.write_bytes(part.read_bytes()[:-9])
    assert "cannot be read further" in validate(tmp_path)[0].mistakes[-1].message


def test_a_gzip_file_is_read_by_its_name(tmp_path: Path):
    file = tmp_path / "x.ndjson.gz"
    file.write_bytes(gzip.compress(b"".join(LINES)))
    assert validate(file)[0].records == len(LINES)


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(TelemetryError, match=r"no record at .*gone\.ndjson"):
        validate(tmp_path / "gone.ndjson")


def test_a_million_mistakes_are_counted_not_kept():
    report = report_on(*[b"x\n"] * (MOST_MISTAKES + 500))
    assert (report.errors, len(report.mistakes)) == (MOST_MISTAKES + 500, MOST_MISTAKES)


@pytest.mark.parametrize(("old", "new"), [(b'"updates":', b'"updates":1,"updates":'), (b'"lr":', b'"lr":1,"lr":')])
def test_a_name_that_is_there_twice_is_an_error(old: bytes, new: bytes):
    line = of_kind("update").replace(old, new, 1)
    assert line != of_kind("update")
    name = old.decode().strip(':"')
    assert f"{name!r} is there twice in one object" in messages(line)[0][1]


def test_text_with_a_quote_and_a_colon_is_no_name():
    line = changed(of_kind("event"), name='say ":" and \\":')
    assert not any("twice" in message for _, message in messages(line))


def test_a_byte_order_mark_is_named():
    assert messages(b"\xef\xbb\xbf" + LINES[0])[0] == (
        1,
        "the file begins with a byte order mark (BOM); save it as UTF-8 without one",
    )
