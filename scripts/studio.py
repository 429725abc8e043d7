"""Builds the studio's page into the package: npm install, types, bundle, and the digest of the sources it was made from."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STUDIO = ROOT / "studio"
STATIC = ROOT / "src" / "surefoot" / "server" / "studio" / "static"
DIGEST = STATIC / "sources.sha256"
NOTICES = STATIC / "THIRD_PARTY_NOTICES.txt"
PARTS = ("index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts")


def digest() -> str:
    """Of every file that the bundle is made from, names included."""
    found = hashlib.sha256()
    for file in sorted([*(STUDIO / name for name in PARTS), *(STUDIO / "src").rglob("*.*")]):
        found.update(f"{file.relative_to(STUDIO).as_posix()}\n".encode())
        found.update(file.read_bytes())
    return found.hexdigest()


def notices() -> str:
    """The licences of all that is in the bundle: whatever the page's own dependencies need."""
    found, todo = dict[str, str](), list(json.loads((STUDIO / "package.json").read_text())["dependencies"])
    while todo:
        name = todo.pop()
        folder = STUDIO / "node_modules" / name
        if name in found or not (folder / "package.json").exists():
            continue
        told = json.loads((folder / "package.json").read_text())
        files = sorted(file for file in folder.iterdir() if file.name.lower().startswith(("license", "licence")))
        text = files[0].read_text(encoding="utf-8").strip() if files else f"License: {told.get('license', 'unknown')}"
        found[name] = f"{name} {told['version']}\n\n{text}\n"
        todo += told.get("dependencies", {})
    return "The studio's page contains:\n\n" + ("\n" + "-" * 72 + "\n\n").join(found[name] for name in sorted(found))


def main() -> int:
    if "--check" in sys.argv:
        current = DIGEST.exists() and DIGEST.read_text().strip() == digest()
        print("the bundle is current" if current else "the bundle is stale: `make studio` builds it")
        return int(not current)
    npm = shutil.which("npm")
    if npm is None:
        print("building the studio needs Node 20 or newer with npm; installing surefoot does not", file=sys.stderr)
        return 1
    if not (STUDIO / "node_modules").exists():
        # By the lock, but not `npm ci`: that refuses a lock which has the bundler's binary for one system only.
        subprocess.run([npm, "install", "--no-save", "--no-audit", "--no-fund"], cwd=STUDIO, check=True)
    subprocess.run([npm, "run", "build"], cwd=STUDIO, check=True)
    NOTICES.write_text(notices(), encoding="utf-8")
    DIGEST.write_text(digest() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
