"""Environments so small that the optimal value is known: a learner that fails on one of these has a bug.

They are tasks for `streams.Streams`; those whose optimum depends on the discount have a method `value(gamma)`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from surefoot.data.spaces import Box, Discrete, MultiDiscrete
from surefoot.envs.api import World
from surefoot.envs.builtin.streams import Task, Transition, maker
from surefoot.errors import ConfigError, EnvError


class Endless(Task):
    """Constant observation, constant reward 1, no end: the value of every state is 1 / (1 - γ)."""

    observation = Box((1,), 1.0, 1.0)

    def __init__(self, actions: int = 1) -> None:
        self.action = Discrete(_at_least(actions, 1, "actions"))

    def value(self, gamma: float) -> float:
        """Return the value of every state."""
        return 1.0 / (1.0 - gamma)

    def start(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return np.zeros((0, n))

    def advance(self, state: np.ndarray, action: np.ndarray, rng: np.random.Generator) -> Transition:
        n = len(action)
        return state.copy(), np.ones(n), np.zeros(n, bool)

    def observe(self, state: np.ndarray) -> np.ndarray:
        return np.ones((state.shape[1], 1), np.float32)


class Bandit(Task):
    """One pull per episode; the reward is the arm's mean plus Gaussian noise of standard deviation `noise`."""

    observation = Box((1,), 1.0, 1.0)

    def __init__(self, means: tuple[float, ...] = (0.0, 0.25, 1.0, 0.5), noise: float = 0.0) -> None:
        self.means = np.array(means)
        self.noise = noise
        self.action = Discrete(_at_least(len(means), 1, "the number of arms"))

    @property
    def best(self) -> int:
        """The arm with the highest mean."""
        return int(self.means.argmax())

    def start(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return np.zeros((0, n))

    def advance(self, state: np.ndarray, action: np.ndarray, rng: np.random.Generator) -> Transition:
        reward = self.means[action] + self.noise * rng.standard_normal(len(action))
        return state.copy(), reward, np.ones(len(action), bool)

    def observe(self, state: np.ndarray) -> np.ndarray:
        return np.ones((state.shape[1], 1), np.float32)


class ContextBandit(Task):
    """One of K one-hots is shown; the action with its index pays 1, any other 0."""

    def __init__(self, contexts: int = 4) -> None:
        self.contexts = _at_least(contexts, 2, "contexts")
        self.observation = Box((contexts,), 0.0, 1.0)
        self.action = Discrete(contexts)

    def start(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return rng.integers(self.contexts, size=(1, n))

    def advance(self, state: np.ndarray, action: np.ndarray, rng: np.random.Generator) -> Transition:
        return state.copy(), np.where(action == state[0], 1.0, 0.0), np.ones(len(action), bool)

    def observe(self, state: np.ndarray) -> np.ndarray:
        return _one_hot(state[0], self.contexts)


class Corridor(Task):
    """Cells 0 to `length`: action 0 steps left, 1 steps right; the last cell pays 1 and ends the episode.

    The shortest path from cell c has length - c steps and the value γ^(length - c - 1): γ^(length - 1) at the start.
    Episodes are truncated after 10 length² steps; a random walk arrives after about length².
    """

    action = Discrete(2)

    def __init__(self, length: int = 8) -> None:
        self.length = _at_least(length, 1, "length")
        self.max_episode_steps = 10 * length * length
        self.observation = Box((length + 1,), 0.0, 1.0)

    def value(self, gamma: float, cell: int = 0) -> float:
        """Return the value of `cell` for a policy that always steps right."""
        return gamma ** (self.length - cell - 1)

    def start(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return np.zeros((1, n), np.int64)

    def advance(self, state: np.ndarray, action: np.ndarray, rng: np.random.Generator) -> Transition:
        after = np.maximum(state + np.where(action == 1, 1, -1), 0)
        arrived = after[0] == self.length
        return after, np.where(arrived, 1.0, 0.0), arrived

    def observe(self, state: np.ndarray) -> np.ndarray:
        return _one_hot(state[0], self.length + 1)


class TimeLimit(Task):
    """Reward 1 for `steps` steps; the observation is the elapsed share of them.

    With a truncated episode the limit is not part of the task: with correct bootstrapping the value of every
    state is 1 / (1 - γ). With a terminated one it is: after t steps (1 - γ^(steps - t)) / (1 - γ) is left.
    """

    observation = Box((1,), 0.0, 1.0)
    action = Discrete(2)

    def __init__(self, steps: int = 10, *, terminated: bool = False) -> None:
        self.max_episode_steps = _at_least(steps, 1, "steps")
        self.steps = steps
        self.terminated = terminated

    def value(self, gamma: float, elapsed: int = 0) -> float:
        """Return the value of the state after `elapsed` steps."""
        left = 1.0 - gamma ** (self.steps - elapsed) if self.terminated else 1.0
        return left / (1.0 - gamma)

    def start(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return np.zeros((1, n), np.int64)

    def advance(self, state: np.ndarray, action: np.ndarray, rng: np.random.Generator) -> Transition:
        after = state + 1
        return after, np.ones(len(action)), (after[0] >= self.steps) & self.terminated

    def observe(self, state: np.ndarray) -> np.ndarray:
        return (state.T / self.steps).astype(np.float32)


class Target(Task):
    """Continuous: a point x in [-1, 1]^dims is shown and the best action is -x/2.

    The reward is minus the squared distance to it, so the optimum is 0.
    """

    def __init__(self, dims: int = 2) -> None:
        self.observation = Box((_at_least(dims, 1, "dims"),), -1.0, 1.0)
        self.action = Box((dims,), -1.0, 1.0)

    def target(self, obs: np.ndarray) -> np.ndarray:
        """Return the best action."""
        return -0.5 * obs

    def start(self, rng: np.random.Generator, n: int) -> np.ndarray:
        # Rounded to float32, so that the observed point is the one that the reward is computed from.
        return rng.uniform(-1.0, 1.0, (self.observation.size, n)).astype(np.float32)

    def advance(self, state: np.ndarray, action: np.ndarray, rng: np.random.Generator) -> Transition:
        miss = action.astype(np.float64) - self.target(state.T.astype(np.float64))
        return state.copy(), -np.square(miss).sum(axis=1), np.ones(len(action), bool)

    def observe(self, state: np.ndarray) -> np.ndarray:
        return state.T.copy(order="C")


class Masked(Task):
    """K actions, of which context c allows c and c + 1 (mod K); c + 1 pays 1, c pays 0, other actions raise."""

    def __init__(self, actions: int = 5) -> None:
        self.actions = _at_least(actions, 3, "actions")
        self.observation = Box((actions,), 0.0, 1.0)
        self.action = Discrete(actions)

    def start(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return rng.integers(self.actions, size=(1, n))

    def advance(self, state: np.ndarray, action: np.ndarray, rng: np.random.Generator) -> Transition:
        offset = (action.astype(np.int64) - state[0]) % self.actions
        if (offset > 1).any():
            stream = int((offset > 1).argmax())
            context = int(state[0, stream])
            allowed = [context, (context + 1) % self.actions]
            raise EnvError(f"action {action[stream]} of stream {stream} is masked; allowed are {allowed}")
        return state.copy(), offset.astype(np.float64), np.ones(len(action), bool)

    def observe(self, state: np.ndarray) -> np.ndarray:
        return _one_hot(state[0], self.actions)

    def mask(self, state: np.ndarray) -> np.ndarray:
        return (np.arange(self.actions) - state.T) % self.actions <= 1


class TwoKnobs(Task):
    """Two knobs of 3 and 4 positions; the right positions are shown as one-hots, each right knob pays one half."""

    observation = Box((7,), 0.0, 1.0)
    action = MultiDiscrete((3, 4))

    def start(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return np.array((rng.integers(3, size=n), rng.integers(4, size=n)))

    def advance(self, state: np.ndarray, action: np.ndarray, rng: np.random.Generator) -> Transition:
        return state.copy(), (action == state.T).mean(axis=1), np.ones(len(action), bool)

    def observe(self, state: np.ndarray) -> np.ndarray:
        return np.hstack((_one_hot(state[0], 3), _one_hot(state[1], 4)))


def _one_hot(index: np.ndarray, size: int) -> np.ndarray:
    return (index[:, None] == np.arange(size)).astype(np.float32)


def _at_least(value: int, least: int, what: str) -> int:
    if value < least:
        raise ConfigError(f"{what} is {value}; it must be at least {least}")
    return value


TOYS: dict[str, Callable[[int], World]] = {
    name: maker(name, task)
    for name, task in {
        "surefoot/Endless-v0": Endless,
        "surefoot/Bandit-v0": Bandit,
        "surefoot/NoisyBandit-v0": lambda: Bandit(noise=0.5),
        "surefoot/ContextBandit-v0": ContextBandit,
        "surefoot/Corridor-v0": Corridor,
        "surefoot/TimeLimit-v0": TimeLimit,
        "surefoot/Deadline-v0": lambda: TimeLimit(terminated=True),
        "surefoot/Target-v0": Target,
        "surefoot/Masked-v0": Masked,
        "surefoot/TwoKnobs-v0": TwoKnobs,
    }.items()
}
"""Constructors by id that take the number of streams."""
