"""Type and clock inference of environments and towns, of steps, and of the nodes between a policy and an environment."""

from __future__ import annotations

import functools
import importlib.util
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from surefoot.data.spaces import ActionSpace, Box, Discrete, Hybrid, MultiDiscrete, ObservationSpace
from surefoot.errors import SurefootError
from surefoot.graph.nodes.catalogue import declare, runtime_name
from surefoot.graph.spec.declare import Misfit, Types
from surefoot.graph.spec.types import CONST, ONCE, TICK, Clock, Type, tensor, when
from surefoot.town.scenarios.scenario import VARIANTS, load_scenario, shipped
from surefoot.town.sim.world import TownWorld


# The editor checks a graph after every change, and making an environment takes milliseconds to seconds.
@functools.lru_cache(maxsize=256)
def spaces_of(name: str, backend: str) -> tuple[ObservationSpace, ActionSpace] | str:
    """Return the spaces of an environment, or the reason why it cannot be made."""
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
    """Return why an Isaac Lab task is not available, and what to install."""
    if importlib.util.find_spec("isaaclab") is None:
        return (
            f"{name} is a task of Isaac Lab, which is not installed; `pip install isaaclab` (it needs an NVIDIA GPU), or use "
            "surefoot/CartPoleContinuous-v0, Isaac's Cartpole on the CPU"
        )
    return (
        f"{name}: Isaac Lab is installed; start its app first, make the environment, and pass it to Training(world=…)"
    )


def world_types(observation: ObservationSpace, action: ActionSpace, streams: int) -> Types:
    """Return the output types of an environment with this many streams."""
    choices = None
    match action:
        case Discrete():
            dtype, shape, choices = "int64", (streams,), (action.n,)
        case MultiDiscrete():
            dtype, shape, choices = "int64", (streams, len(action.nvec)), tuple(action.nvec)
        case Hybrid():
            dtype, shape = "float32", (streams, len(action.nvec) + action.box.size)
        case Box():
            dtype, shape = "float32", (streams, *action.shape)
    # Sorted: dicts of observations have no fixed order.
    parts = tuple(sorted((name, box.dtype, (streams, *box.shape)) for name, box in observation.items()))
    raw = frozenset({"raw"})
    return {
        "sim_handle": Type("world", dtype, shape, parts, raw, choices),
        "observations": Type("obs", parts=parts, tags=raw),
    }


def _environment(params: Mapping[str, Any], inputs: Mapping[str, Type]) -> Types:
    spaces = spaces_of(params["env_id"], params["backend"])
    if isinstance(spaces, str):
        raise Misfit("env_id", spaces)
    return world_types(*spaces, params["num_envs"])


def _step(params: Mapping[str, Any], inputs: Mapping[str, Type]) -> Types:
    world, actions = inputs.get("sim_handle", Type("world")), inputs.get("actions", tensor())
    if world.dtype is not None and actions.dtype is not None and world.dtype != actions.dtype:
        kind = "discrete" if world.dtype == "int64" else "continuous"
        raise Misfit(
            "actions",
            f"the environment takes {world.dtype} {list(world.shape or ())} but gets {actions.dtype}; set "
            f'action_space="{kind}" on the agent',
        )
    # A choice per copy may be one number or a row of one, which are different action spaces.
    one_space = world.dtype != "int64" or len(world.shape or ()) == len(actions.shape or ())
    if (
        world.shape is not None
        and actions.shape is not None
        and not (one_space and _same_rows(actions.shape, world.shape))
    ):
        raise Misfit(
            "actions",
            f"the environment takes {list(world.shape)} but gets {list(actions.shape)}; set output_size of the agent to the "
            "size of an action",
        )
    if world.choices is not None and actions.choices is not None and world.choices != actions.choices:
        right, wrong = (n[0] if len(n) == 1 else list(n) for n in (world.choices, actions.choices))
        message = f"the environment has {right} actions but the agent chooses among {wrong}"
        raise Misfit("actions", f"{message}; set output_size of the agent to {right}")
    streams: int | str = world.shape[0] if world.shape else "N"
    obs, flags = Type("obs", parts=world.parts, tags=world.tags), tensor("bool", streams)
    return {
        "observations": obs,
        "rewards": tensor("float64", streams),
        **dict.fromkeys(("dones", "terminated", "truncated", "valid"), flags),
        "next_observations": obs,
    }


def _same_rows(actions: tuple[int | str, ...], expected: tuple[int | str, ...]) -> bool:
    """Return whether two shapes have as many rows and as many numbers per row, as far as the sizes are known."""
    if isinstance(actions[0], int) and isinstance(expected[0], int) and actions[0] != expected[0]:
        return False
    # A size that is not known yet may still fit.
    if any(isinstance(n, str) for n in (*actions[1:], *expected[1:])):
        return True
    return math.prod(map(int, actions[1:])) == math.prod(map(int, expected[1:]))


def _processed(params: Mapping[str, Any], inputs: Mapping[str, Type]) -> Types:
    output = inputs.get("policy_output", Type("policy_output"))
    if params["mode"] != "none" and output.dtype == "int64":
        raise Misfit("mode", f"mode is {params['mode']!r} but the agent's actions are discrete; set it to 'none'")
    return {"actions": Type("tensor", output.dtype, output.shape, choices=output.choices)}


def _normalised(params: Mapping[str, Any], inputs: Mapping[str, Type]) -> Types:
    obs = inputs.get("observations", Type("obs"))
    if "normalised" in obs.tags:
        raise Misfit("observations", "these observations are already normalised; connect raw ones")
    return {"observations": obs.tagged("normalised")}


@functools.lru_cache(maxsize=64)
def one_town(scenario: str, observations: str) -> TownWorld:
    """Return a single town, for its spaces and its number of agents."""
    return TownWorld(load_scenario(scenario), 1, variant=None if observations == "scenario" else observations)


def _scenario(params: Mapping[str, Any], inputs: Mapping[str, Type]) -> Types:
    town = one_town(params["scenario"], params["observations"])
    return world_types(town.observation, town.action, params["towns"] * town.agents)


def _stats_clocks(params: Mapping[str, Any], inputs: Mapping[str, Clock]) -> tuple[Clock, dict[str, Clock]]:
    fires = inputs.get("trigger", when("counts"))
    return fires, {"counts": fires, "conflicts": fires}


NODES = declare(
    "worlds",
    {"scenario": tuple(shipped()), "town_observations": ("scenario", *VARIANTS)},
    Environment={
        "infer": _environment,
        "clocks": lambda params, inputs: (ONCE, {"sim_handle": CONST, "observations": ONCE}),
        "streams": lambda params: ("num_envs", 1),
    },
    Step={"infer": _step},
    ActionProcessor={"infer": _processed},
    RewardShaping={"infer": lambda params, inputs: {"rewards": inputs.get("rewards", tensor("float64"))}},
    ObservationNormalizer={
        "infer": _normalised,
        "clocks": lambda params, inputs: (
            TICK,
            {"observations": inputs.get("observations", TICK), "normalizer": CONST},
        ),
    },
    Normalize={"infer": _normalised},
    Scenario={
        "infer": _scenario,
        "clocks": lambda params, inputs: (ONCE, {"sim_handle": CONST, "observations": ONCE}),
        "streams": lambda params: ("towns", one_town(params["scenario"], "features").agents),
    },
    ConflictStats={"clocks": _stats_clocks},
)
NODES["TownStep"] = replace(
    NODES["Step"],
    name="TownStep",
    category="Town",
    summary="One tick of all towns: agents walk, queue, argue and work. Rows of agents that are not in town are invalid.",
    calls="surefoot.town.sim.world.TownWorld.step",
    runtime=runtime_name("worlds", "TownStep"),
    aliases=(),
)
