"""The rules of the house that a program can check: sizes of folders and files, unique names, where tests are, who imports whom."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "surefoot"
MODULES = sorted(SOURCE.rglob("*.py"))

# Where the house is not in order yet. These numbers only ever go down; the aims are 25 and 0.
LONG_FILES = 16
WITHOUT_TESTS = 0


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def has_logic(path: Path) -> bool:
    """Whether a function in the file branches or loops; declarations and plain wrappers do not count."""
    branching = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.comprehension, ast.IfExp, ast.Match)
    functions = [n for n in ast.walk(tree(path)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return any(isinstance(node, branching) for function in functions for node in ast.walk(function))


def test_no_folder_has_more_than_20_python_files():
    folders = defaultdict(int)
    for path in MODULES:
        folders[path.parent] += 1
    assert {str(folder.relative_to(ROOT)): n for folder, n in folders.items() if n > 20} == {}


def test_few_files_are_longer_than_300_lines():
    long = [str(p.relative_to(SOURCE)) for p in MODULES if len(p.read_text(encoding="utf-8").splitlines()) > 300]
    assert len(long) <= LONG_FILES, long


def test_a_public_class_name_is_defined_in_one_module_only():
    homes = defaultdict(list)
    for path in MODULES:
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(SOURCE)))
    # compat keeps the names that other systems use, whatever they are called in the library.
    repeated = {
        name: files for name, files in homes.items() if len([f for f in files if not f.startswith("compat/")]) > 1
    }
    assert repeated == {}


def test_every_module_with_logic_has_a_test_file_of_its_name():
    missing = []
    for path in MODULES:
        module = path.relative_to(SOURCE)
        if not path.name.startswith("__") and has_logic(path):
            expected = module.parent / f"test_{module.name.lstrip('_')}"
            if not (ROOT / "tests" / "unit" / expected).exists():
                missing.append(str(module))
    assert len(missing) <= WITHOUT_TESTS, missing


def test_docs_examples_and_benchmarks_import_nothing_from_the_command_line():
    users = [p for folder in ("docs", "examples", "benchmarks") for p in (ROOT / folder).rglob("*")]
    importing = [
        str(p.relative_to(ROOT))
        for p in users
        if p.suffix in {".py", ".md", ".ipynb"}
        and re.search(r"(from|import) surefoot\.cli\b", p.read_text(encoding="utf-8"))
    ]
    assert importing == []


def test_the_guide_says_how_many_lines_there_are():
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES)
    found = re.search(r"`src` has ([\d,]+) lines of Python", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert found is not None
    assert abs(int(found[1].replace(",", "")) - lines) < 0.05 * lines
