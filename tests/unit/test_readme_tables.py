"""The README's numbers and pictures are those of benchmarks/results, and it stays short."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def test_the_tables_of_the_readme_are_those_of_the_results():
    done = subprocess.run([sys.executable, str(ROOT / "benchmarks/tables.py"), "--check"], check=False)
    assert done.returncode == 0, "run `python benchmarks/tables.py`"


def test_the_bar_chart_is_that_of_the_results():
    done = subprocess.run([sys.executable, str(ROOT / "benchmarks/speed_chart.py"), "--check"], check=False)
    assert done.returncode == 0, "run `python benchmarks/speed_chart.py`"


def results(name: str) -> dict[str, Any]:
    return json.loads((ROOT / "benchmarks" / "results" / name).read_text(encoding="utf-8"))


def test_the_numbers_in_the_readmes_sentences_are_those_of_the_results():
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    sides = {
        side: r["median"]["steps_per_cpu_second"]
        for side, r in results("speed.json")["workloads"]["W1"]["sides"].items()
    }
    ours = sides["surefoot, own world"]
    assert f"{ours / sides['stable-baselines3']:.0f} times Stable-Baselines3" in readme
    assert f"{ours / sides['purejaxrl']:.1f} times PureJaxRL" in readme
    assert f"{sides['surefoot, SyncVectorEnv'] / sides['stable-baselines3']:.1f} times SB3" in readme


def test_the_readme_is_read_in_two_minutes():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = text.splitlines()
    assert len(lines) <= 150
    assert len(text.split()) <= 1100
    assert any("make demo" in line for line in lines[:20])
    assert any(re.match(r"!\[", line) for line in lines[:12])
    assert "<!-- test" not in text
