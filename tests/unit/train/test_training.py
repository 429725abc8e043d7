"""A run in memory: it ends, it repeats, it goes on to the last bit, it refuses what does not fit."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from torch import Tensor, nn

from surefoot.data.spaces import Box, Discrete
from surefoot.envs.builtin.toys import TOYS
from surefoot.envs.gym.vector_env import VectorWorld
from surefoot.errors import CheckpointIncompatible, ConfigError, PolicyError
from surefoot.learn.config import PPOConfig
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.policy import load_weights
from surefoot.train.config import CollectConfig
from surefoot.train.spec import RunSpec
from surefoot.train.training import Training


def a_spec(env: str = "CartPole-v1", *, total_steps: int = 200, net=None, collect=None, **ppo: Any) -> RunSpec:
    knobs = {
        "rollout_steps": 16,
        "envs": 4,
        "minibatch_size": 32,
        "epochs": 2,
        "lr": "lin_3e-3",
        "device": "cpu",
        **ppo,
    }
    return RunSpec(
        env=env,
        preset="sb3",
        total_steps=total_steps,
        ppo=PPOConfig(**knobs),
        net=NetConfig(**{"hidden": (8,), "normalize_obs": True, **(net or {})}),
        collect=CollectConfig(**{"normalize_reward": True, **(collect or {})}),
        eval_every=0,
        checkpoint_every=100,
    )


def digits(training: Training) -> dict[str, Tensor]:
    return {name: x.clone() for name, x in training.policy.state_dict().items()}


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return all(torch.equal(x, b[name]) for name, x in a.items())


def test_a_run_ends_once_its_steps_are_done():
    training = Training(a_spec())
    reports = list(training)
    assert len(reports) == 4  # 64 steps an update, 200 asked for
    assert training.env_steps == 256
    assert training.finished
    # Each update stands where the steps before it have led: 0, 64, 128 and 192 of 200.
    assert [r.lr for r in reports] == pytest.approx([3e-3, 3e-3 * 136 / 200, 3e-3 * 72 / 200, 3e-3 * 8 / 200])


def test_the_times_of_collecting_stand_beside_those_of_learning():
    report = Training(a_spec()).update()
    assert set(report.seconds) == {"collect", "env", "policy", "prepare", "learn"}


def test_a_run_is_its_seed():
    runs = [Training(a_spec(seed=s)) for s in (3, 3, 4)]
    reports = [[r.metrics() for r in run] for run in runs]
    assert reports[0] == reports[1]
    assert reports[0] != reports[2]
    assert same(digits(runs[0]), digits(runs[1]))


def test_what_else_uses_torchs_or_numpys_generators_does_not_matter():
    torch.manual_seed(1)
    np.random.seed(1)
    first = Training(a_spec())
    for _ in first:
        torch.rand(3)
        np.random.rand(3)
    second = Training(a_spec())
    list(second)
    assert same(digits(first), digits(second))


@pytest.mark.parametrize("after", [1, 2, 3])
@pytest.mark.parametrize(
    ("env", "net"),
    [("CartPole-v1", {}), ("Pendulum-v1", {"gsde": True, "gsde_every": 5}), ("surefoot/Masked-v0", {})],
)
def test_a_run_goes_on_from_its_state_to_the_last_bit(env, net, after):
    whole = Training(a_spec(env, net=net))
    for _ in range(after):
        whole.update()
    saved = copied(whole.state())
    rest = [r.metrics() for r in whole]
    again = Training(a_spec(env, net=net))
    again.set_state(saved)
    assert [r.metrics() for r in again] == rest
    assert same(digits(whole), digits(again))
    assert again.env_steps == whole.env_steps
    assert again.collector.episodes.recent() == whole.collector.episodes.recent()


def copied(tree: Any) -> Any:
    """As a checkpoint would bring it back: arrays for tensors, nothing shared."""
    if isinstance(tree, dict):
        return {name: copied(x) for name, x in tree.items()}
    if isinstance(tree, Tensor):
        return tree.detach().cpu().numpy().copy()
    return tree.copy() if isinstance(tree, np.ndarray) else tree


@pytest.mark.parametrize("part", ["weights", "optimizer", "learner", "collector"])
def test_every_part_of_the_state_is_needed(part):
    whole = Training(a_spec())
    whole.update()
    saved = copied(whole.state())
    list(whole)
    again = Training(a_spec())
    saved[part] = copied(again.state())[part]
    again.set_state(saved)
    list(again)
    assert not same(digits(whole), digits(again))


class OneShot(gym.Env[np.ndarray, int]):
    """Every episode is one step long."""

    observation_space, action_space = gym.spaces.Box(0, 1, (1,), np.float32), gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), float(action), True, False, {}


def test_a_schedule_lasts_as_long_as_the_run_even_where_half_the_rows_only_reset():
    envs = SyncVectorEnv([OneShot] * 4, autoreset_mode=AutoresetMode.NEXT_STEP)
    training = Training(a_spec("OneShot", total_steps=256), world=VectorWorld(envs))
    rates = [report.lr for report in training]
    assert training.env_steps == 256
    assert min(rates) > 0.0  # an update with a learning rate of 0 learns nothing
    assert rates == sorted(rates, reverse=True)


def test_a_world_of_another_width_is_refused():
    with pytest.raises(ConfigError, match="3 envs .* envs=4"):
        Training(a_spec(), world=TOYS["surefoot/Bandit-v0"](3))


class Dropping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, obs: dict[str, Tensor]) -> Tensor:
        return self.drop(obs["obs"])


def test_a_policy_with_dropout_is_refused_unless_one_insists():
    def policy(net: NetConfig) -> ActorCritic:
        return ActorCritic({"obs": Box((4,))}, Discrete(2), net, torso=Dropping())

    with pytest.raises(PolicyError, match="Dropout"):
        Training(a_spec(), policy=policy(NetConfig()))
    insisting = a_spec(net={"allow_stateful_norm": True, "normalize_obs": False})
    training = Training(insisting, policy=policy(insisting.net))
    assert training.update().first_ratio_error > 1e-4  # and the report says what it costs


def test_weights_of_another_policy_are_refused_by_name_and_shape():
    small, large = (ActorCritic({"obs": Box((4,))}, Discrete(2), NetConfig(hidden=(n,))) for n in (4, 8))
    with pytest.raises(CheckpointIncompatible, match=r"network\.actor\.0\.weight is \[8, 4\] .* \[4, 4\] in this"):
        load_weights(small, large.state_dict())
    deeper = ActorCritic({"obs": Box((4,))}, Discrete(2), NetConfig(hidden=(4, 4)))
    with pytest.raises(CheckpointIncompatible, match=r"absent in this policy"):
        load_weights(small, deeper.state_dict())


def test_the_normaliser_is_among_the_weights():
    training = Training(a_spec())
    training.update()
    again = ActorCritic(training.world.observation, training.world.action, training.spec.net)
    load_weights(again, training.state()["weights"])
    assert again.flatten is not None
    assert again.flatten.normalizer is not None
    assert again.flatten.normalizer.count.item() == 64


def test_the_reward_scaler_uses_the_learners_discount():
    assert Training(a_spec(gamma=0.83)).collector.scaler.gamma == 0.83
