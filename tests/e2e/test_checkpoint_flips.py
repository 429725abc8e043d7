"""Any damage to a checkpoint is reported, never loaded, and the one before it takes its place."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "kills.py"


def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("kills", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # Dataclasses look their module up.
    spec.loader.exec_module(module)
    return module


def test_every_flipped_bit_is_reported():
    count = benchmark().harm_campaign(1000, 0, seed=1)
    assert (count.tried, count.reported, count.silent) == (1000, 1000, 0)


def test_every_truncation_is_reported():
    count = benchmark().harm_campaign(0, 200, seed=1)
    assert (count.tried, count.reported, count.silent) == (200, 200, 0)


def test_without_the_manifest_most_flips_would_have_been_loaded():
    assert benchmark().bare_flips(200, seed=1).silent > 150
