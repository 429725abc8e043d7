"""A thousand broken logs: every one gets an answer that names a line, none a traceback."""

from __future__ import annotations

import contextlib
import io
import json
import random
from pathlib import Path

from surefoot.cli.main import main
from surefoot.cli.verbs.telemetry.telemetry import SummaryArgs
from surefoot.compat.townlet.record_writer import to_flat
from surefoot.errors import SurefootError
from surefoot.telemetry.doctor.alerts import Alerts, parse_rule
from surefoot.telemetry.doctor.doctor import examine
from surefoot.telemetry.export.formats import to_csv, to_parquet
from surefoot.telemetry.export.page import write_report
from surefoot.telemetry.follow import Follow
from surefoot.telemetry.reader import LineProblem, read_all
from surefoot.telemetry.validate import validate, validate_lines

SAMPLES = sorted((Path(__file__).parents[1] / "samples" / "telemetry").glob("v*/*.ndjson"))
VALUES = [b"NaN", b"-Infinity", b"1e999", b"-1", b"null", b'"x"', b"[]", b"{}", b"true", b"9" * 400, b"1.5", b"1e308"]


def broken(rng: random.Random) -> tuple[str, bytes]:
    """A way to break a log, and a log broken so."""
    data = rng.choice(SAMPLES).read_bytes()
    way = rng.choice(["flip", "cut", "value", "line", "mixed", "twice", "binary", "empty", "deep", "key"])
    lines = data.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    if way == "flip":
        bad = bytearray(data)
        for _ in range(rng.randint(1, 8)):
            bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        data = bytes(bad)
    elif way == "cut":
        data = data[: rng.randrange(len(data))]
    elif way == "value":
        head, colon, tail = lines[at].partition(b":")
        for _ in range(rng.randint(0, 6)):
            more, colon, tail = tail.partition(b":")
            head += b":" + more
        rest = tail[tail.find(b",") :] if b"," in tail else b"}\n"
        lines[at] = head + colon + rng.choice(VALUES) + rest
        data = b"".join(lines)
    elif way == "line":
        lines.insert(at, rng.choice([b"hello\n", b"{}\n", b"[]\n", b'{"v":"9.0.0"}\n', b"\xff\xfe\n", b'"\\ud800"\n']))
        data = b"".join(lines)
    elif way == "mixed":
        data = b"".join(rng.sample(lines, len(lines))) + rng.choice(SAMPLES).read_bytes()
    elif way == "twice":
        data = b"".join([*lines, lines[at]])
    elif way == "binary":
        data = rng.randbytes(rng.randint(1, 3000))
    elif way == "empty":
        data = rng.choice([b"", b"\n", b"\n\n", b" "])
    elif way == "deep":
        lines[at] = b"[" * rng.choice([100, 10_000]) + b"\n"
        data = b"".join(lines)
    else:
        name = rng.choice([b'"v"', b'"kind"', b'"seq"', b'"epoch"', b'"telemetry_version"', b'"m"'])
        data = data.replace(name, b'"q"')
    return way, data


def look_at(file: Path, out: Path) -> None:
    """Everything else that reads a log: it may refuse with a sentence, nothing more."""
    rules = [parse_rule("loss>1")]
    for look in (
        lambda: write_report(file, out / "report.html"),
        lambda: examine(file),
        lambda: to_csv(file, out / "progress.csv"),
        lambda: to_parquet(file, out / "x.parquet"),
        lambda: to_flat(file, out / "flat.jsonl"),
        lambda: [Alerts(rules).take(item) for item in Follow(file).poll() if not isinstance(item, LineProblem)],
    ):
        with contextlib.suppress(SurefootError):
            look()


def test_a_thousand_broken_logs(tmp_path: Path):
    rng = random.Random(11)
    file = tmp_path / "x.ndjson"
    answered: dict[str, int] = {}
    for number in range(1000):
        way, data = broken(rng)
        lines = data.splitlines(keepends=True) if way != "binary" else io.BytesIO(data).readlines()
        found = validate_lines("x", lines, strict=number % 2 == 0)
        assert all(1 <= mistake.line <= max(len(lines), 1) for mistake in found.mistakes)
        if way in ("line", "binary", "empty", "deep"):
            assert found.errors, (way, data[:200])
        answered[way] = answered.get(way, 0) + bool(found.mistakes)
        if number % 10 == 0:
            file.write_bytes(data)
            (from_file,) = validate(file)
            assert all(mistake.line >= 1 for mistake in from_file.mistakes)
            assert all(problem.line >= 1 for problem in read_all(file).problems)
            with contextlib.redirect_stdout(io.StringIO()) as out:
                code = main(["telemetry", "validate", str(file), "--json"])
                SummaryArgs(run_name=str(file)).run()
            assert code == (1 if from_file.errors else 0)
        if number % 50 == 0:
            look_at(file, tmp_path)
            assert json.loads(out.getvalue().splitlines()[0])["valid"] == (code == 0)
    assert len(answered) == 10
    assert min(answered.values()) > 20
