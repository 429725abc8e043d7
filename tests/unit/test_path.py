"""The files that `make distance` counts are one chain: whoever starts at the loop meets every one of them."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "surefoot"
FILES = (ROOT / "docs" / "explain" / "path.txt").read_text().split()
START = "train/loop.py"


def imported_files(name: str) -> set[str]:
    """The files of the package that `name` takes something from, by their paths under src/surefoot."""
    nodes = ast.walk(ast.parse((SOURCE / name).read_text()))
    modules = [
        n.module for n in nodes if isinstance(n, ast.ImportFrom) and n.module and n.module.startswith("surefoot.")
    ]
    return {"/".join(module.split(".")[1:]) + ".py" for module in modules}


def test_every_file_of_the_path_is_reached_from_the_loop():
    reached, waiting = {START}, [START]
    while waiting:
        for name in imported_files(waiting.pop()) & set(FILES) - reached:
            reached.add(name)
            waiting.append(name)
    assert sorted(reached) == sorted(FILES)


def test_only_the_loop_is_imported_by_no_other_file_of_the_path():
    wanted = set().union(*(imported_files(name) for name in FILES))
    assert [name for name in FILES if name not in wanted] == [START]


def test_the_path_is_shorter_than_1200_lines():
    lines = [line for name in FILES for line in (SOURCE / name).read_text().splitlines() if line.strip()]
    assert len(lines) < 1200
