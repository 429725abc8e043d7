"""The notebooks run: in a real kernel where there is one, and always as the program that their cells are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def small(notebook: Path) -> dict[str, Any]:
    """The notebook with a run that takes a moment."""
    text = notebook.read_text(encoding="utf-8")
    assert "STEPS = 20_000" in text
    return json.loads(text.replace("STEPS = 20_000", "STEPS = 4_000"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_its_output(notebook: Path):
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    assert [cell.get("outputs", []) for cell in cells if cell.get("outputs")] == []


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_top_to_bottom(notebook: Path, tmp_path: Path):
    cells = ["".join(cell["source"]) for cell in small(notebook)["cells"] if cell["cell_type"] == "code"]
    environment = {**os.environ, "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"}
    (tmp_path / "cells.py").write_text("\n\n".join(cells), encoding="utf-8")
    command = [sys.executable, "cells.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "CartPole-v1 seed 0" in done.stdout
    assert "Minibatch" in done.stdout
    assert " findings in " in done.stdout
    assert (tmp_path / "runs" / "quicklook" / "report.html").exists()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_in_a_kernel(notebook: Path, tmp_path: Path):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    book = nbformat.reads(json.dumps(small(notebook)), as_version=4)
    nbformat.validate(book)
    nbclient.NotebookClient(book, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert any("image/png" in out.get("data", {}) for cell in book.cells for out in cell.get("outputs", []))
