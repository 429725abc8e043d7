"""Asks a Ray cluster for its keys without a token. An answer shows that anyone who reaches the cluster can run code on it.

Run as a program, because Ray reads its settings of authentication once per process:
python -m surefoot.scale.ray_probe ADDRESS
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from typing import Any

# Seconds. Ray itself waits 40 for a cluster that does not answer.
PATIENCE = 90.0


def without_token(environment: dict[str, str]) -> dict[str, str]:
    """Return an environment in which Ray sends no token."""
    secret = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
    return {name: x for name, x in environment.items() if name not in secret} | {"RAY_AUTH_MODE": "disabled"}


def token_demanded(address: str) -> str:
    """Return "yes" or "no", or in other words why it is not known whether a cluster demands a token."""
    command = [sys.executable, "-m", __name__, address]
    try:
        done = subprocess.run(
            command, env=without_token({**os.environ}), capture_output=True, text=True, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {PATIENCE:.0f} s"
    lines = [line for line in (done.stdout.strip() or done.stderr.strip()).splitlines() if line.strip()]
    return lines[-1] if lines else f"the question ended with code {done.returncode}"


def ask(ray: Any, address: str) -> str:
    """Return what `token_demanded` reads: the cluster's answer to a request without a token."""
    raylet, services = (importlib.import_module(f"ray.{name}") for name in ("_raylet", "_private.services"))
    try:
        resolved = services.canonicalize_bootstrap_address(address)
        if resolved is None:
            return f"there is no cluster at {address}"
        raylet.GcsClient(address=resolved).internal_kv_keys(b"", None)
    except ray.exceptions.AuthenticationError:
        return "yes"
    except (ConnectionError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        return " ".join(str(error).split())[:300] or type(error).__name__
    return "no"


if __name__ == "__main__":
    print(ask(importlib.import_module("ray"), sys.argv[1]))
