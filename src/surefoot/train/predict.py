"""One observation from anywhere, as a policy sees it; and what the policy chooses, as the env takes it."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces as gym_spaces
from torch import Tensor

from surefoot.data.spaces import ActionSpace, Box, Hybrid, ObservationSpace
from surefoot.envs.api import Arrays, World
from surefoot.envs.gym.nested_actions import former
from surefoot.envs.gym.single_envs import EnvsWorld
from surefoot.envs.gym.spaces import (
    MASK,
    action_from_gym,
    action_writer,
    choices,
    observation_reader,
    read_mask,
    refuse_empty,
)
from surefoot.envs.gym.vector_env import VectorWorld
from surefoot.envs.register import action_to_gym, observation_to_gym
from surefoot.envs.workers.process_world import ProcessWorld
from surefoot.errors import CheckpointIncompatible, ConfigError, NonFiniteValue, ShapeError
from surefoot.nets.policy import Policy, PolicyInput

AnySpace = gym.Space[Any]


@dataclass(frozen=True, slots=True)
class Looked:
    """Some observations, read."""

    obs: Arrays
    """{name: [N, …]}"""
    action_mask: np.ndarray | None
    """[N, A]"""
    single: bool
    """One observation was given, not a row of them; N is 1 and the answer must be a single action."""


class Spaces:
    """The spaces of an env as its author wrote them, one-hots not yet made, with both ways across the border."""

    def __init__(self, observation: AnySpace, action: AnySpace) -> None:
        self.gym_observation, self.gym_action = observation, action
        self.action: ActionSpace = action_from_gym(action)
        self._choices = choices(self.action)
        self._reader = observation_reader(observation, masks=self._choices > 0)
        self.observation: ObservationSpace = self._reader.space
        self._write, self._form = action_writer(action), former(action)

    def look(self, obs: Any, action_masks: Any = None) -> Looked:
        """Read one observation or a batch of them, plain or a dict; masks of the same kind, [A] or [N, A]."""
        counts: set[int | None] = set()
        for part in self._reader.parts.values():
            value = obs if part.key is None else self._part(obs, part.key)
            counts.add(_count(value, part.shape, "the observation" if part.key is None else f"obs[{part.key!r}]"))
        if len(counts) > 1:
            raise ShapeError("the parts of the observation differ in number; give one each, or N of each")
        count = counts.pop()
        n = 1 if count is None else count
        read = self._reader.empty(n)
        self._reader.write(read, 0 if count is None else slice(None), obs)
        for name, x in read.items():
            if not np.isfinite(x).all():
                raise NonFiniteValue(
                    f"the observation part {name!r} holds NaN or infinity; a policy answers nothing to that"
                )
        if action_masks is None and self._reader.masked:
            action_masks = self._part(obs, MASK)
        return Looked(read, self._mask(action_masks, n, single=count is None), count is None)

    def answer(self, action: np.ndarray, *, single: bool) -> Any:
        """Actions [N, …] in the env's own dtype and shape; for a single one no batch axis."""
        written = self._write(action)
        taken = written[0] if single else written
        return taken if self._form is None else self._form(taken)

    def to_tree(self) -> dict[str, Any]:
        """What `from_tree` makes equal spaces of; fit for a checkpoint."""
        return {"observation": _space_to_tree(self.gym_observation), "action": _space_to_tree(self.gym_action)}

    @classmethod
    def from_tree(cls, tree: dict[str, Any]) -> Spaces:
        """What `to_tree` described."""
        return cls(_space_from_tree(tree["observation"]), _space_from_tree(tree["action"]))

    def _part(self, obs: Any, key: str) -> Any:
        try:
            return obs[key]
        except (KeyError, IndexError, TypeError):
            parts = ", ".join(map(repr, self._reader.parts))
            raise ShapeError(f"the observation has no {key!r}; it must be a dict with {parts}") from None

    def _mask(self, given: Any, n: int, *, single: bool) -> np.ndarray | None:
        if given is None:
            return None
        if self._choices == 0:
            raise ConfigError("action_masks were given, but the actions are real numbers; only choices can be masked")
        rows = [given] if single else list(given)
        if len(rows) != n:
            raise ShapeError(f"{len(rows)} action masks for {n} observations; each needs one")
        mask = np.stack([read_mask(row, self._choices, f"observation {i}") for i, row in enumerate(rows)])
        refuse_empty(mask, "predict")
        return mask


@torch.no_grad()
def choose(
    policy: Policy,
    spaces: Spaces,
    looked: Looked,
    *,
    memory: Any,
    start: Any,
    generator: torch.Generator,
    deterministic: bool,
) -> tuple[Any, dict[str, Tensor] | None]:
    """Actions as the env takes them, and the policy's memory; None for a policy without."""
    device, streams = generator.device, len(next(iter(looked.obs.values())))
    begins = np.zeros(streams, bool) if start is None else np.asarray(start, bool).reshape(-1)
    if len(begins) != streams:
        raise ShapeError(f"episode_start has {len(begins)} entries for {streams} observations; each needs one")
    empty = policy.initial_context(streams)
    if memory is not None and (not isinstance(memory, dict) or set(memory) != set(empty)):
        kept = ", ".join(map(repr, empty)) or "nothing"
        raise ShapeError(f"state is not this policy's, which keeps {kept}; pass what predict gave, or None at first")
    kept = len(next(iter(memory.values()))) if memory else streams
    if kept != streams:
        raise ShapeError(
            f"state is of {kept} streams but there are {streams} observations; pass what predict gave for them"
        )
    seen = PolicyInput(
        obs={name: torch.from_numpy(x).to(device) for name, x in looked.obs.items()},
        action_mask=None if looked.action_mask is None else torch.from_numpy(looked.action_mask).to(device),
        start=torch.from_numpy(begins).to(device),
        context=empty if memory is None else memory,
    )
    out = policy.act(seen, generator=generator, deterministic=deterministic)
    action = policy.env_action(out.action.cpu().numpy())
    return spaces.answer(action, single=looked.single), out.context or None


def spaces_of(world: World) -> Spaces:
    """The spaces a world was made from, or Gymnasium's words for its own."""
    if isinstance(world, EnvsWorld | ProcessWorld):
        return Spaces(*world.gym_spaces)
    if isinstance(world, VectorWorld):
        return Spaces(world.env.single_observation_space, world.env.single_action_space)
    return Spaces(observation_to_gym(world.observation), action_to_gym(world.action))


def refuse_other_spaces(observation: ObservationSpace, action: ActionSpace, world: World) -> None:
    """Raise unless a policy for these spaces can live in `world`; bounds may differ."""
    seen = {name: box.shape for name, box in observation.items()}
    shown = {name: box.shape for name, box in world.observation.items()}
    if seen != shown:
        raise ConfigError(f"the policy sees {seen} but {world.name} shows {shown}; use the env it was made for")
    if _without_bounds(action) != _without_bounds(world.action):
        raise ConfigError(f"the policy acts in {action} but {world.name} takes {world.action}; use its own env")


def _without_bounds(action: ActionSpace) -> object:
    match action:
        case Box():
            return action.shape
        case Hybrid():
            return action.nvec, action.box.size
        case _:
            return action


def _count(value: Any, shape: tuple[int, ...], what: str) -> int | None:
    """How many observations of `shape` there are in `value`; None for a single one without a batch axis."""
    given = np.shape(value)
    if given == shape:
        return None
    if given[1:] == shape and len(given) == len(shape) + 1 and given[0] > 0:
        return given[0]
    batch = ", ".join(["N", *map(str, shape)])
    raise ShapeError(f"{what} is {list(given)}; it must be {list(shape)}, or [{batch}] for several at once")


def _space_to_tree(space: AnySpace) -> dict[str, Any]:
    match space:
        case gym_spaces.Dict():
            return {"kind": "dict", "parts": {str(name): _space_to_tree(part) for name, part in space.items()}}
        case gym_spaces.Tuple():
            return {"kind": "tuple", "parts": {str(i): _space_to_tree(part) for i, part in enumerate(space.spaces)}}
        case gym_spaces.Discrete():
            return {"kind": "discrete", "n": int(space.n), "start": int(space.start)}
        case gym_spaces.MultiDiscrete():
            return {"kind": "multi_discrete", "nvec": space.nvec, "start": space.start}
        case gym_spaces.MultiBinary():
            return {"kind": "multi_binary", "shape": list(space.shape)}
        case gym_spaces.Box():
            return {"kind": "box", "low": space.low, "high": space.high}
        case _:
            raise AssertionError(f"{space} passed the reader but cannot be written down")


def _space_from_tree(tree: dict[str, Any]) -> AnySpace:
    match tree.get("kind"):
        case "dict":
            # Ordered, for Gymnasium sorts a plain dict, and the columns of an action go by its order.
            return gym_spaces.Dict(OrderedDict((name, _space_from_tree(part)) for name, part in tree["parts"].items()))
        case "tuple":
            return gym_spaces.Tuple([_space_from_tree(tree["parts"][str(i)]) for i in range(len(tree["parts"]))])
        case "discrete":
            return gym_spaces.Discrete(tree["n"], start=tree["start"])
        case "multi_discrete":
            return gym_spaces.MultiDiscrete(tree["nvec"], start=tree["start"])
        case "multi_binary":
            return gym_spaces.MultiBinary(tree["shape"])
        case "box":
            low, high = np.array(tree["low"]), np.array(tree["high"])
            return gym_spaces.Box(low, high, low.shape, low.dtype.type)
        case kind:
            raise CheckpointIncompatible(f"a space of kind {kind!r} is unknown here; a newer surefoot may know it")
