"""The README's numbers are those of benchmarks/results."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_tables_of_the_readme_are_those_of_the_results():
    done = subprocess.run([sys.executable, str(ROOT / "benchmarks/tables.py"), "--check"], check=False)
    assert done.returncode == 0, "run `python benchmarks/tables.py`"
