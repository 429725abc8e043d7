"""What a world returns is brought to the declared dtypes with its digits, or refused in a sentence: on both paths."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from surefoot.data.spaces import Box, Discrete
from surefoot.envs.api import Step, View
from surefoot.envs.declared import declared_step, declared_view
from surefoot.errors import EnvError
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.train.collect.collector import Collector

N, NUMBERS = 4, np.array([1, 0, 1, 1])
KINDS = [
    "int8",
    "uint8",
    "int16",
    "int32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
    "bool",
    ">i4",
    ">f8",
    "O",
]


class Tally:
    """Rewards 1, 0, 1, 1 and rows of 0 and 1, in the dtype that one asks for."""

    name, inexact, num_envs = "Tally", None, N
    action = Discrete(2)

    def __init__(self, **kinds: Any) -> None:
        self.kinds, self.observation = kinds, {"obs": Box((2,))}

    def _as(self, name: str, value: np.ndarray) -> Any:
        kind = self.kinds.get(name)
        return value if kind is None else kind(value) if callable(kind) else value.astype(kind)

    def _view(self) -> View:
        rows = np.stack([NUMBERS, 1 - NUMBERS], axis=1).astype(np.float32)
        mask = self._as("mask", np.array([[True, False]] * N)) if "mask" in self.kinds else None
        return View(obs={"obs": self._as("obs", rows)}, action_mask=mask)

    def reset(self, seed: int) -> View:
        return self._view()

    def step(self, action: np.ndarray) -> Step:
        none = np.zeros(N, bool)
        return Step(
            view=self._view(),
            reward=self._as("reward", NUMBERS.astype(float)),
            terminated=self._as("terminated", NUMBERS == 0),
            truncated=self._as("truncated", none),
            valid=self._as("valid", ~none),
        )


def collected(path: str, **kinds: Any) -> Any:
    world: Any = Tally(**kinds)
    policy = ActorCritic(world.observation, world.action, NetConfig(hidden=(4,)))
    return Collector(world, policy, steps=3, gamma=0.9, path=path).collect()


ODD = {
    "list": lambda x: x.tolist(),
    "strided": lambda x: np.repeat(x, 2, axis=0)[::2],
    "reversed": lambda x: x[::-1].copy()[::-1],
    "read-only": lambda x: (x.setflags(write=False), x)[1],
    "fortran": np.asfortranarray,
    "column": lambda x: x[..., None],
}


@pytest.mark.parametrize("path", ["auto", "torch"])
@pytest.mark.parametrize("what", ["reward", "obs", "mask", "terminated", "valid"])
@pytest.mark.parametrize("kind", [*KINDS, *ODD])
def test_any_dtype_of_the_same_numbers_gives_the_same_rollout(path, what, kind):
    if (what, kind) == ("obs", "list"):
        kind = "float64"
    usual = collected(path, **({"mask": "bool"} if what == "mask" else {}))
    other = collected(path, **{what: ODD.get(kind, kind)})
    assert usual.reward[0].tolist() == [1.0, 0.0, 1.0, 1.0]
    for name in ("reward", "terminated", "truncated", "valid", "action_mask"):
        np.testing.assert_array_equal(getattr(other, name), getattr(usual, name), err_msg=name)
        assert getattr(other, name) is None or getattr(other, name).dtype == getattr(usual, name).dtype
    np.testing.assert_array_equal(other.obs["obs"], usual.obs["obs"])
    assert other.obs["obs"].dtype == np.float32


@pytest.mark.parametrize("path", ["auto", "torch"])
@pytest.mark.parametrize(
    ("what", "kind", "sentence"),
    [
        ("reward", "U1", "the reward as <U1; it must be float64"),
        ("reward", "complex64", "the reward as complex64"),
        ("reward", lambda x: x[:3], r"the reward of shape \[3\]; it must be \[4\]"),
        ("reward", lambda x: np.array([None] * N), "the reward as object"),
        ("obs", lambda x: x[:, :1], r"the observation 'obs' of shape \[4, 1\]; it must be \[4, 2\]"),
        ("obs", lambda x: x.astype(str), "the observation 'obs' as <U"),
        ("mask", lambda x: x.astype(float) + 0.5, "the action mask as float64; it must be bool"),
        ("mask", lambda x: x[:, :1], r"the action mask of shape \[4, 1\]"),
        ("terminated", lambda x: x * 0.5, "terminated as float64"),
    ],
)
def test_what_cannot_be_converted_is_refused_by_name(path, what, kind, sentence):
    with pytest.raises(EnvError, match=f"Tally returned {sentence}"):
        collected(path, **{what: kind})


def test_nothing_is_copied_that_is_as_declared():
    world: Any = Tally(mask="bool")
    step = world.step(np.zeros(N))
    assert declared_view(world, step.view) is step.view
    assert declared_step(world, step).reward is step.reward


def test_other_parts_and_a_cut_without_its_last_observation_are_refused():
    world: Any = Tally()
    with pytest.raises(EnvError, match=r"parts \['x'\]; its spaces declare \['obs'\]"):
        declared_view(world, View(obs={"x": np.zeros((N, 2))}))
    cut = Tally(truncated=lambda x: ~x).step(np.zeros(N))
    with pytest.raises(EnvError, match="without final_obs"):
        declared_step(world, cut)
