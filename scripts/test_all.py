"""Runs everything that must hold and prints the time of each part; begins nothing more once a part has failed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BIN = Path(sys.executable).parent
PYTEST = [sys.executable, "-m", "pytest", "-n", "2"]
Part = tuple[str, list[str]]
MAIN: list[Part] = [
    ("format", [str(BIN / "ruff"), "format", "--check", "."]),
    ("lint", [str(BIN / "ruff"), "check", "."]),
    ("contracts", [str(BIN / "lint-imports")]),
    ("dead code", [sys.executable, "scripts/dead_code.py"]),
    ("golden, unit, property", [*PYTEST, "tests/golden", "tests/unit", "tests/property"]),
    ("e2e", [*PYTEST, "tests/e2e", "--durations=10"]),
]
# Tests wait a fifth of their time, for disks, deadlines and browsers. These use what is left over, and give way.
BESIDE: list[Part] = [
    ("types", [str(BIN / "pyright"), "-p", "pyproject.toml"]),
    ("sanitize", [sys.executable, "scripts/sanitize.py"]),
    ("compilers", [sys.executable, "scripts/compilers.py", "--quick"]),
    ("docs", [str(BIN / "mkdocs"), "build", "--strict", "--quiet"]),
]
GIVE_WAY = ["nice", "-n", "19"] if shutil.which("nice") else []


class Suite:
    """What was run, how long it took, and the first exit code that was not 0."""

    def __init__(self) -> None:
        self.times: dict[str, float] = {}
        self.code = 0

    def main(self) -> None:
        for name, command in MAIN:
            if self.code == 0:
                print(title(name, command), flush=True)
                begin = time.perf_counter()
                self.note(name, begin, subprocess.run(command, check=False).returncode)

    def beside(self) -> None:
        """Its output is kept back until a part is over, as the tests print at the same time."""
        for name, command in BESIDE:
            if self.code == 0:
                begin = time.perf_counter()
                done = subprocess.run(
                    [*GIVE_WAY, *command], check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
                )
                print(f"\n{title(name, command)}\n{done.stdout}", end="", flush=True)
                self.note(name, begin, done.returncode)

    def note(self, name: str, begin: float, code: int) -> None:
        self.times[name] = time.perf_counter() - begin
        self.code = self.code or code
        if code:
            print(f"{name} failed", file=sys.stderr, flush=True)


def title(name: str, command: list[str]) -> str:
    return f"== {name}: {' '.join([Path(command[0]).name, *command[1:]])}"


def main() -> int:
    begin, suite = time.perf_counter(), Suite()
    with ThreadPoolExecutor(2) as threads:
        for lane in [threads.submit(suite.main), threads.submit(suite.beside)]:
            lane.result()
    print("\n".join(f"{seconds:7.1f} s  {name}" for name, seconds in suite.times.items()))
    print(f"{time.perf_counter() - begin:7.1f} s  all")
    return suite.code


if __name__ == "__main__":
    sys.exit(main())
