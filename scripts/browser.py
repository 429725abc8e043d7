"""Sees to a Chromium for the tests in a browser: the one there is, else Debian's where apt may be used."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

APT = ["apt-get", "-qq", "--no-install-recommends", "--yes"]


def found() -> str | None:
    """Where it is, as the tests look for it."""
    return os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


def main() -> int:
    if found():
        return 0
    if shutil.which("apt-get") and os.geteuid() == 0:
        for command in ([*APT, "update"], [*APT, "install", "chromium"]):
            subprocess.run(command, check=False, env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"})
    if not found():
        print(
            "no Chromium: install one or set $CHROMIUM; until then the tests in a browser are skipped", file=sys.stderr
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
