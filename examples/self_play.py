"""Connect Four learned from nothing but games against itself, then a match against the policy it began with.

python examples/self_play.py        about ten seconds
"""

import os

import torch

from surefoot.envs.builtin.connect_four import Connect
from surefoot.train.algorithms.opponents import SelfPlayConfig, player_of
from surefoot.train.algorithms.selfplay import SelfPlay, play_match

STEPS = int(os.environ.get("SUREFOOT_EXAMPLE_STEPS", "300_000"))


def main() -> None:
    torch.set_num_threads(1)
    play = SelfPlay(
        Connect(),
        total_steps=STEPS,
        config=SelfPlayConfig(every=max(1, STEPS // 10)),
        settings={"envs": 128, "rollout_steps": 32, "minibatch_size": 512, "epochs": 4, "lr": 1e-3, "ent_coef": 0.02},
    )
    for report in play:
        if report.update % 20 == 0:
            length = play.training.collector.episodes.recent()[1] or 0.0
            print(f"{play.training.env_steps:8,} steps  rating {play.pool.rating:5.0f}  moves a game {length:.1f}")

    print(play.pool.table())
    first = player_of(play.policy, play.pool.past[0].weights)
    match = play_match(play.game, play.policy, first, 1000)
    low, high = match.interval
    print(f"against its first self: {match.score:.3f} of the points, 95 % between {low:.3f} and {high:.3f}")


if __name__ == "__main__":
    main()
