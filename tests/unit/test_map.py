"""docs/explain/map.md names every sub-room, and its six data flows are files that follow one another."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "surefoot"
PAGE = (ROOT / "docs" / "explain" / "map.md").read_text(encoding="utf-8")
FLOWS = {
    title: re.findall(r"^\d+\. `([\w/]+\.py)`", section, re.MULTILINE)
    for title, section in re.findall(r"^### (.+?)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
}


def imported_files(name: str) -> set[str]:
    """The files of the package that a file imports, at its top or inside a function, by their paths under src/surefoot."""
    files: set[str] = set()
    for node in ast.walk(ast.parse((SOURCE / name).read_text(encoding="utf-8"))):
        modules: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module:
            modules = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("surefoot."):
            modules = [node.value.partition(":")[0]]
        files |= {"/".join(m.split(".")[1:]) + ".py" for m in modules if m.startswith("surefoot.")}
    return files


def test_there_are_six_flows():
    assert list(FLOWS) == ["Control", "Tools", "Service", "Town", "Language", "Graph"]
    assert all(len(files) >= 5 for files in FLOWS.values())


@pytest.mark.parametrize("flow", FLOWS)
def test_each_file_of_a_flow_imports_or_is_imported_by_an_earlier_one(flow):
    files = FLOWS[flow]
    imports = {name: imported_files(name) for name in files}
    for i, name in enumerate(files[1:], 1):
        before = files[:i]
        linked = any(name in imports[other] or other in imports[name] for other in before)
        assert linked, f"{flow}: {name} has no import in common with {before}"


def test_the_tool_walk_passes_at_most_12_files():
    assert len(FLOWS["Tools"]) <= 12


def test_picture_and_table_are_those_of_the_rooms():
    code = "import house_map as m; raise SystemExit((m.PICTURE.read_text(), m.PAGE.read_text()) != (m.svg(), m.page()))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT / "scripts", check=False)
    assert done.returncode == 0, "run `python scripts/house_map.py`"
