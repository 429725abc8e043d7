"""The pages about language models tell the truth: every file and test they name exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def rows() -> list[tuple[str, list[str], list[str]]]:
    """(id, files, tests) of every row of both tables."""
    found = []
    for page in ("details", "verification"):
        for line in (ROOT / "docs" / "lm" / f"{page}.md").read_text("utf-8").splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if len(cells) == 4 and re.fullmatch(r"[NV]\d+", cells[0]):
                found.append((cells[0], re.findall(r"`([^`]+)`", cells[2]), re.findall(r"`([^`]+)`", cells[3])))
    return found


@cache
def named_in(file: Path) -> frozenset[str]:
    return frozenset(n.name for n in ast.parse(file.read_text("utf-8")).body if isinstance(n, ast.FunctionDef))


def test_both_pages_have_their_rows():
    assert len([row for row in rows() if row[0].startswith("N")]) >= 18
    assert len([row for row in rows() if row[0].startswith("V")]) >= 30


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_what_a_row_names_exists(row):
    _, files, tests = row
    assert files
    assert tests
    for file in files:
        assert (ROOT / "src" / "surefoot" / file).is_file(), file
    for test in tests:
        file, _, name = test.partition("::")
        assert name in named_in(ROOT / "tests" / file), test
