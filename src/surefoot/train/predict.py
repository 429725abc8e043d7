"""Observations of an env as a policy takes them, and actions of a policy as the env takes them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping
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
class Observations:
    """N observations as a policy takes them."""

    obs: Arrays
    """{name: [N, …]}"""
    action_mask: np.ndarray | None
    """[N, A]"""
    single: bool
    """Whether one observation was passed without a batch axis; then N is 1 and the result is a single action."""


class Spaces:
    """The Gymnasium spaces of an env, with the conversions of observations and actions."""

    def __init__(self, observation: AnySpace, action: AnySpace) -> None:
        self.gym_observation, self.gym_action = observation, action
        self.action: ActionSpace = action_from_gym(action)
        self._choices = choices(self.action)
        self._reader = observation_reader(observation, masks=self._choices > 0)
        self.observation: ObservationSpace = self._reader.space
        self._write, self._form = action_writer(action), former(action)

    def read(self, obs: Any, action_masks: Any = None, critic_only: Collection[str] = ()) -> Observations:
        """Read one observation or a batch, an array or a dict; masks are [A] or [N, A] accordingly.

        Parts that only the critic sees may be missing: no action depends on them. If one other part is left, its array
        may be passed without the dict.
        """
        # What env.reset() returns; a Tuple space would have no dict in it.
        if isinstance(obs, tuple) and len(obs) == 2 and isinstance(obs[1], dict):
            raise ShapeError(
                "predict got the pair (observation, info) that env.reset() returns; pass the observation alone: obs, info = "
                "env.reset()"
            )
        parts = self._reader.parts
        keys = [part.key for part in parts.values() if part.key not in (None, *critic_only)]
        if len(keys) == 1 and not isinstance(obs, Mapping) and not self._reader.masked:
            obs = {keys[0]: obs}
        if isinstance(obs, Mapping) and (absent := [name for name in critic_only if name not in obs]) and keys:
            first = next(part for part in parts.values() if part.key == keys[0])
            batch = np.shape(obs.get(first.key, ()))[: -len(first.shape) or None]
            obs = {**obs, **{name: np.zeros(batch + parts[name].shape, np.float32) for name in absent}}
        counts: set[int | None] = set()
        for part in parts.values():
            value = obs if part.key is None else self._part(obs, part.key)
            counts.add(_count(value, part.shape, "the observation" if part.key is None else f"obs[{part.key!r}]"))
        if len(counts) > 1:
            raise ShapeError("the parts of the observation have different batch sizes; pass one of each, or N of each")
        count = counts.pop()
        n = 1 if count is None else count
        read = self._reader.empty(n)
        self._reader.write(read, 0 if count is None else slice(None), obs)
        for name, x in read.items():
            if not np.isfinite(x).all():
                raise NonFiniteValue(f"the observation part {name!r} contains NaN or infinity; a policy cannot use it")
        if action_masks is None and self._reader.masked:
            action_masks = self._part(obs, MASK)
        return Observations(read, self._mask(action_masks, n, single=count is None), count is None)

    def answer(self, action: np.ndarray, *, single: bool) -> Any:
        """Return actions [N, …] in the env's dtype and shape; a single one has no batch axis."""
        rows = self._write(action)
        result = rows[0] if single else rows
        return result if self._form is None else self._form(result)

    def to_tree(self) -> dict[str, Any]:
        """Return a description for a checkpoint, from which `from_tree` builds equal spaces."""
        return {"observation": space_to_tree(self.gym_observation), "action": space_to_tree(self.gym_action)}

    @classmethod
    def from_tree(cls, tree: dict[str, Any]) -> Spaces:
        """Return the spaces that `to_tree` described."""
        return cls(space_from_tree(tree["observation"]), space_from_tree(tree["action"]))

    def _part(self, obs: Any, key: str) -> Any:
        try:
            return obs[key]
        except (KeyError, IndexError, TypeError):
            parts = ", ".join(map(repr, self._reader.parts))
            raise ShapeError(f"the observation has no {key!r}; it must be a dict with {parts}") from None

    def _mask(self, masks: Any, n: int, *, single: bool) -> np.ndarray | None:
        if masks is None:
            return None
        if self._choices == 0:
            raise ConfigError("action_masks were passed, but the actions are real numbers; only choices can be masked")
        rows = [masks] if single else list(masks)
        if len(rows) != n:
            raise ShapeError(f"{len(rows)} action masks for {n} observations; pass one per observation")
        mask = np.stack([read_mask(row, self._choices, f"observation {i}") for i, row in enumerate(rows)])
        refuse_empty(mask, "predict")
        return mask


@torch.no_grad()
def choose(
    policy: Policy,
    spaces: Spaces,
    inputs: Observations,
    *,
    memory: Any,
    start: Any,
    generator: torch.Generator,
    deterministic: bool,
) -> tuple[Any, dict[str, Tensor] | None]:
    """Return actions as the env takes them, and the policy's memory (None for a policy without)."""
    device, streams = generator.device, len(next(iter(inputs.obs.values())))
    begins = np.zeros(streams, bool) if start is None else np.asarray(start, bool).reshape(-1)
    if len(begins) != streams:
        raise ShapeError(
            f"episode_start has {len(begins)} entries for {streams} observations; pass one per observation"
        )
    empty = policy.initial_context(streams)
    if memory is not None and (not isinstance(memory, dict) or set(memory) != set(empty)):
        names = ", ".join(map(repr, empty)) or "nothing"
        raise ShapeError(f"state does not fit this policy, which keeps {names}; pass what predict returned, or None")
    size = len(next(iter(memory.values()))) if memory else streams
    if size != streams:
        raise ShapeError(
            f"state is for {size} streams but there are {streams} observations; pass what predict returned"
        )
    context = empty if memory is None else memory
    policy_input = PolicyInput.from_arrays(inputs.obs, inputs.action_mask, begins, context, device)
    out = policy.act(policy_input, generator=generator, deterministic=deterministic)
    action = policy.env_action(out.action.cpu().numpy())
    return spaces.answer(action, single=inputs.single), out.context or None


def spaces_of(world: World) -> Spaces:
    """Return the Gymnasium spaces that a world was made from, or those that describe it."""
    if isinstance(world, EnvsWorld | ProcessWorld):
        return Spaces(*world.gym_spaces)
    if isinstance(world, VectorWorld):
        return Spaces(world.env.single_observation_space, world.env.single_action_space)
    return Spaces(observation_to_gym(world.observation), action_to_gym(world.action))


def refuse_other_spaces(observation: ObservationSpace, action: ActionSpace, world: World) -> None:
    """Raise `ConfigError` unless a policy for these spaces fits `world`; bounds may differ."""
    shapes = {name: box.shape for name, box in observation.items()}
    shown = {name: box.shape for name, box in world.observation.items()}
    if shapes != shown:
        raise ConfigError(f"the policy observes {shapes} but {world.name} shows {shown}; use the env it was made for")
    if _without_bounds(action) != _without_bounds(world.action):
        raise ConfigError(
            f"the policy acts in {action} but {world.name} takes {world.action}; use the env it was made for"
        )


def _without_bounds(action: ActionSpace) -> object:
    match action:
        case Box():
            return action.shape
        case Hybrid():
            return action.nvec, action.box.size
        case _:
            return action


def _count(value: Any, shape: tuple[int, ...], what: str) -> int | None:
    """Return how many observations of `shape` are in `value`; None for a single one without a batch axis."""
    actual = np.shape(value)
    if actual == shape:
        return None
    if actual[1:] == shape and len(actual) == len(shape) + 1 and actual[0] > 0:
        return actual[0]
    batch = ", ".join(["N", *map(str, shape)])
    raise ShapeError(f"{what} is {list(actual)}; it must be {list(shape)}, or [{batch}] for a batch")


def space_to_tree(space: AnySpace) -> dict[str, Any]:
    """Return a Gymnasium space as a tree of values and arrays."""
    match space:
        case gym_spaces.Dict():
            return {"kind": "dict", "parts": {str(name): space_to_tree(part) for name, part in space.items()}}
        case gym_spaces.Tuple():
            return {"kind": "tuple", "parts": {str(i): space_to_tree(part) for i, part in enumerate(space.spaces)}}
        case gym_spaces.Discrete():
            return {"kind": "discrete", "n": int(space.n), "start": int(space.start)}
        case gym_spaces.MultiDiscrete():
            return {"kind": "multi_discrete", "nvec": space.nvec, "start": space.start}
        case gym_spaces.MultiBinary():
            # A number of bits is not equal to a shape of one axis.
            return {"kind": "multi_binary", "shape": space.n if isinstance(space.n, int) else list(space.shape)}
        case gym_spaces.Box():
            return {"kind": "box", "low": space.low, "high": space.high}
        case _:
            raise AssertionError(f"{space} passed the reader but cannot be described")


def space_from_tree(tree: dict[str, Any]) -> AnySpace:
    """Return the space that `space_to_tree` described."""
    match tree.get("kind"):
        case "dict":
            # Gymnasium sorts the keys of a plain dict, and the columns of an action follow their order.
            return gym_spaces.Dict(OrderedDict((name, space_from_tree(part)) for name, part in tree["parts"].items()))
        case "tuple":
            return gym_spaces.Tuple([space_from_tree(tree["parts"][str(i)]) for i in range(len(tree["parts"]))])
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
            raise CheckpointIncompatible(f"the checkpoint has a space of the unknown kind {kind!r}; update surefoot")
