from __future__ import annotations

from surefoot.data.seeds import seed_for


def test_purposes_and_seeds_do_not_meet():
    seeds = {seed_for(purpose, seed) for purpose in ("shuffle", "act", "weights", "play") for seed in range(100)}
    assert len(seeds) == 400
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_a_seed_is_the_same_on_every_machine():
    # sha256 of "act:7", first eight bytes, halved: from the command line's own sha256sum.
    assert seed_for("act", 7) == int("7c5f9aec4001b4a3", 16) >> 1
