"""Runs everything that must hold and prints the time of each part; stops at the first that does not."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BIN = Path(sys.executable).parent
PYTEST = [sys.executable, "-m", "pytest", "-n", "2"]
ALONE = [sys.executable, "-m", "pytest"]
Part = tuple[str, list[str]]
STATIC: list[Part] = [
    ("format", [str(BIN / "ruff"), "format", "--check", "."]),
    ("lint", [str(BIN / "ruff"), "check", "."]),
    ("types", [str(BIN / "pyright"), "-p", "pyproject.toml"]),
    ("contracts", [str(BIN / "lint-imports")]),
    ("docs", [str(BIN / "mkdocs"), "build", "--strict", "--quiet"]),
]
# What uses one core goes beside what uses one; what uses two goes alone.
STAGES: list[list[list[Part]]] = [
    [STATIC, [("sanitize", [sys.executable, "scripts/sanitize.py"]), ("golden", [*ALONE, "tests/golden"])]],
    [[("unit", [*PYTEST, "tests/unit"])]],
    [[("property", [*PYTEST, "tests/property"])]],
    [[("e2e", [*PYTEST, "tests/e2e", "--durations=10"])]],
]


def run(part: Part, times: dict[str, float], *, hold: bool) -> int:
    """One part; its output is kept back until it is over where another part prints at the same time."""
    name, command = part
    begin = time.perf_counter()
    title = f"== {name}: {' '.join([Path(command[0]).name, *command[1:]])}"
    if hold:
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        print(f"{title}\n{done.stdout}", end="", flush=True)
    else:
        print(title, flush=True)
        done = subprocess.run(command, check=False)
    times[name] = time.perf_counter() - begin
    if done.returncode:
        print(f"{name} failed", file=sys.stderr)
    return done.returncode


def main() -> int:
    times: dict[str, float] = {}
    begin = time.perf_counter()
    for lanes in STAGES:
        hold = len(lanes) > 1

        def walk(lane: list[Part], hold: bool = hold) -> int:
            return next((code for part in lane if (code := run(part, times, hold=hold))), 0)

        with ThreadPoolExecutor(len(lanes)) as threads:
            if code := max(threads.map(walk, lanes), key=abs):
                return code
    print("\n".join(f"{seconds:7.1f} s  {name}" for name, seconds in times.items()))
    print(f"{time.perf_counter() - begin:7.1f} s  all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
