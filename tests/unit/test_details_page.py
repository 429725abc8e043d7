"""The page of details is complete, and every file and test it names exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explain" / "details.md"
CHECKLIST = {"C": (1, 13), "A": (1, 9), "N": (1, 9), "L": (1, 5), "M": (1, 1), "X": (1, 8), "P": (1, 45), "S": (0, 4)}
CHECKLIST["G"] = (1, 15)


def rows() -> list[tuple[str, str, list[str], list[str]]]:
    """Return (id, detail, files, tests) of every row."""
    found = []
    for line in PAGE.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and re.fullmatch(r"[A-Z]\d+", cells[0]):
            found.append((cells[0], cells[1], re.findall(r"`([^`]+)`", cells[2]), re.findall(r"`([^`]+)`", cells[3])))
    return found


@cache
def named_in(file: Path) -> frozenset[str]:
    """`name` and `Class::name` of every test in a file."""
    names: set[str] = set()
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            names |= {f"{node.name}::{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
    return frozenset(names)


def test_every_detail_of_the_checklist_has_one_row():
    expected = [f"{letter}{i}" for letter, (first, last) in CHECKLIST.items() for i in range(first, last + 1)]
    assert sorted(row[0] for row in rows()) == sorted(expected)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_what_a_row_names_exists(row):
    _, detail, files, tests = row
    assert [name for name in files if not (ROOT / "src" / "surefoot" / name).is_file()] == []
    for test in tests:
        file, _, name = test.partition("::")
        assert (ROOT / "tests" / file).is_file(), test
        assert name in named_in(ROOT / "tests" / file), test
    assert (files and tests) or "Not applicable: " in detail
