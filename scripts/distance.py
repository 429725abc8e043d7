"""Prints the reading distance: non-blank lines of the files one experience passes from the world to the weights."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
AIMS = {"torch": 2200, "kernel": 3500}


def read_path() -> dict[str, list[str]]:
    """Return {section of docs/explain/path.txt: its files, under src/surefoot}."""
    sections: dict[str, list[str]] = {}
    files: list[str] = []
    for line in (ROOT / "docs/explain/path.txt").read_text().splitlines():
        if line.startswith("["):
            files = sections.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            files.append(line)
    return sections


def count_lines(name: str) -> int:
    """Return the number of non-blank lines of a file under src/surefoot."""
    return sum(1 for line in (ROOT / "src/surefoot" / name).read_text().splitlines() if line.strip())


def main() -> None:
    sections = read_path()
    for section, aim in AIMS.items():
        print(f"[{section}]")
        for name in sections[section]:
            print(f"{count_lines(name):6}  {name}")
        print(f"{sum(map(count_lines, sections[section])):6}  total (the aim is {aim:,})\n")
    observers = [name for name in sections["observers"] if name not in sections["torch"]]
    print(f"{sum(map(count_lines, observers)):6}  in {len(observers)} files that only observe: {', '.join(observers)}")


if __name__ == "__main__":
    main()
