"""Environments, stepping, and what lies between a policy and a world."""

from __future__ import annotations

import functools
import importlib.util
import math
import re
from collections.abc import Mapping
from typing import Any

from surefoot.data.kinds import Interval as Within
from surefoot.data.kinds import Kind, choice, real, whole
from surefoot.data.spaces import ActionSpace, Box, Discrete, Hybrid, MultiDiscrete, ObservationSpace
from surefoot.errors import SurefootError
from surefoot.graph.nodes.param_kinds import numbers
from surefoot.graph.spec.declare import Misfit, NodeType, Param, Port, Types
from surefoot.graph.spec.types import CONST, MODEL, OBS, ONCE, TABLE, TICK, TRIGGER, WORLD, Clock, Parts, Type, tensor

_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_\-./]{0,99}")
BACKENDS = ("auto", "surefoot", "gymnasium", "envpool", "isaaclab")


def env_id() -> Kind:
    def accept(value: Any) -> str:
        if not isinstance(value, str) or not _ID.fullmatch(value) or ".." in value or value.endswith((".so", ".dylib")):
            raise ValueError(f"{str(value)[:40]!r} is no id")
        return value

    return Kind("text", "a Gymnasium id such as CartPole-v1; module:Name and paths are refused here", accept, str)


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


def _environment_clocks(params: Mapping[str, Any], given: Mapping[str, Clock]) -> tuple[Clock, dict[str, Clock]]:
    return ONCE, {"sim_handle": CONST, "observations": ONCE}


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


def _shaped(params: Mapping[str, Any], given: Mapping[str, Type]) -> Types:
    return {"rewards": given.get("rewards", tensor("float64"))}


def _normalised(params: Mapping[str, Any], given: Mapping[str, Type]) -> Types:
    seen = given.get("observations", Type("obs"))
    if "normalised" in seen.tags:
        raise Misfit("observations", "these are normalised already; twice is once too often")
    return {"observations": seen.tagged("normalised")}


ENVIRONMENT = NodeType(
    name="Environment",
    category="World",
    summary="Several copies of one environment, stepped together: a Gymnasium id, MuJoCo, or a world of our own.",
    params=(
        Param("env_id", env_id(), "Which environment, such as CartPole-v1 or HalfCheetah-v5.", aliases=("env_name",)),
        Param("num_envs", whole(Within(1, 65_536)), "Copies that are stepped side by side: one message for all.", 64),
        Param("backend", choice(*BACKENDS), "Whose implementation: auto takes our own where there is one.", "auto"),
    ),
    outputs=(
        Port("sim_handle", WORLD, "The environment itself, to be stepped."),
        Port("observations", OBS, "What all copies see first; said once."),
    ),
    calls="surefoot.envs.make.make_world",
    effect="rng",
    needs=("seed",),
    source=ONCE,
    infer=_environment,
    clocks=_environment_clocks,
    streams=lambda params: ("num_envs", 1),
    aliases=("EnvironmentNode",),
)

STEP = NodeType(
    name="Step",
    category="World",
    summary="Takes an action in every copy. A copy whose episode ended shows the first observation of its next one.",
    inputs=(
        Port("sim_handle", WORLD, "The environment.", sampled=True),
        Port("actions", tensor(), "[N, …]: one action a copy.", aliases=("action",)),
        Port(
            "trigger",
            TRIGGER,
            "Steps only after the trainer has said that it is ready; comes by a delay that begins with ready.",
            optional=True,
            sampled=True,
        ),
    ),
    outputs=(
        Port("observations", OBS, "What to act on next."),
        Port("rewards", tensor("float64"), "[N]"),
        Port("dones", tensor("bool"), "[N]: terminated or truncated; which of them is lost.", aliases=("done",)),
        Port("terminated", tensor("bool"), "[N]: the episode is over and its future is worth nothing."),
        Port("truncated", tensor("bool"), "[N]: the episode was cut short; its future has a value."),
        Port("next_observations", OBS, "Where the step really led, in copies that ended too."),
        Port("valid", tensor("bool"), "[N]: False where a copy was only being reset."),
        Port("info", TABLE, "Numbers that the environment tells besides."),
    ),
    calls="surefoot.envs.api.World.step",
    effect="state",
    infer=_step,
    aliases=("StepNode",),
)

ACTION = NodeType(
    name="ActionProcessor",
    category="World",
    summary="From the policy's output to what the environment takes: clipped, scaled or squashed.",
    inputs=(Port("policy_output", Type("policy_output"), "What was chosen.", aliases=("policy", "policy_outputs")),),
    params=(
        Param(
            "mode",
            choice("none", "clip", "scale", "tanh"),
            "none for choices; clip holds numbers within low and high; scale multiplies by factor first; "
            "tanh squashes them onto low to high.",
            "clip",
        ),
        Param("low", numbers(), "The smallest action that the environment takes.", -1.0),
        Param("high", numbers(), "The largest.", 1.0),
        Param("factor", numbers(), "What scale multiplies by.", 1.0),
    ),
    outputs=(Port("actions", tensor(), "[N, …] for Step.", aliases=("action",)),),
    calls="numpy.clip, numpy.tanh",
    infer=_processed,
    aliases=("ActionNode", "Action"),
)

SHAPING = NodeType(
    name="RewardShaping",
    category="World",
    summary="Rewards scaled, shifted and clipped before they are learned from; what people are shown stays raw.",
    inputs=(Port("rewards", tensor("float64"), "[N]"),),
    params=(
        Param("scale", real(Within()), "Rewards are multiplied by it.", 1.0),
        Param("shift", real(Within()), "Added after scaling.", 0.0),
        Param("limit", real(Within(0, open_low=True)), "Then held within ± this.", 1e9),
    ),
    outputs=(Port("rewards", tensor("float64"), "[N]"),),
    calls="numpy.clip",
    infer=_shaped,
)

NORMALIZER = NodeType(
    name="ObservationNormalizer",
    category="World",
    summary="Observations of mean 0 and deviation 1. Their statistics move when an update is over, never in between.",
    inputs=(
        Port("observations", OBS, "Raw."),
        Port(
            "update",
            TRIGGER,
            "training_complete, by a delay: take in what was seen since the last.",
            optional=True,
            event=True,
        ),
    ),
    params=(Param("clip", real(Within(0, open_low=True)), "Held within ± this many deviations.", 10.0),),
    outputs=(
        Port("observations", OBS, "Normalised."),
        Port("normalizer", MODEL, "The statistics, for Normalize."),
    ),
    calls="surefoot.nets.normalizer.Normalizer",
    effect="state",
    infer=_normalised,
    clocks=lambda params, given: (TICK, {"observations": given.get("observations", TICK), "normalizer": CONST}),
)

NORMALIZE = NodeType(
    name="Normalize",
    category="World",
    summary="Other observations by the statistics of an ObservationNormalizer, such as where a step led.",
    inputs=(
        Port("observations", OBS, "Raw."),
        Port("normalizer", MODEL, "Of an ObservationNormalizer.", sampled=True),
    ),
    outputs=(Port("observations", OBS, "Normalised."),),
    calls="surefoot.nets.normalizer.Normalizer",
    infer=_normalised,
)

NODES = (ENVIRONMENT, STEP, ACTION, SHAPING, NORMALIZER, NORMALIZE)
