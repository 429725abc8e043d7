"""Build the service's page into the package: npm ci, type check, bundle, and the digest of its sources."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STUDIO = ROOT / "studio"
STATIC = ROOT / "src" / "surefoot" / "server" / "http" / "static" / "serve"
DIGEST = STATIC / "sources.sha256"
NOTICES = STATIC / "THIRD_PARTY_NOTICES.txt"
CONTAINS = ("react", "react-dom", "scheduler")


def digest() -> str:
    """Return the hash of every file that the bundle is built from, names included."""
    result = hashlib.sha256()
    shared = [STUDIO / "package.json", STUDIO / "package-lock.json", STUDIO / "tsconfig.json"]
    for file in sorted([*shared, *(STUDIO / "serve").rglob("*.*"), ROOT / "clients/typescript/src/schema.ts"]):
        result.update(f"{file.relative_to(ROOT).as_posix()}\n".encode())
        result.update(file.read_bytes())
    return result.hexdigest()


def notices() -> str:
    """Return the licences of the packages in the bundle."""
    parts: list[str] = []
    for name in CONTAINS:
        folder = STUDIO / "node_modules" / name
        version = json.loads((folder / "package.json").read_text())["version"]
        parts.append(f"{name} {version}\n\n{(folder / 'LICENSE').read_text(encoding='utf-8').strip()}\n")
    return "The service's page contains:\n\n" + ("\n" + "-" * 72 + "\n\n").join(parts)


def main() -> int:
    if "--check" in sys.argv:
        current = DIGEST.exists() and DIGEST.read_text().strip() == digest()
        print("the page is current" if current else "the page is stale; run `make serve-page`")
        return int(not current)
    npm = shutil.which("npm")
    if npm is None:
        print("building the page needs Node 20 or newer with npm; installing surefoot does not", file=sys.stderr)
        return 1
    if not (STUDIO / "node_modules").exists():
        subprocess.run([npm, "ci", "--no-audit", "--no-fund"], cwd=STUDIO, check=True)
    for command in (["tsc", "--noEmit", "-p", "serve"], ["vite", "build", "--config", "serve/vite.config.ts"]):
        subprocess.run([npm, "exec", "--", *command], cwd=STUDIO, check=True)
    NOTICES.write_text(notices(), encoding="utf-8")
    DIGEST.write_text(digest() + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
