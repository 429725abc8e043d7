"""Rollouts written by the kernel, held to those that the torch path writes in a world that does not care what one does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from surefoot import native
from surefoot.data.rollout import Rollout
from surefoot.data.spaces import ActionSpace, Box, Discrete, Hybrid, MultiDiscrete
from surefoot.envs.api import Step, View
from surefoot.errors import NonFiniteValue
from surefoot.learn.config import PPOConfig
from surefoot.learn.learner import Learner
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.policy import PolicyInput
from surefoot.train.collect.collector import Collector
from surefoot.train.config import CollectConfig

pytestmark = pytest.mark.skipif(native.kernel is None, reason=native.why_not)
PLAIN = {"obs": Box((3,))}
MIXED = {"b": Box((2,)), "a": Box((2, 2), 0.0, 255.0, "uint8")}


class Weather:
    """Goes its own way: observations, rewards and ends follow from the seed, whatever is done."""

    name, inexact = "Weather", None

    def __init__(self, action: ActionSpace, observation=None, *, masked=False, late=False, bad=None, lost=()) -> None:
        self.action, self.observation = action, observation or PLAIN
        self.num_envs, self.masked, self.late = 4, masked, late
        self.bad: dict[int, tuple[int, str]] = bad or {}
        self.got: list[np.ndarray] = []
        self.lost = lost
        """At these steps streams 1 and 2 are lost."""
        self.reset(0)

    def reset(self, seed: int) -> View:
        self.rng, self.clock = np.random.default_rng(seed), 0
        self.waiting = np.zeros(self.num_envs, bool)
        return self._view()

    def _view(self) -> View:
        obs = {}
        for name, box in self.observation.items():
            shape = (self.num_envs, *box.shape)
            whole = box.dtype == "uint8"
            obs[name] = self.rng.integers(0, 256, shape).astype(np.uint8) if whole else self.rng.normal(size=shape)
            obs[name] = obs[name].astype(box.dtype)
        mask = None
        if self.masked:
            mask = self.rng.random((self.num_envs, 5)) < 0.5
            mask[:, [1, 4]] = True
        return View(obs=obs, action_mask=mask)

    def step(self, action: np.ndarray) -> Step:
        self.got.append(action.copy())
        self.clock += 1
        n = self.num_envs
        self.waiting[1:3] |= self.clock in self.lost
        terminated = (self.rng.random(n) < 0.2) & ~self.waiting
        truncated = (self.rng.random(n) < 0.2) & ~terminated & ~self.waiting
        reward, valid, ended = self.rng.normal(size=n), ~self.waiting, terminated | truncated
        view, final = self._view(), self._view().obs if ended.any() else None
        if self.clock in self.bad:
            stream, what = self.bad[self.clock]
            if what == "reward":
                reward[stream] = np.nan
            else:
                view.obs["obs"][stream, 1] = np.inf
        self.waiting = ended if self.late else np.zeros(n, bool)
        return Step(view=view, reward=reward, terminated=terminated, truncated=truncated, valid=valid, final_obs=final)

    def reset_streams(self, streams: np.ndarray) -> View | None:
        return None

    def state(self) -> dict[str, Any]:
        return {}

    def set_state(self, state: dict[str, Any]) -> View:
        return self._view()

    def render(self) -> None: ...

    def close(self) -> None: ...


SPACES = {
    "discrete": (Discrete(5, start=2), {}),
    "several": (MultiDiscrete((2, 3)), {}),
    "gaussian": (Box((2, 2), -0.5, 0.5), {}),
    "squashed": (Box((2,), -2.0, 1.0), {"squash": True}),
    "gsde": (Box((2,), -1.0, 1.0), {"gsde": True, "gsde_every": 3}),
    "beta": (Box((2, 2), -0.5, 0.5), {"beta": True}),
    "hybrid": (Hybrid((2, 3), Box((2,), -2.0, 1.0)), {}),
    "hybrid squashed": (Hybrid((5,), Box((2,), -2.0, 1.0)), {"squash": True}),
    "hybrid gsde": (Hybrid((2, 3), Box((2, 2), -2.0, 1.0)), {"gsde": True}),
    "hybrid beta": (Hybrid((2, 3), Box((1,), -2.0, 1.0)), {"beta": True}),
    "gru": (Discrete(5, start=2), {"memory": "gru", "memory_size": 9}),
    "lstm": (Box((2,), -2.0, 1.0), {"memory": "lstm", "memory_size": 5, "shared": True}),
}
CENTRAL = {"central": (Discrete(5, start=2), {"critic_only": ("b",)})}


def pair(kind: str, collect: dict[str, Any] | None = None, **world: Any) -> tuple[Collector, Collector]:
    """The same world and weights twice: acted in by the kernel, and by torch."""
    action, net = (SPACES | CENTRAL)[kind]
    made = []
    for path in ("auto", "torch"):
        place = Weather(action, **world)
        policy = ActorCritic(
            place.observation, action, NetConfig(hidden=(8,), normalize_obs="late" in world, **net), seed=1
        )
        policy.absorb({name: np.stack([x[0], x[1], x[2]]) for name, x in place.reset(5).obs.items()})
        config = CollectConfig(**(collect or {}))
        made.append(Collector(place, policy, steps=30, gamma=0.9, config=config, seed=3, path=path))
    assert made[0].actor is not None
    assert made[1].actor is None
    return made[0], made[1]


def assert_same_experience(ours: Rollout, theirs: Rollout) -> None:
    for name in ("reward", "terminated", "truncated", "start", "valid", "policy_version"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)
    for name, part in theirs.obs.items():
        np.testing.assert_array_equal(ours.obs[name], part)
    assert (ours.action.shape, ours.action.dtype) == (theirs.action.shape, theirs.action.dtype)
    np.testing.assert_allclose(ours.value, theirs.value, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(ours.next_value, theirs.next_value, rtol=1e-5, atol=1e-5)
    assert (ours.action_mask is None) == (theirs.action_mask is None)
    if theirs.action_mask is not None:
        np.testing.assert_array_equal(ours.action_mask, theirs.action_mask)
    assert ours.stats == theirs.stats
    assert ours.context.keys() == theirs.context.keys()
    for name, state in theirs.context.items():
        np.testing.assert_allclose(ours.context[name], state, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize(
    ("kind", "world"),
    [
        ("discrete", {}),
        ("discrete", {"masked": True}),
        ("discrete", {"late": True}),
        ("discrete", {"observation": MIXED}),
        ("several", {"masked": True, "late": True, "observation": MIXED}),
        ("gaussian", {}),
        ("gaussian", {"late": True}),
        ("squashed", {"observation": MIXED}),
        ("discrete", {"lost": (2, 3, 17, 60, 90)}),
        ("gaussian", {"observation": MIXED, "lost": (2, 3, 17, 60, 90)}),
        ("beta", {"late": True}),
        ("hybrid", {"masked": True}),
        ("hybrid beta", {"masked": True, "observation": MIXED}),
        ("central", {"observation": MIXED}),
        ("central", {"observation": MIXED, "masked": True, "late": True}),
        ("gru", {}),
        ("gru", {"masked": True, "late": True}),
        ("gru", {"observation": MIXED, "lost": (2, 3, 17, 60, 90)}),
        ("lstm", {"late": True}),
        ("lstm", {"lost": (2, 3, 17, 60, 90)}),
    ],
)
def test_the_kernel_writes_down_what_torch_would(kind, world):
    ours, theirs = pair(kind, **world)
    for version in range(3):
        mine, its = ours.collect(version), theirs.collect(version)
        assert_same_experience(mine, its)
    assert ours.env_steps == theirs.env_steps
    np.testing.assert_allclose(ours.episodes.returns, theirs.episodes.returns)
    np.testing.assert_array_equal(ours.episodes.lengths, theirs.episodes.lengths)
    assert ours.episodes.finished == theirs.episodes.finished
    assert ours.episodes.recent() == pytest.approx(theirs.episodes.recent())
    np.testing.assert_array_equal(ours.start, theirs.start)


@pytest.mark.parametrize("kind", SPACES)
def test_actions_are_stored_as_chosen_and_given_as_the_world_takes_them(kind):
    ours, _ = pair(kind)
    rollout = ours.collect()
    given = np.stack(ours.world.got)
    expected = ours.policy.env_action(rollout.action.reshape(-1, *rollout.action.shape[2:]))
    np.testing.assert_allclose(given.reshape(expected.shape), expected, rtol=1e-6, atol=1e-6)


def test_a_fresh_rollout_has_the_log_probs_that_the_learner_finds():
    for kind in SPACES | CENTRAL:
        ours, _ = pair(kind, late=True, observation=MIXED if kind in CENTRAL else None)
        for path in ("native", "torch"):
            report = Learner(ours.policy, PPOConfig(path=path, lr=1e-9)).update(ours.collect(0))
            assert report.first_ratio_error < 1e-5, (kind, path)


class Untidy(Weather):
    """Answers in arrays of other kinds: rewards of float32, observations of float64 that lie in columns."""

    def step(self, action: np.ndarray) -> Step:
        step = super().step(action)
        step.reward = step.reward.astype(np.float32)
        step.view = View(obs={"obs": np.asfortranarray(step.view.obs["obs"].astype(np.float64))})
        return step


def test_a_world_with_arrays_of_other_kinds_is_understood():
    made = []
    for path in ("auto", "torch"):
        world = Untidy(Discrete(3))
        policy = ActorCritic(world.observation, world.action, NetConfig(hidden=(8,)), seed=1)
        made.append(Collector(world, policy, steps=20, gamma=0.9, seed=3, path=path).collect())
    np.testing.assert_allclose(made[0].reward, made[1].reward)
    np.testing.assert_allclose(made[0].obs["obs"], made[1].obs["obs"], rtol=1e-6)
    np.testing.assert_allclose(made[0].next_value, made[1].next_value, rtol=1e-4, atol=1e-5)


def test_forbidden_actions_are_never_taken():
    ours, _ = pair("discrete", masked=True)
    rollout = ours.collect()
    allowed = np.take_along_axis(rollout.action_mask, rollout.action[..., None], axis=-1)
    assert allowed.all()
    assert len(np.unique(rollout.action)) == 5


@pytest.mark.parametrize("what", ["reward", "view"])
@pytest.mark.parametrize("late", [False, True])
def test_bad_numbers_are_raised_or_their_episodes_dropped_as_by_torch(what, late):
    bad = {7: (1, what), 8: (2, what), 20: (1, what)}
    for collector in pair("gaussian", bad=bad, late=late):
        with pytest.raises(NonFiniteValue, match="in stream 1 at step"):
            collector.collect()
    ours, theirs = pair("gaussian", {"nonfinite": "drop_episode"}, bad=bad, late=late)
    for _ in range(2):
        mine, its = ours.collect(), theirs.collect()
        np.testing.assert_array_equal(mine.valid, its.valid)
        keep = its.valid
        np.testing.assert_array_equal(mine.reward[keep], its.reward[keep])
        np.testing.assert_array_equal(mine.start, its.start)
        assert mine.stats == its.stats
    assert ours.env_steps == theirs.env_steps
    assert ours.episodes.recent() == pytest.approx(theirs.episodes.recent())


class Still(Weather):
    """Shows the same observation at every step."""

    def _view(self) -> View:
        return View(obs={"obs": np.full((self.num_envs, 3), 0.5, np.float32)})


@pytest.mark.parametrize("every", [-1, 4])
def test_gsde_repeats_its_noise_between_two_draws_and_has_the_std_it_reports(every):
    world: Any = Still(Box((2,), -9.0, 9.0))
    world.num_envs = 2000
    world.reset(0)
    policy = ActorCritic(PLAIN, world.action, NetConfig(gsde=True, gsde_every=every, hidden=(8,), log_std_init=-1.0))
    collector = Collector(world, policy, steps=9, gamma=0.9)
    rollout = collector.collect()
    assert collector.actor is not None
    changes = [bool((rollout.action[t] != rollout.action[t - 1]).any()) for t in range(1, 9)]
    assert changes == [every == 4 and t % 4 == 0 for t in range(1, 9)]
    with torch.no_grad():
        context = policy.initial_context(1)
        out = policy.act(
            PolicyInput(obs={"obs": torch.full((1, 3), 0.5)}, context=context),
            generator=torch.Generator(),
            deterministic=True,
        )
    std = out.action_params["std"][0].numpy()
    assert rollout.action[0].mean(axis=0) == pytest.approx(
        out.action_params["mean"][0].numpy(), abs=5 * float(std.max()) / 2000**0.5
    )
    assert rollout.action[0].std(axis=0) == pytest.approx(std, rel=0.08)
    assert not np.array_equal(collector.collect().action[0], rollout.action[-1]), "a new rollout draws again"
