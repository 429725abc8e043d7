"""A save that returned is the one that loads after kill -9 at any moment. `SUREFOOT_KILLS` sets how often."""

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "kills.py"
KILLS = int(os.environ.get("SUREFOOT_KILLS", "6"))


def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("kills", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # Dataclasses look their module up.
    spec.loader.exec_module(module)
    return module


def test_no_kill_loses_an_acknowledged_checkpoint():
    count = benchmark().kill_campaign(KILLS, seed=1)
    assert count.kills == KILLS
    assert count.acknowledged >= KILLS, "the children were killed before they saved anything"
    assert (count.lost, count.unreadable, count.damaged) == (0, 0, 0)


def test_the_campaign_catches_a_save_that_is_acknowledged_too_early():
    assert benchmark().kill_campaign(6, mode="early", seed=1).lost > 0


def test_the_campaign_catches_a_save_that_overwrites_the_only_checkpoint():
    assert benchmark().kill_campaign(6, mode="in place", seed=1).unreadable > 0
