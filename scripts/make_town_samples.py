"""Writes the replay samples that come along: one town seen by chance, one by the script that quarrels, one by idlers.

python scripts/make_town_samples.py        the same bytes of arrays every time; commit what changed
"""

from __future__ import annotations

import json
from pathlib import Path

from surefoot.data.replay import write_sample
from surefoot.data.replayset import write_manifest
from surefoot.town.scenarios.scenario import load_scenario
from surefoot.town.training.capture import capture_behaviour

FOLDER = Path(__file__).resolve().parent.parent / "src/surefoot/town/samples"
KINDS = {"base": ("random", 11), "conflict_high": ("script", 12), "conflict_low": ("random", 13)}


def main() -> None:
    scenario = load_scenario(FOLDER / "poc_hybrid.yaml")
    entries = []
    for name, (behaviour, seed) in KINDS.items():
        sample = capture_behaviour(scenario, behaviour, scenario.ticks, seed=seed).samples[0]
        sample.meta["sample_id"] = f"observation_hybrid_sample_{name}"
        path = write_sample(sample, FOLDER / f"observation_hybrid_sample_{name}.npz")
        entries.append(
            {"sample": path.name, "meta": path.with_suffix(".json").name, "agent_id": sample.meta["agent_id"]}
        )
        about = json.loads(path.with_suffix(".json").read_text())
        print(path.name, about["metrics"]["rivalry_max_max"], about["sha256"][:12])
    write_manifest(FOLDER / "replay_manifest.json", entries, {"config_id": scenario.name, "variant": "hybrid"})


if __name__ == "__main__":
    main()
