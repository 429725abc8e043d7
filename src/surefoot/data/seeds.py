"""One seed per run, one random stream per purpose."""

from __future__ import annotations

import hashlib


def seed_for(purpose: str, seed: int) -> int:
    """Return a 63-bit seed for one purpose: two generators with the same seed would draw the same numbers (P36)."""
    digest = hashlib.sha256(f"{purpose}:{seed}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
