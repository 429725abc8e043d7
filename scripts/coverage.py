"""Branch coverage by room, with the bar of 95 % for core, data and learn."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BAR, HELD = 95.0, ("core", "data", "learn")


def main() -> int:
    python = [sys.executable, "-m"]
    tests = ["tests/unit", "tests/property", "tests/golden"]
    ran = subprocess.run(
        [*python, "pytest", *tests, "-n", "2", "--cov", "--cov-branch", "--cov-report="], cwd=ROOT, check=False
    )
    if ran.returncode != 0:
        return ran.returncode
    subprocess.run([*python, "coverage", "json", "-q", "-o", ".coverage.json"], cwd=ROOT, check=True)
    measured = json.loads((ROOT / ".coverage.json").read_text())["files"]
    rooms: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, entry in measured.items():
        room = Path(name).relative_to("src/surefoot").parts[0].removesuffix(".py")
        summary = entry["summary"]
        rooms[room][0] += summary["covered_lines"] + summary["covered_branches"]
        rooms[room][1] += summary["num_statements"] + summary["num_branches"]
    low = False
    for room, (covered, total) in sorted(rooms.items()):
        share = 100.0 * covered / max(1, total)
        below = room in HELD and share < BAR
        low |= below
        print(f"{share:6.1f} %  {room}{'   below ' + str(BAR) if below else ''}")
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
