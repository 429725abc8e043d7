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


EARLIER = re.compile(r"holo ?loom|townlet|directive.?023|\bdnne\b|predecessor|first system", re.IGNORECASE)
PATHS = re.compile(r"surefoot\.compat\.\w+|compat/\w+|townlet-1\.1|directive-023|\bDirective023\b")
"""Module paths, and values of `telemetry export --to` and `serve --compat`."""


@pytest.mark.parametrize("folder", ["src/surefoot", "docs", "examples"])
def test_the_earlier_systems_are_named_in_compat_and_on_one_page(folder: str):
    kinds = (".py", ".md", ".ipynb", ".json", ".yaml", ".yml")
    own = {
        ROOT / "src/surefoot/compat",
        ROOT / "examples/compat",
        ROOT / "docs/explain/origins.md",
    }
    named: list[str] = []
    for path in (ROOT / folder).rglob("*"):
        if path.suffix in kinds and not own & {path, *path.parents}:
            named += [str(path)] if EARLIER.search(PATHS.sub("", path.read_text(encoding="utf-8"))) else []
    assert named == []


def test_the_page_of_origins_names_commands_that_exist():
    """Every `surefoot …` in the first table is read as the command line would."""
    from surefoot.cli.main import VERBS, read_arguments

    page = (ROOT / "docs/explain/origins.md").read_text(encoding="utf-8")
    commands = re.findall(r"\| `surefoot ([^`]+)` \|$", page, flags=re.MULTILINE)
    assert len(commands) >= 5
    for words in (command.replace("FILE.json", "f.json").split() for command in commands):
        name = " ".join(words[:2]) if " ".join(words[:2]) in VERBS else words[0]
        assert read_arguments(name, words[len(name.split()) :])
