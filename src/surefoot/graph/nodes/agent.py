"""The agent: an actor-critic network."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from surefoot.data.kinds import Interval as Within
from surefoot.data.kinds import choice, flag, real
from surefoot.graph.nodes.param_kinds import setting, shape
from surefoot.graph.spec.declare import Misfit, NodeType, Param, Port, Types
from surefoot.graph.spec.types import (
    CONST,
    MODEL,
    OBS,
    Clock,
    Type,
    tensor,
)
from surefoot.nets.config import NetConfig

MASK = "action_mask"


def _agent(params: Mapping[str, Any], given: Mapping[str, Type]) -> Types:
    seen = given.get("observations", Type("obs"))
    streams = _streams(seen)
    if seen.parts is not None:
        _check_inputs(params["input_size"], seen)
    if params["network"] in ("gru", "lstm") and "starts" not in given:
        raise Misfit(
            "starts",
            f"network is {params['network']!r}, which must know where episodes begin; connect Step.dones by a delay",
        )
    size = params["output_size"]
    if params["action_space"] == "discrete":
        dtype, row = "int64", () if isinstance(size, int) else (len(size),)
    else:
        dtype, row = "float32", (size,) if isinstance(size, int) else size
    parts = None if seen.parts is None else tuple(part for part in seen.parts if part[0] != MASK)
    return {
        "policy_output": Type("policy_output", dtype, (streams, *row), parts, seen.tags),
        "model": Type("model"),
    }


def _streams(seen: Type) -> int | str:
    return seen.parts[0][2][0] if seen.parts else "N"


def _check_inputs(wanted: Any, seen: Type) -> None:
    parts = {name: tuple(shape[1:]) for name, _, shape in seen.parts or () if name != MASK}
    sizes = wanted if isinstance(wanted, dict) else {next(iter(parts), "obs"): wanted}
    flat = {name: _flat(row) for name, row in parts.items()}
    told = next(iter(flat.values())) if len(flat) == 1 else {name: _shown(row) for name, row in parts.items()}
    if set(sizes) != set(parts):
        raise Misfit(
            "input_size", f"input_size is {wanted} but the observations have {', '.join(parts)}; set it to {told}"
        )
    for name, size in sizes.items():
        if size != parts[name] and _flat(size if isinstance(size, tuple) else (size,)) != flat[name]:
            raise Misfit(
                "input_size", f"input_size is {wanted} but the observations are {_shown(parts[name])}; set it to {told}"
            )


def _flat(row: tuple[int | str, ...]) -> int:
    return math.prod(n if isinstance(n, int) else 1 for n in row)


def _shown(row: tuple[int | str, ...]) -> Any:
    return list(row) if len(row) != 1 else row[0]


def _agent_clocks(params: Mapping[str, Any], given: Mapping[str, Clock]) -> tuple[Clock, dict[str, Clock]]:
    fires = AGENT.firing(given)
    return fires, {"policy_output": fires, "model": CONST}


AGENT = NodeType(
    name="PPOAgentNode",
    category="RL/PPO",
    summary="An actor-critic network: chooses actions and says what it expects of them.",
    inputs=(
        Port("observations", OBS, "What the environment shows."),
        Port(
            "starts",
            tensor("bool"),
            "[N]: an episode begins here; for networks with memory.",
            optional=True,
            event=True,
        ),
    ),
    params=(
        Param(
            "input_size",
            shape(),
            "How many numbers an observation has; [4, 84, 84] for pictures, {obs: 4, goal: 2} by part.",
        ),
        Param(
            "output_size",
            shape(),
            "How many numbers an action has, or how many there are to choose from ([3, 2] for several choices at once).",
            aliases=("action_dim",),
        ),
        setting(NetConfig, "hidden", "hidden_sizes", (64, 64)),
        setting(NetConfig, "activation", "activation", "elu"),
        Param(
            "learning_rate",
            real(Within(0, open_low=True)),
            "The trainer's, for graphs that set it here; the trainer then has the same or none.",
            3e-4,
            aliases=("lr",),
        ),
        Param("action_space", choice("continuous", "discrete"), "Numbers, or one of several choices.", "continuous"),
        Param(
            "network",
            choice("mlp", "cnn", "gru", "lstm"),
            "mlp for numbers, cnn for pictures, gru and lstm remember.",
            "mlp",
        ),
        Param("deterministic", flag(), "Always the likeliest action: to watch a policy, not to train one.", False),
        setting(NetConfig, "log_std_init", "init_log_std", 0.0),
        setting(NetConfig, "shared", "shared", True),
        setting(NetConfig, "normalize_obs", "normalize_obs", False),
        setting(NetConfig, "ortho_init", "ortho_init", True),
        setting(NetConfig, "memory_size", "memory_size", 64),
    ),
    outputs=(
        Port(
            "policy_output",
            Type("policy_output"),
            "Action, value, log_prob and action_params of every copy.",
            aliases=("policy",),
        ),
        Port("model", MODEL, "The network, for the trainer."),
    ),
    calls="surefoot.nets.actor_critic.ActorCritic",
    effect="rng",
    needs=("seed", "path"),
    infer=_agent,
    clocks=_agent_clocks,
    presets={
        "continuous control": {"hidden_sizes": [256, 256], "activation": "elu", "action_space": "continuous"},
        "discrete control": {"hidden_sizes": [512, 256], "activation": "relu", "action_space": "discrete"},
    },
    aliases=("PPOAgent",),
)

NODES = (AGENT,)
