"""Your own network inside the policy: a torso, on which actor and critic are built.

python examples/custom_network.py
"""

import os

import torch
from torch import Tensor, nn

from surefoot import PPO, ActorCritic, NetConfig, evaluate_policy, make_world

STEPS = int(os.environ.get("SUREFOOT_EXAMPLE_STEPS", "30_000"))


class Residual(nn.Module):
    """Observations are a dict of tensors [B, …]; what comes out is [B, features]."""

    def __init__(self, inputs: int, width: int = 64) -> None:
        super().__init__()
        self.first = nn.Linear(inputs, width)
        self.second = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)  # BatchNorm and Dropout are refused: they act otherwise than they learn

    def forward(self, obs: dict[str, Tensor]) -> Tensor:
        x = torch.tanh(self.first(obs["obs"]))
        return self.norm(x + torch.tanh(self.second(x)))


def main() -> None:
    world = make_world("CartPole-v1", 8)
    torso = Residual(world.observation["obs"].size)
    policy = ActorCritic(world.observation, world.action, NetConfig(hidden=(64,)), torso=torso, seed=1)
    model = PPO(policy, world, seed=1)
    model.learn(STEPS, callback=lambda report: print(f"update {report.update}: kl {report.approx_kl:.4f}", end="\r"))
    mean, std = evaluate_policy(model, "CartPole-v1", n_eval_episodes=20)
    print(f"\n{mean:.0f} ± {std:.0f} over 20 episodes")

    model.save("runs/examples/own-network")
    again = ActorCritic(world.observation, world.action, NetConfig(hidden=(64,)), torso=Residual(4))
    PPO.load("runs/examples/own-network", policy=again)


if __name__ == "__main__":
    main()
