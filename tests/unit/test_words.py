"""`scripts/words.py` finds a planted phrase or name in every kind of file, and leaves ordinary English alone."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "words.py"
words = runpy.run_path(str(SCRIPT))
PHRASES, NAMES = words["read_list"]()


def hits(kind: str, source: str) -> list[tuple[int, str]]:
    return [(hit.line, hit.word) for hit in words["check_text"](kind, "file", source, PHRASES)]


@pytest.mark.parametrize(
    ("kind", "source", "line"),
    [
        ("python", '"""First line.\n\nFor whoever calls it.\n"""\n', 3),
        ("python", "x = 1\n# Written in place of\n# the old file.\n", 2),
        ("python", 'raise ValueError(f"{x} is told "\n    "twice")\n', 1),
        ("python", 'x = f"{y}: a phrase of its {z}"; z = "a phrase of its own"\n', 1),
        ("c", "int x; /* a file\n * of its\n * own */\n", 2),
        ("typescript", "const x = 1\nlet y = `for whoever`\n", 2),
        ("yaml", "- help: |\n    Stops at once.\n", 2),
        ("docs", "# Title\n\nThe run goes\non after a crash.\n", 3),
        ("docs", "```python\nx = 1  # at once\n```\n", 2),
    ],
)
def test_a_planted_phrase_is_reported_with_its_line(kind: str, source: str, line: int) -> None:
    assert [where for where, _ in hits(kind, source)] == [line]


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        ("python", 'x = {"says": 1}\n'),
        ("python", '"""The crewmate is immense; good for good reasons; goes on the stack."""\n'),
        ("docs", "Pass `--at once` to it, see [this](goes-on-with.md).\n\n```text\nit is told at once\n```\n"),
        ("c", "int at, once;\n"),
    ],
)
def test_ordinary_text_code_and_keys_are_not_reported(kind: str, source: str) -> None:
    assert hits(kind, source) == []


@pytest.mark.parametrize(
    "source",
    [
        "told = 1\n",
        "def f(told): pass\n",
        "def f(*, told=1): pass\n",
        "self.told = 1\n",
        "class A:\n    told: int\n",
        "for told in x: pass\n",
        "[told for told in x]\n",
        "with f() as told: pass\n",
        "def _told(): pass\n",
        "class Told: pass\n",
        "import x as told\n",
        "(told := 1)\n",
    ],
)
def test_a_name_of_the_list_is_reported_where_it_is_assigned(source: str) -> None:
    assert len(list(words["check_names"]("python", "file", source, NAMES))) == 1


def test_a_name_of_the_list_is_not_reported_where_it_is_only_read_or_a_part_of_a_longer_name() -> None:
    assert not list(words["check_names"]("python", "file", "x = y.told + told + untold\ntold_by = 1\n", NAMES))


@pytest.mark.parametrize(
    ("kind", "source"), [("c", "int x;\nint told = 1;\n"), ("typescript", "x;\nconst { told } = y;\n")]
)
def test_an_identifier_of_the_list_is_reported_in_c_and_typescript(kind: str, source: str) -> None:
    assert [hit.line for hit in words["check_names"](kind, "file", source, NAMES)] == [2]


def test_comments_and_strings_of_typescript_are_not_identifiers() -> None:
    source = '// told\nconst x = "told"; /* told */\nconst toldBy = 1;\n'
    assert not list(words["check_names"]("typescript", "file", source, NAMES))


def test_the_repository_has_none_of_the_listed_words():
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
