"""A1 and A2: known holes in what we depend on, by pip-audit and npm audit; a service that cannot be reached is not green."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from campaign.frame import ROOT, Block, Found

CANARY_PYTHON = {"requests": "2.19.0", "jinja2": "2.10"}
CANARY_NODE = {"minimist": "1.2.0", "lodash": "4.17.4"}
"""Releases with holes that have been known for years: who does not find these has not looked."""
UNREACHABLE = "not reachable"
NODE_PROJECTS = ("clients/typescript", "studio")


def pins() -> dict[str, str]:
    text = (ROOT / "constraints.txt").read_text()
    return dict(re.findall(r"^([A-Za-z0-9][\w.-]*)==([^\s;#]+)", text, re.MULTILINE))


def python(count: int, defect: str = "") -> Found:
    found, runner = Found(), _pip_audit()
    if runner is None:
        found.not_here = "pip-audit is not installed"
        return found
    canary = _audited(runner, CANARY_PYTHON)
    if canary is None or not canary[0]:
        found.not_here = UNREACHABLE
        found.notes["why"] = "the advisory service does not know a hole that has been known for years"
        return found
    told = _audited(runner, {**pins(), **(CANARY_PYTHON if defect else {})})
    if told is None:
        found.not_here = UNREACHABLE
        return found
    holes, looked, skipped = told
    found.tried, found.notes = looked, {"packages": looked, "not known to the service": skipped}
    for hole in holes:
        found.fault(hole)
    return found


def _pip_audit() -> list[str] | None:
    places = (ROOT / ".venv-audit/bin", Path(sys.executable).parent)
    command = next((str(p / "pip-audit") for p in places if (p / "pip-audit").exists()), shutil.which("pip-audit"))
    return [command] if command else None


def _audited(runner: list[str], packages: dict[str, str]) -> tuple[list[str], int, int] | None:
    """(holes, packages looked at, packages skipped), or None if nobody answered."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "requirements.txt"
        file.write_text("".join(f"{name}=={version}\n" for name, version in packages.items()))
        options = [
            "-r",
            str(file),
            "--no-deps",
            "--disable-pip",
            "--progress-spinner",
            "off",
            "-f",
            "json",
            "--timeout",
            "10",
        ]
        told = _json([*runner, *options], Path(place))
    if told is None or "dependencies" not in told:
        return None
    each = told["dependencies"]
    holes = [f"{d['name']} {d['version']}: {hole['id']}" for d in each for hole in d.get("vulns", ())]
    skipped = sum("skip_reason" in d for d in each)
    return holes, len(each) - skipped, skipped


def node(count: int, defect: str = "") -> Found:
    found = Found()
    if shutil.which("npm") is None:
        found.not_here = "npm is not installed"
        return found
    with tempfile.TemporaryDirectory() as place:
        canary = _node_canary(Path(place))
    if canary is None or not canary[0]:
        found.not_here = UNREACHABLE
        found.notes["why"] = "the registry does not take questions about advisories"
        return found
    for project in NODE_PROJECTS:
        if not (ROOT / project / "package-lock.json").exists():
            continue
        told = canary if defect else _node(ROOT / project)
        if told is None:
            found.not_here = UNREACHABLE
            return found
        found.tried += told[1]
        for hole in told[0]:
            found.fault(f"{project}: {hole}")
    return found


def _node_canary(place: Path) -> tuple[list[str], int] | None:
    (place / "package.json").write_text(json.dumps({"name": "canary", "version": "1.0.0", "dependencies": CANARY_NODE}))
    locked = {f"node_modules/{name}": {"version": version} for name, version in CANARY_NODE.items()}
    root = {"": {"name": "canary", "version": "1.0.0", "dependencies": CANARY_NODE}}
    lock = {"name": "canary", "version": "1.0.0", "lockfileVersion": 3, "packages": {**root, **locked}}
    (place / "package-lock.json").write_text(json.dumps(lock))
    return _node(place)


def _node(place: Path) -> tuple[list[str], int] | None:
    """(holes, packages looked at), or None if nobody answered."""
    told = _json(["npm", "audit", "--json", "--package-lock-only"], place)
    if told is None or "vulnerabilities" not in told:
        return None
    holes = [f"{name}: {hole['severity']}" for name, hole in told["vulnerabilities"].items()]
    return holes, int(told.get("metadata", {}).get("dependencies", {}).get("total", 1))


def _json(command: list[str], place: Path) -> Any:
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=180, cwd=place, check=False)
        return json.loads(told.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


BLOCKS = [
    Block(
        name=name,
        title=title,
        over="dependencies",
        unit="packages",
        smoke=1,
        count=1,
        long=1,
        check=check,
        mutants={"a package with a known hole is among them": 1},
    )
    for name, title, check in (("A1", "pip-audit of the pinned packages", python), ("A2", "npm audit", node))
]
