"""Does a central critic help? MAPPO against IPPO on a choir whose luck only the central critic can see.

python benchmarks/mappo.py                 10 seeds of both, about two minutes
The same actor, the same sizes, the same seeds; only what the critic sees differs. Compared are the share of right answers
over the whole training and in its last tenth, and the steps to 90 % right. Exit code 1 if the central critic is not better.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from paths import interval, sign_flip_p

HERE = Path(__file__).resolve().parent
STEPS, SEEDS, BAR = 60_000, 10, 0.9
SETTINGS = {
    "envs": 64,
    "rollout_steps": 8,
    "minibatch_size": 128,
    "epochs": 4,
    "lr": 1e-3,
    "ent_coef": 0.0,
    "gamma": 0.99,
}
SIDES = {"ippo": "surefoot/Choir-v0", "mappo": "surefoot/ChoirCentral-v0"}


def policy_for(world: Any, seed: int) -> Any:
    """An actor that sees "obs" and a critic that sees every part: by the knob where there is one, else by a network."""
    from surefoot import ActorCritic, NetConfig

    parts = tuple(name for name in world.observation if name != "obs")
    if any(field.name == "critic_only" for field in dataclasses.fields(NetConfig)):
        return ActorCritic(world.observation, world.action, NetConfig.make(critic_only=parts), seed=seed)
    return ActorCritic(world.observation, world.action, network=_network(world), seed=seed)


def _network(world: Any) -> Any:
    import torch
    from torch import nn

    from surefoot.nets.torsos import layer, mlp

    class CentralCritic(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            own, every = world.observation["obs"].size, sum(box.size for box in world.observation.values())
            self.actor = mlp(own, (64, 64), activation="tanh", ortho_init=True)
            self.critic = mlp(every, (64, 64), activation="tanh", ortho_init=True)
            self.policy_out = layer(64, world.action.n, gain=0.01, ortho_init=True)
            self.value_out = layer(64, 1, gain=1.0, ortho_init=True)

        def forward(self, obs: dict[str, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
            everything = torch.cat([part.flatten(1) for part in obs.values()], dim=1)
            return self.policy_out(self.actor(obs["obs"])), self.value_out(self.critic(everything)).squeeze(-1)

    return CentralCritic()


def train(env: str, steps: int, seed: int) -> dict[str, Any]:
    """One run: the share of right answers in each update, and numbers made of it."""
    import torch

    from surefoot import Training, make_world
    from surefoot.train.spec import make_spec

    # A network of one's own draws its first weights from torch's generator; the same for both sides.
    torch.manual_seed(seed)
    world = make_world(env, SETTINGS["envs"])
    spec = make_spec(env, world.action, preset_name="sb3", settings={**SETTINGS, "seed": seed}, total_steps=steps)
    training = Training(spec, world=world, policy=policy_for(world, seed))
    right: list[float] = []
    explained: list[float] = []
    begin = time.process_time()
    for report in training:
        right.append(float(np.mean([episode.success for episode in training.collector.episodes.take_fresh()])))
        explained.append(report.explained_variance)
    tenth = max(1, len(right) // 10)
    smooth = np.convolve(right, np.ones(5) / 5, mode="valid")
    above = np.flatnonzero(smooth >= BAR)
    return {
        "area": float(np.mean(right)),
        "last_tenth": float(np.mean(right[-tenth:])),
        "explained_variance": float(np.mean(explained[-tenth:])),
        "steps_to_bar": int((above[0] + 5) * spec.ppo.batch_size) if len(above) else None,
        "cpu_seconds": round(time.process_time() - begin, 2),
    }


def compare(runs: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Means of both sides, their paired difference with its interval and p."""
    rows: list[dict[str, Any]] = []
    for number in ("area", "last_tenth"):
        gap = [b[number] - a[number] for a, b in zip(runs["ippo"], runs["mappo"], strict=True)]
        low, high = interval(gap)
        means = {side: float(np.mean([run[number] for run in runs[side]])) for side in SIDES}
        rows.append(
            {"number": number, **means, "gap": float(np.mean(gap)), "low": low, "high": high, "p": sign_flip_p(gap)}
        )
    return rows


def table(rows: list[dict[str, Any]], runs: dict[str, list[dict[str, Any]]]) -> str:
    lines = ["| share of right answers | IPPO | MAPPO | difference [95 %] | p |", "|---|---|---|---|---|"]
    words = {"area": "over the whole training", "last_tenth": "in the last tenth"}
    lines += [
        f"| {words[row['number']]} | {row['ippo']:.3f} | {row['mappo']:.3f} | {row['gap']:+.3f} [{row['low']:+.3f}, "
        f"{row['high']:+.3f}] | {row['p']:.4f} |"
        for row in rows
    ]
    for side in SIDES:
        there = [run["steps_to_bar"] for run in runs[side] if run["steps_to_bar"] is not None]
        told = f"median {np.median(there):,.0f} steps" if there else "never"
        explained = np.mean([run["explained_variance"] for run in runs[side]])
        lines.append(
            f"\n{side.upper()}: {len(there)} of {len(runs[side])} seeds reach {BAR:.0%} ({told}); the critic explains "
            f"{explained:.0%} of the returns' variance"
        )
    return "\n".join(lines)


def main() -> int:
    import torch

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "mappo.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    runs = {side: [train(env, options.steps, seed) for seed in range(options.seeds)] for side, env in SIDES.items()}
    rows = compare(runs)
    print(table(rows, runs))
    result = {"steps": options.steps, "settings": SETTINGS, "rows": rows, "runs": runs}
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if all(row["low"] > 0 for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
