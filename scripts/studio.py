"""Builds the studio's page into the package: npm ci, types, bundle, and the digest of the sources it was made from."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STUDIO = ROOT / "studio"
STATIC = ROOT / "src" / "surefoot" / "server" / "studio" / "static"
DIGEST = STATIC / "sources.sha256"
PARTS = ("index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts")


def digest() -> str:
    """Of every file that the bundle is made from, names included."""
    found = hashlib.sha256()
    for file in sorted([*(STUDIO / name for name in PARTS), *(STUDIO / "src").rglob("*.*")]):
        found.update(f"{file.relative_to(STUDIO).as_posix()}\n".encode())
        found.update(file.read_bytes())
    return found.hexdigest()


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
        subprocess.run([npm, "ci", "--no-audit", "--no-fund"], cwd=STUDIO, check=True)
    subprocess.run([npm, "run", "build"], cwd=STUDIO, check=True)
    DIGEST.write_text(digest() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
