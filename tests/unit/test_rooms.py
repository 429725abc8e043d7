"""What rooms may not know of each other, where import-linter does not look."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IMPORTED = re.compile(r"\b(?:from|import) surefoot\.cli\b|\bfrom surefoot import .*\bcli\b")


@pytest.mark.parametrize("folder", ["docs", "examples", "benchmarks"])
def test_nothing_outside_the_package_imports_the_command_line(folder: str):
    texts = (p for p in (ROOT / folder).rglob("*") if p.suffix in (".py", ".md", ".ipynb") and "site" not in p.parts)
    assert [str(p.relative_to(ROOT)) for p in texts if IMPORTED.search(p.read_text(encoding="utf-8"))] == []


def test_records_of_telemetry_1_are_read_without_torch():
    """The reader is in `compat`, which is above `telemetry` and has rooms that need torch."""
    sample = ROOT / "tests" / "samples" / "telemetry" / "v1.0" / "full.ndjson"
    read = f"from surefoot.telemetry.reader import read_all; assert read_all({str(sample)!r}).records"
    code = f"{read}; import sys; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
