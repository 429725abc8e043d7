"""Runs everything that must hold and prints the time of each part; stops at the first that does not."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

BIN = Path(sys.executable).parent
PYTEST = [sys.executable, "-m", "pytest", "-n", "2"]
PARTS: list[tuple[str, list[str]]] = [
    ("format", [str(BIN / "ruff"), "format", "--check", "."]),
    ("lint", [str(BIN / "ruff"), "check", "."]),
    ("types", [str(BIN / "pyright"), "-p", "pyproject.toml"]),
    ("contracts", [str(BIN / "lint-imports")]),
    ("unit", [*PYTEST, "tests/unit"]),
    ("sanitize", [sys.executable, "scripts/sanitize.py"]),
    ("property", [*PYTEST, "tests/property"]),
    ("golden", [*PYTEST, "tests/golden"]),
    ("e2e", [*PYTEST, "tests/e2e", "--durations=10"]),
    ("docs", [str(BIN / "mkdocs"), "build", "--strict", "--quiet"]),
]


def main() -> int:
    times: list[tuple[str, float]] = []
    for name, command in PARTS:
        print(
            f"== {name}: {' '.join(Path(command[0]).name if i == 0 else part for i, part in enumerate(command))}",
            flush=True,
        )
        begin = time.perf_counter()
        code = subprocess.run(command, check=False).returncode
        times.append((name, time.perf_counter() - begin))
        if code != 0:
            print(f"{name} failed", file=sys.stderr)
            return code
    print("\n".join(f"{seconds:7.1f} s  {name}" for name, seconds in times))
    print(f"{sum(seconds for _, seconds in times):7.1f} s  all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
