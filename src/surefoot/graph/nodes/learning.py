"""Type and clock inference of the agent, the trainer and the two levels of a hierarchy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from surefoot.graph.nodes.catalogue import declare, runtime_name
from surefoot.graph.spec.declare import Misfit, Types
from surefoot.graph.spec.types import CONST, TICK, Clock, Type, every
from surefoot.learn.presets import preset

MASK = "action_mask"
GOAL = "goal"


def _agent(params: Mapping[str, Any], inputs: Mapping[str, Type]) -> Types:
    obs = inputs.get("observations", Type("obs"))
    if obs.parts is not None:
        _check_input_size(params["input_size"], obs)
    # Without the starts a recurrent network would carry its state from one episode into the next.
    if params["network"] in ("gru", "lstm") and "starts" not in inputs:
        message = (
            f"network is {params['network']!r}, which needs the starts of episodes; connect Step.dones with a delay"
        )
        raise Misfit("starts", message)
    size, choices = params["output_size"], None
    if params["action_space"] == "discrete":
        dtype, row, choices = (
            "int64",
            () if isinstance(size, int) else (len(size),),
            size if isinstance(size, tuple) else (size,),
        )
    else:
        dtype, row = "float32", (size,) if isinstance(size, int) else size
    streams: int | str = obs.parts[0][2][0] if obs.parts else "N"
    # The mask restricts the action; the network does not read it.
    parts = None if obs.parts is None else tuple(part for part in obs.parts if part[0] != MASK)
    return {
        "policy_output": Type("policy_output", dtype, (streams, *row), parts, obs.tags, choices),
        "model": Type("model"),
    }


def _check_input_size(input_size: Any, obs: Type) -> None:
    rows = {name: tuple(shape[1:]) for name, _, shape in obs.parts or () if name != MASK}
    sizes = input_size if isinstance(input_size, dict) else {next(iter(rows), "obs"): input_size}
    flat = {name: _entries(row) for name, row in rows.items()}
    right = {name: _shown(row) if len(row) > 1 else flat[name] for name, row in rows.items()}
    if len(right) == 1:
        (right,) = right.values()
    if set(sizes) != set(rows):
        message = f"input_size is {input_size} but the observations have the parts {', '.join(rows)}; set it to {right}"
        raise Misfit("input_size", message)
    for name, size in sizes.items():
        # An agent may flatten: [84, 84] as 7056 is accepted.
        if size != rows[name] and size not in (flat[name], (flat[name],)):
            message = f"input_size is {input_size} but the observations are {_shown(rows[name])}; set it to {right}"
            raise Misfit("input_size", message)


def _entries(row: tuple[int | str, ...]) -> int:
    return math.prod(n if isinstance(n, int) else 1 for n in row)


def _shown(row: tuple[int | str, ...]) -> Any:
    return list(row) if len(row) != 1 else row[0]


def _agent_clocks(params: Mapping[str, Any], inputs: Mapping[str, Clock]) -> tuple[Clock, dict[str, Clock]]:
    fires = NODES["PPOAgentNode"].firing(inputs)
    return fires, {"policy_output": fires, "model": CONST}


def _trainer(params: Mapping[str, Any], inputs: Mapping[str, Type]) -> Types:
    acted = inputs.get("policy_outputs", Type("policy_output"))
    for name in ("states", "next_states"):
        obs = inputs.get(name, Type("obs"))
        if obs.tags and acted.tags and not obs.tags & acted.tags:
            raise Misfit(
                name,
                f"the policy acted on {' '.join(sorted(acted.tags))} observations and {name} is "
                f"{' '.join(sorted(obs.tags))}; the probability ratios would be wrong. Connect both to the same output",
            )
        if obs.parts is not None and acted.parts is not None:
            shapes = {part: list(shape) for part, _, shape in obs.parts if part != MASK}
            expected = {part: list(shape) for part, _, shape in acted.parts}
            if shapes != expected:
                message = f"the policy acted on {expected} and {name} is {shapes}; connect both to the same output"
                raise Misfit(name, message)
    if "terminated" not in inputs and "dones" not in inputs:
        raise Misfit("terminated", "connect terminated and truncated of Step (or dones, which combines them)")
    return {}


def _trainer_clocks(params: Mapping[str, Any], inputs: Mapping[str, Clock]) -> tuple[Clock, dict[str, Clock]]:
    fires = NODES["PPOTrainerNode"].firing(inputs)
    # A rollout is a fixed number of steps; a tick without one would leave a gap in it.
    if fires != TICK:
        raise Misfit("policy_outputs", f"the trainer needs a step in every tick; its inputs have the clock {fires}")
    return fires, {port.name: every(params["rollout_steps"]) for port in NODES["PPOTrainerNode"].outputs}


def _trainer_lint(params: Mapping[str, Any], inputs: Mapping[str, Type]) -> list[tuple[str, str]]:
    warnings: dict[str, str] = {}
    shape = inputs["policy_outputs"].shape if "policy_outputs" in inputs else None
    size = params["rollout_steps"] * shape[0] if shape and isinstance(shape[0], int) else None
    if size is not None and params["minibatch_size"] > size:
        warnings["minibatch_size"] = (
            f"a rollout has {size} steps, fewer than minibatch_size={params['minibatch_size']}, so each epoch is one gradient "
            "step; lower minibatch_size, or raise rollout_steps or num_envs"
        )
    if "terminated" not in inputs:
        warnings["dones"] = (
            "dones does not distinguish termination from a time limit, so the value after every time limit is learned as 0; "
            "connect terminated and truncated of Step"
        )
    if "next_states" not in inputs:
        warnings["next_states"] = (
            "without it the last step of each rollout and steps that were cut by a time limit are not learned from; connect "
            "next_observations of Step"
        )
    return list(warnings.items())


def _manager_clocks(params: Mapping[str, Any], inputs: Mapping[str, Clock]) -> tuple[Clock, dict[str, Clock]]:
    learned = inputs.get("trigger", TICK)
    return TICK, {"manager": CONST, "learned": learned, "loss_info": learned}


def _goals(params: Mapping[str, Any], inputs: Mapping[str, Type]) -> Types:
    world = inputs.get("sim_handle", Type("world"))
    # Rooms lie in a plane.
    size = 2 if params["goals"] == "rooms" else len(params["coordinates"])
    if world.parts is None:
        return {"sim_handle": world, "observations": Type("obs")}
    streams = world.parts[0][2][0]
    parts = tuple(sorted((*world.parts, (GOAL, "float32", (streams, size)))))
    return {"sim_handle": replace(world, parts=parts), "observations": Type("obs", parts=parts, tags=world.tags)}


NODES = {
    **declare("agent", PPOAgentNode={"infer": _agent, "clocks": _agent_clocks}),
    **declare("trainer", PPOTrainerNode={"infer": _trainer, "clocks": _trainer_clocks, "lint": _trainer_lint}),
    **declare(
        "hierarchy",
        HighLevelPPO={"clocks": _manager_clocks},
        SubGoal={
            "infer": _goals,
            "clocks": lambda params, inputs: (TICK, {"sim_handle": CONST, "observations": TICK}),
        },
    ),
}
NODES["LowLevelPPO"] = replace(
    NODES["PPOAgentNode"],
    name="LowLevelPPO",
    category="RL/Hierarchy",
    summary="The lower policy: an agent whose observations include its sub-goal.",
    runtime=runtime_name("hierarchy", "LowLevelPPO"),
    aliases=(),
)
# The library's presets under the names that the editor shows; settings that are no parameter of the node are left out.
_PRESETS = {name: preset(name).ppo for name in ("stable", "fast", "sample-efficient", "robotics", "atari")}
NODES["PPOTrainerNode"] = replace(
    NODES["PPOTrainerNode"],
    presets={
        "isaac" if name == "robotics" else name: {
            param.name: values[param.name] for param in NODES["PPOTrainerNode"].params if param.name in values
        }
        for name, values in _PRESETS.items()
    },
)
