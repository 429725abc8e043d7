"""Does self-play get better all the way? Connect Four on one core, then the last policy against each of its ancestors.

python benchmarks/selfplay.py                      a few minutes; --steps and --games change the length
A policy's score (a draw is half a win) over both sides must have its 95 % lower bound above ½ against the policies at
0, 10, …, 90 % of training. Exit code 1 if it has not.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
STEPS, GAMES, TENTHS = 4_000_000, 4_000, 10
SETTINGS = {
    "envs": 128,
    "rollout_steps": 32,
    "minibatch_size": 512,
    "epochs": 4,
    "lr": 7e-4,
    "gamma": 0.99,
    "lam": 0.95,
    "ent_coef": 0.03,
    "hidden": (128, 128),
    "activation": "relu",
}


def train(steps: int, seed: int) -> tuple[Any, list[tuple[int, Any]], float]:
    """A self-play, the weights it had after each tenth (the first ones included, the last not), and CPU seconds."""
    from surefoot.envs.builtin.connect_four import Connect
    from surefoot.train.algorithms.opponents import SelfPlayConfig, weights_of
    from surefoot.train.algorithms.selfplay import SelfPlay

    play = SelfPlay(
        Connect(),
        total_steps=steps,
        config=SelfPlayConfig(every=max(1, steps // 20)),
        settings={**SETTINGS, "seed": seed},
    )
    ancestors, begin = [(0, weights_of(play.policy))], time.process_time()
    for _ in play:
        done = play.training.env_steps
        if len(ancestors) < TENTHS and done >= len(ancestors) * steps / TENTHS:
            ancestors.append((done, weights_of(play.policy)))
            print(f"{done:>10,} steps  {time.process_time() - begin:5.0f} s  rating {play.pool.rating:.0f}", flush=True)
    return play, ancestors, time.process_time() - begin


def compare(play: Any, ancestors: list[tuple[int, Any]], games: int) -> list[dict[str, Any]]:
    """The last policy against each of `ancestors`, and against chance."""
    from surefoot.train.algorithms.opponents import player_of
    from surefoot.train.algorithms.selfplay import play_match

    rows: list[dict[str, Any]] = []
    for number, (steps, weights) in enumerate(ancestors):
        match = play_match(play.game, play.policy, player_of(play.policy, weights), games, seed=number)
        low, high = match.interval
        found = {"wins": match.wins, "draws": match.draws, "losses": match.losses}
        rows.append({"steps": steps, **found, "score": match.score, "low": low, "high": high, "met": low > 0.5})
    return rows


def table(rows: list[dict[str, Any]], total: int) -> str:
    lines = [
        "| against the policy at | wins | draws | losses | score [95 %] | bound above ½ |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['steps'] / total:.0%} ({row['steps']:,} steps) | {row['wins']:,} | {row['draws']:,} | {row['losses']:,} "
        f"| {row['score']:.3f} [{row['low']:.3f}, {row['high']:.3f}] | {'yes' if row['met'] else 'NO'} |"
        for row in rows
    ]
    return "\n".join(lines)


def main() -> int:
    import torch

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--games", type=int, default=GAMES)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "selfplay.json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    play, ancestors, seconds = train(options.steps, options.seed)
    rows = compare(play, ancestors, options.games)
    print(f"\nConnect Four, {options.steps:,} steps, {seconds:.0f} CPU-seconds, {options.games:,} games each\n")
    print(table(rows, options.steps))
    print(f"\n{play.pool.table()}")
    result = {
        "machine": platform.machine(),
        "path": play.training.learner.path,
        "steps": options.steps,
        "seed": options.seed,
        "games": options.games,
        "cpu_seconds": round(seconds, 1),
        "settings": SETTINGS,
        "self_play": play.pool.config.to_json(),
        "rows": rows,
    }
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    return 0 if all(row["met"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
