"""One seed a run, one stream of random numbers a purpose."""

from __future__ import annotations

import hashlib


def seed_for(purpose: str, seed: int) -> int:
    """A seed of its own for each purpose (63 bits): two generators started from one number would draw in step (P36)."""
    digest = hashlib.sha256(f"{purpose}:{seed}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
