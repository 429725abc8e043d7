"""Prints the reading distance: non-blank lines of the files one experience passes from the world to the weights."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    files = [line.strip() for line in (ROOT / "docs/explain/path.txt").read_text().splitlines() if line.strip()]
    total = 0
    for name in files:
        lines = sum(1 for line in (ROOT / "src/surefoot" / name).read_text().splitlines() if line.strip())
        total += lines
        print(f"{lines:6}  {name}")
    print(f"{total:6}  total (the bar is 1,200)")


if __name__ == "__main__":
    main()
