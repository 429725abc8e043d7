"""Faults that people reported about their own PPO runs, rebuilt: 20 kinds, each with the thread it is taken from.

Written before the doctor's rules and its other faults were read, and never opened to those who write rules: the reports,
not the rules, say what goes wrong here. A kind changes the environment (`wrap`), the settings (`settings`) or the learning
code (`patch`); `sentence` is the cause as a person would write it in a bug report. `build` returns the env that trains,
`judge` the env in which the trained policy is played: there the rewards and the ends of episodes are right again, so that
the return tells how good the policy is.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal
from unittest.mock import patch

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces

from surefoot.core import losses
from surefoot.core.advantage import gae
from surefoot.core.losses import clipped_surrogate
from surefoot.learn import prepare, torch_update
from surefoot.learn.learner import Learner
from surefoot.learn.prepare import to_batch

Env = gym.Env[Any, Any]
Group = Literal["observation", "action", "reward", "end", "settings", "code"]


@dataclass(frozen=True, slots=True)
class Task:
    """An environment, and the settings with which it learns when nothing is wrong."""

    env: str
    preset: str
    steps: int
    settings: Mapping[str, str]
    velocities: tuple[int, ...]
    """Components of the observation that are velocities."""
    short: int
    """An episode length that is too short to show what an action is good for."""


TASKS = (
    Task("CartPole-v1", "cartpole", 60_000, {}, (1, 3), 20),
    Task("Acrobot-v1", "acrobot", 80_000, {}, (4, 5), 50),
    Task("Pendulum-v1", "pendulum", 80_000, {}, (2,), 10),
    Task("InvertedPendulum-v5", "sb3", 50_000, {"envs": "4", "rollout_steps": "512", "lr": "1e-3"}, (2, 3), 20),
)


class OneStepOld(gym.Wrapper[Any, Any, Any, Any]):
    """`step` reads the state before it applies the action."""

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        self.before, info = self.env.reset(**options)
        return self.before, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        after, reward, terminated, truncated, info = self.env.step(action)
        seen, self.before = self.before, after
        return seen, reward, terminated, truncated, info


class AsBytes(gym.ObservationWrapper[Any, Any, Any]):
    """The observation space was copied from an example with images, dtype=np.uint8 included."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.observation_space = spaces.Box(0, 255, env.observation_space.shape, np.uint8)

    def observation(self, observation: Any) -> Any:
        # By way of int64: float to uint8 is undefined for negative numbers.
        return np.asarray(observation).astype(np.int64).astype(np.uint8)


class Without(gym.ObservationWrapper[Any, Any, Any]):
    """Some components are left out."""

    def __init__(self, env: Env, hidden: Sequence[int]) -> None:
        super().__init__(env)
        box = env.observation_space
        assert isinstance(box, spaces.Box)
        self.kept = [i for i in range(box.shape[0]) if i not in hidden]
        self.observation_space = spaces.Box(box.low[self.kept], box.high[self.kept], dtype=np.float32)

    def observation(self, observation: Any) -> Any:
        return np.asarray(observation, np.float32)[self.kept]


class NewStatistics(gym.Wrapper[Any, Any, Any, Any]):
    """A normaliser whose statistics begin anew with every episode."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.observation_space = spaces.Box(-10, 10, env.observation_space.shape, np.float32)

    def seen(self, observation: Any) -> Any:
        self.rows.append(np.asarray(observation, np.float64))
        rows = np.stack(self.rows)
        return np.clip((rows[-1] - rows.mean(0)) / np.sqrt(rows.var(0) + 1e-8), -10, 10).astype(np.float32)

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(**options)
        self.rows: list[Any] = []
        return self.seen(observation), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, *rest = self.env.step(action)
        return self.seen(observation), *rest  # type: ignore[return-value]


class WideActions(gym.ActionWrapper[Any, Any, Any]):
    """The action space is in the unit of the actuator, far wider than what a new policy tries; a discrete one is padded."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        space = env.action_space
        if isinstance(space, spaces.Box):
            self.action_space = spaces.Box(-2000.0, 2000.0, space.shape, np.float32)
        else:
            assert isinstance(space, spaces.Discrete)
            self.action_space = spaces.Discrete(200)

    def action(self, action: Any) -> Any:
        inner = self.env.action_space
        if isinstance(inner, spaces.Box):
            return np.clip(np.asarray(action) / 2000.0 * inner.high, inner.low, inner.high)
        assert isinstance(inner, spaces.Discrete)
        return min(int(action), int(inner.n) - 1)


class Late(gym.Wrapper[Any, Any, Any, Any]):
    """An action takes effect two steps later, as in a simulator that is called through a queue."""

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        self.waiting: list[Any] = []
        return self.env.reset(**options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.waiting.append(action)
        return self.env.step(self.waiting.pop(0) if len(self.waiting) > 2 else self.waiting[0])


class Score(gym.Wrapper[Any, Any, Any, Any]):
    """`step` returns the score so far."""

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        self.score = 0.0
        return self.env.reset(**options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, *rest = self.env.step(action)
        self.score += float(reward)
        return observation, self.score, *rest  # type: ignore[return-value]


class Cost(gym.RewardWrapper[Any, Any]):
    """A cost, passed on as a reward."""

    def reward(self, reward: Any) -> Any:
        return -float(reward)


class NeverDone(gym.Wrapper[Any, Any, Any, Any]):
    """The env's end is not passed on; only the outer time limit ends an episode."""

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, _, truncated, info = self.env.step(action)
        return observation, reward, False, truncated, info


class ShortLimit(gym.Wrapper[Any, Any, Any, Any]):
    """Somebody else's limit resets the env long before its own."""

    def __init__(self, env: Env, limit: int) -> None:
        super().__init__(env)
        self.limit = limit

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        self.steps = 0
        return self.env.reset(**options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.steps += 1
        # Old-style envs know one flag only: the cut-off looks like an end.
        return observation, reward, terminated or self.steps >= self.limit, truncated, info


class StillThere(gym.Wrapper[Any, Any, Any, Any]):
    """`reset` sets the counters back, but the simulation goes on where it was."""

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        bare = self.env.unwrapped
        if hasattr(bare, "data"):  # MuJoCo
            before = (bare.data.qpos.copy(), bare.data.qvel.copy())  # type: ignore[attr-defined]
            observation, info = self.env.reset(**options)
            if self.begun:
                bare.set_state(*before)  # type: ignore[attr-defined]
                observation = bare._get_obs()  # type: ignore[attr-defined]
        else:
            state = copy.copy(getattr(bare, "state", None))
            observation, info = self.env.reset(**options)
            if self.begun:
                bare.state = state  # type: ignore[attr-defined]
                observation = self.last
        self.begun = True
        return observation, info

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.begun, self.last = False, None

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.last, *rest = self.env.step(action)
        return self.last, *rest  # type: ignore[return-value]


@contextmanager
def broadcast_advantage() -> Iterator[None]:
    """The ratio is (B, 1) and the advantage (B,), so that their product is (B, B)."""

    def surrogate(log_ratio: torch.Tensor, advantage: torch.Tensor, **options: Any) -> torch.Tensor:
        return clipped_surrogate(log_ratio.reshape(-1, 1), advantage.reshape(-1), **options)

    with patch.object(losses, "clipped_surrogate", surrogate):
        yield


@contextmanager
def one_long_episode() -> Iterator[None]:
    """GAE never looks at `done`."""

    def unbroken(
        reward: torch.Tensor,
        value: torch.Tensor,
        next_value: torch.Tensor,
        terminated: torch.Tensor,
        ended: torch.Tensor,
        valid: torch.Tensor | None = None,
        **options: Any,
    ) -> torch.Tensor:
        never = torch.zeros_like(ended)
        return gae(reward, value, torch.cat([value[1:], next_value[-1:]]), never, never, valid, **options)

    with patch.object(prepare, "gae", unbroken):
        yield


@contextmanager
def other_order() -> Iterator[None]:
    """Observations are flattened step by step, advantages env by env."""

    def batch_of(rollout: Any, valid: Any, **options: Any) -> Any:
        batch, shape = to_batch(rollout, valid, **options), rollout.reward.shape
        for name in ("advantage", "target"):
            setattr(batch, name, getattr(batch, name).reshape(shape).T.reshape(1, -1))
        return batch

    with patch.object(torch_update, "to_batch", batch_of):
        yield


@contextmanager
def ascent() -> Iterator[None]:
    """The surrogate is minimised."""

    def surrogate(log_ratio: torch.Tensor, advantage: torch.Tensor, **options: Any) -> torch.Tensor:
        return -clipped_surrogate(log_ratio, advantage, **options)

    with patch.object(losses, "clipped_surrogate", surrogate):
        yield


@contextmanager
def new_model_every_tenth() -> Iterator[None]:
    """The loop around `learn` makes the model anew."""
    update = Learner.update

    def begin_again(self: Learner, rollout: Any, **options: Any) -> Any:
        # The first call finds the weights that the run began with.
        if self.updates == 0:
            fresh[id(self)] = copy.deepcopy(self.policy.state_dict())
        elif self.updates % 10 == 0:
            self.policy.load_state_dict(fresh[id(self)])
        return update(self, rollout, **options)

    fresh: dict[int, Any] = {}
    with patch.object(Learner, "update", begin_again):
        yield


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of fault."""

    name: str
    group: Group
    sentence: str
    """The cause, as a person would write it in a bug report."""
    thread: str
    """Where somebody reported it."""
    wrap: Callable[[Env, Task], Env] | None = None
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    patch: Callable[[], AbstractContextManager[None]] = nullcontext
    one_instance: bool = False
    """All streams step the same env object."""


GITHUB = "https://github.com/"

KINDS = (
    Kind(
        "one-instance",
        "observation",
        "I passed [lambda: env] * n, so all parallel envs are one and the same object and each stream sees the others' steps.",
        GITHUB + "DLR-RM/stable-baselines3/issues/1151",
        one_instance=True,
    ),
    Kind(
        "one-step-old",
        "observation",
        "step() reads the state before it applies the action, so the observation is always one step old.",
        GITHUB + "shakenes/vizdoomgym/issues/5",
        wrap=lambda env, _: OneStepOld(env),
    ),
    Kind(
        "as-bytes",
        "observation",
        "The observation space has dtype uint8 but the values are floats: fractions and signs are cut off.",
        GITHUB + "openai/baselines/issues/1161",
        wrap=lambda env, _: AsBytes(env),
    ),
    Kind(
        "no-velocity",
        "observation",
        "The observation has the positions but not the velocities, so the agent cannot know where things are going.",
        GITHUB + "ray-project/ray/issues/20827",
        wrap=lambda env, task: Without(env, task.velocities),
    ),
    Kind(
        "new-statistics",
        "observation",
        "A new VecNormalize is made every time, so the same state is scaled differently from one episode to the next.",
        GITHUB + "kuds/mesozoic-labs/pull/131",
        wrap=lambda env, _: NewStatistics(env),
    ),
    Kind(
        "wide-actions",
        "action",
        "The action space is not normalised: it is so wide that the policy's actions all come down to the same one.",
        GITHUB + "hill-a/stable-baselines/issues/637",
        wrap=lambda env, _: WideActions(env),
    ),
    Kind(
        "late-action",
        "action",
        "Actions do not take effect at once but two steps later.",
        GITHUB + "ugr-sail/sinergym/issues/404",
        wrap=lambda env, _: Late(env),
    ),
    Kind(
        "score-as-reward",
        "reward",
        "step() returns the total score so far instead of the reward of this step.",
        GITHUB + "flatland-association/flatland-rl/issues/282",
        wrap=lambda env, _: Score(env),
    ),
    Kind(
        "cost-as-reward",
        "reward",
        "The reward has the wrong sign: it is a cost, and PPO maximises it.",
        "https://codefrydev.in/Reinforcement/appendix/debugging-rl-code (common bug 1); cf. "
        + GITHUB
        + "DLR-RM/stable-baselines3/issues/902",
        wrap=lambda env, _: Cost(env),
    ),
    Kind(
        "never-done",
        "end",
        "The env never returns done=True; it goes on after the failure or the goal until the time limit.",
        GITHUB + "wsjeon/maddpg-rllib/issues/5",
        wrap=lambda env, _: NeverDone(env),
    ),
    Kind(
        "short-limit",
        "end",
        "Every episode is reset after a few steps, long before the task can be done.",
        GITHUB + "openai/baselines/issues/770",
        wrap=lambda env, task: ShortLimit(env, task.short),
    ),
    Kind(
        "reset-keeps-state",
        "end",
        "reset() does not actually reset the simulation: an episode begins where the last one ended.",
        GITHUB + "sail-sg/envpool/issues/120",
        wrap=lambda env, _: StillThere(env),
    ),
    Kind(
        "entropy-wins",
        "settings",
        "ent_coef is far too large: the entropy stays at its maximum and the policy acts at random.",
        GITHUB + "DLR-RM/stable-baselines3/issues/2240",
        settings={"ent_coef": "0.5"},
    ),
    Kind(
        "rate-gone",
        "settings",
        "total_timesteps in the schedule is wrong, so the learning rate is zero after a twentieth of the run.",
        GITHUB + "HumanCompatibleAI/imitation/issues/262",
        settings={"lr": "0:1e-3,0.05:1e-8,1:0"},
    ),
    Kind(
        "tiny-rollout",
        "settings",
        "The buffer is tiny: each update learns from 20 steps in minibatches of 10.",
        GITHUB + "Unity-Technologies/ml-agents/issues/2059",
        settings={"envs": "1", "rollout_steps": "20", "minibatch_size": "10", "epochs": "10"},
    ),
    Kind(
        "broadcast-advantage",
        "code",
        "Ratio has shape (B, 1) and advantage (B,): the surrogate is a (B, B) matrix and every action gets the same advantage.",
        GITHUB + "RITCHIEHuang/DeepRL_Algorithms/issues/13",
        patch=broadcast_advantage,
    ),
    Kind(
        "one-long-episode",
        "code",
        "GAE does not use done: advantages and values run on across the ends of episodes.",
        GITHUB + "vietnh1009/Super-mario-bros-PPO-pytorch/issues/21",
        patch=one_long_episode,
    ),
    Kind(
        "other-order",
        "code",
        "Advantages are flattened in another order than observations and actions (reshape without swapping the axes).",
        GITHUB + "Stable-Baselines-Team/stable-baselines3-contrib/issues/111",
        patch=other_order,
    ),
    Kind(
        "ascent",
        "code",
        "The sign of the policy loss is wrong: good actions become less likely.",
        GITHUB + "jvmncs/safe-grid-agents/pull/28",
        patch=ascent,
    ),
    Kind(
        "new-model",
        "code",
        "The result of load() is not assigned, so every few updates training goes on with a new, untrained model.",
        GITHUB + "hill-a/stable-baselines/issues/30",
        patch=new_model_every_tenth,
    ),
)


def settings_of(kind: Kind | None, task: Task) -> dict[str, str]:
    """Return the settings of a run: the task's, changed by the fault. Code is changed where torch learns."""
    changed = {} if kind is None else dict(kind.settings)
    if kind is not None and kind.group == "code":
        changed["path"] = "torch"
    return {**task.settings, **changed}


def build(kind: Kind | None, task: Task) -> Callable[[], Env]:
    """Return the function that makes each stream's env for training; without a kind, the right one."""

    def fresh() -> Env:
        env = gym.make(task.env)
        if kind is None or kind.wrap is None:
            return env
        # As with the env's own limit: whoever forgets to pass on the end still has the library's outer limit.
        return kind.wrap(env, task)

    if kind is None or not kind.one_instance:
        return fresh
    shared = fresh()
    # A wrapper each: a check that the objects differ does not help where what they wrap is the same.
    return lambda: gym.Wrapper(shared)


def judge(kind: Kind | None, task: Task) -> Callable[[], Env]:
    """Return the function that makes the env in which the trained policy is played."""
    through = kind is not None and kind.group in ("observation", "action") and not kind.one_instance
    return build(kind if through else None, task)


# Written after the kinds were committed, beside the rules of that day: rules whose title and causes send a person to the
# place that `sentence` names. A rule that only says that something is wrong (R11, R12) is right for none of them.
RIGHT: dict[str, tuple[str, ...]] = {
    "one-instance": ("E07", "E08", "E13"),  # their causes: observations, or ends, of several environments are mixed up
    "one-step-old": ("E02", "E09"),  # cause of both: the environment returns the observation before the step
    "as-bytes": ("E01", "E03", "E06", "R22S"),  # a wrapper drops, overwrites or cuts off what is observed
    "no-velocity": ("E07",),  # no rule says that something is missing; this one is its definition
    "new-statistics": ("E07", "R02"),  # observations do not follow from each other; the normaliser changed
    "wide-actions": ("R23", "E08"),  # actions need another scale; the environment gets a constant action
    "late-action": ("E09",),
    "score-as-reward": (
        "E10",
        "R26",
    ),  # the reward does not depend on observation and action; does not measure the task
    "cost-as-reward": ("E14", "R26"),
    "never-done": ("R21N", "E16"),
    "short-limit": ("R21", "R21S", "E13"),  # terminated at a time limit, too early, or whatever happens
    "reset-keeps-state": ("R21S",),  # ends too early, which leads to what an episode begins with
    "entropy-wins": ("S03", "R07"),
    "rate-gone": ("S18", "R04", "R05L"),
    "tiny-rollout": ("S10", "S11"),
    "broadcast-advantage": ("R04", "R13D", "R27"),  # the loss does not reach the policy
    "one-long-episode": ("R08", "R21B"),  # the bootstrap
    "other-order": ("R26", "R08"),  # the advantage, or the critic's targets, are wrong
    "ascent": ("R26",),
    "new-model": ("R28", "R17"),
}
