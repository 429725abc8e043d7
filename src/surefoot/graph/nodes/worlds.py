"""Environments, stepping, and what lies between a policy and a world."""

from __future__ import annotations

import functools
import importlib.util
import math
from collections.abc import Mapping
from typing import Any

from surefoot.data.spaces import ActionSpace, Box, Discrete, Hybrid, MultiDiscrete, ObservationSpace
from surefoot.errors import SurefootError
from surefoot.graph.nodes.catalogue import declare
from surefoot.graph.spec.declare import Misfit, Types
from surefoot.graph.spec.types import CONST, ONCE, TICK, Parts, Type, tensor


@functools.lru_cache(maxsize=256)
def spaces_of(name: str, backend: str) -> tuple[ObservationSpace, ActionSpace] | str:
    """What an environment shows and takes, or a sentence that says why it cannot be made."""
    from surefoot.envs.make import make_world

    if backend == "isaaclab":
        return isaac_missing(name)
    try:
        world = make_world(name, 1, backend=backend)  # type: ignore[arg-type]
    except SurefootError as why:
        return str(why)
    try:
        return dict(world.observation), world.action
    finally:
        world.close()


def isaac_missing(name: str) -> str:
    """Why an Isaac Lab task is not there, and what to install."""
    if importlib.util.find_spec("isaaclab") is None:
        return (
            f"{name} is a task of Isaac Lab, which is not installed; `pip install isaaclab` (it needs an NVIDIA GPU), or use "
            "surefoot/CartPoleContinuous-v0, Isaac's Cartpole on the CPU"
        )
    return f"{name}: Isaac Lab is installed; start its app first and make the env yourself, then use Training(world=…)"


def parts_of(observation: ObservationSpace, streams: int) -> Parts:
    return tuple(sorted((name, box.dtype, (streams, *box.shape)) for name, box in observation.items()))


def action_type(action: ActionSpace, streams: int) -> tuple[str, tuple[int, ...]]:
    """(dtype, shape) of what a world takes."""
    match action:
        case Discrete():
            return "int64", (streams,)
        case MultiDiscrete():
            return "int64", (streams, len(action.nvec))
        case Hybrid():
            return "float32", (streams, len(action.nvec) + action.box.size)
        case Box():
            return "float32", (streams, *action.shape)


def _environment(params: Mapping[str, Any], given: Mapping[str, Type]) -> Types:
    found = spaces_of(params["env_id"], params["backend"])
    if isinstance(found, str):
        raise Misfit("env_id", found)
    observation, action = found
    streams = params["num_envs"]
    dtype, shape = action_type(action, streams)
    parts = parts_of(observation, streams)
    return {
        "sim_handle": Type("world", dtype, shape, parts, frozenset({"raw"})),
        "observations": Type("obs", parts=parts, tags=frozenset({"raw"})),
    }


def _step(params: Mapping[str, Any], given: Mapping[str, Type]) -> Types:
    world, actions = given.get("sim_handle", Type("world")), given.get("actions", tensor())
    streams: int | str = world.shape[0] if world.shape else "N"
    if world.dtype is not None and actions.dtype is not None and world.dtype != actions.dtype:
        kind = "discrete" if world.dtype == "int64" else "continuous"
        raise Misfit(
            "actions",
            f"the environment takes {world.dtype} {list(world.shape or ())} and was given {actions.dtype}; set "
            f'action_space="{kind}" on the agent',
        )
    if world.shape is not None and actions.shape is not None and not _fits(actions.shape, world.shape):
        raise Misfit(
            "actions",
            f"the environment takes {list(world.shape)} and was given {list(actions.shape)}; output_size of the agent "
            "says how many numbers an action has",
        )
    obs = Type("obs", parts=world.parts, tags=world.tags)
    return {
        "observations": obs,
        "rewards": tensor("float64", streams),
        "dones": tensor("bool", streams),
        "terminated": tensor("bool", streams),
        "truncated": tensor("bool", streams),
        "next_observations": obs,
        "valid": tensor("bool", streams),
    }


def _fits(given: tuple[int | str, ...], wanted: tuple[int | str, ...]) -> bool:
    if isinstance(given[0], int) and isinstance(wanted[0], int) and given[0] != wanted[0]:
        return False
    known = [n for n in (*given[1:], *wanted[1:]) if isinstance(n, str)]
    return bool(known) or math.prod(map(int, given[1:])) == math.prod(map(int, wanted[1:]))


def _processed(params: Mapping[str, Any], given: Mapping[str, Type]) -> Types:
    chosen = given.get("policy_output", Type("policy_output"))
    if params["mode"] != "none" and chosen.dtype == "int64":
        raise Misfit("mode", f"mode is {params['mode']!r} but the agent's actions are choices; set it to 'none'")
    return {"actions": Type("tensor", chosen.dtype, chosen.shape)}


def _normalised(params: Mapping[str, Any], given: Mapping[str, Type]) -> Types:
    seen = given.get("observations", Type("obs"))
    if "normalised" in seen.tags:
        raise Misfit("observations", "these are normalised already; twice is once too often")
    return {"observations": seen.tagged("normalised")}


NODES = declare(
    "worlds",
    Environment={
        "infer": _environment,
        "clocks": lambda params, given: (ONCE, {"sim_handle": CONST, "observations": ONCE}),
        "streams": lambda params: ("num_envs", 1),
    },
    Step={"infer": _step},
    ActionProcessor={"infer": _processed},
    RewardShaping={"infer": lambda params, given: {"rewards": given.get("rewards", tensor("float64"))}},
    ObservationNormalizer={
        "infer": _normalised,
        "clocks": lambda params, given: (TICK, {"observations": given.get("observations", TICK), "normalizer": CONST}),
    },
    Normalize={"infer": _normalised},
)
