"""The agent and the trainer of the seed, with its inputs, parameters, defaults and outputs; and what plugs into them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from surefoot.data.kinds import Interval as Within
from surefoot.data.kinds import choice, flag, optional, real
from surefoot.graph.catalogue.kinds import COUNT, knob_param, schedule, shape
from surefoot.graph.spec.declare import Misfit, NodeType, Param, Port, Types
from surefoot.graph.spec.types import CONST, TICK, Clock, Type, every, tensor
from surefoot.learn.config import PPOConfig
from surefoot.learn.presets import preset
from surefoot.nets.config import NetConfig
from surefoot.train.config import CollectConfig

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


def _trainer(params: Mapping[str, Any], given: Mapping[str, Type]) -> Types:
    chosen = given.get("policy_outputs", Type("policy_output"))
    for name in ("states", "next_states"):
        seen = given.get(name)
        if seen is None:
            continue
        if seen.tags and chosen.tags and not seen.tags & chosen.tags:
            raise Misfit(
                name,
                f"the policy acted on what is {' '.join(sorted(chosen.tags))} and {name} is {' '.join(sorted(seen.tags))}; "
                "learning from other numbers than it saw would make every ratio wrong: take both from the same place",
            )
        if seen.parts is not None and chosen.parts is not None:
            has = {part: list(shape) for part, _, shape in seen.parts if part != MASK}
            saw = {part: list(shape) for part, _, shape in chosen.parts}
            if has != saw:
                raise Misfit(name, f"the policy saw {saw} and {name} is {has}; take both from the same place")
    if "terminated" not in given and "dones" not in given:
        raise Misfit("terminated", "connect terminated and truncated of Step (or dones, which cannot tell them apart)")
    return {}


def _trainer_clocks(params: Mapping[str, Any], given: Mapping[str, Clock]) -> tuple[Clock, dict[str, Clock]]:
    fires = TRAINER.firing(given)
    if fires != TICK:
        raise Misfit("policy_outputs", f"the trainer needs a step in every tick and gets one {fires}")
    later = every(params["horizon_length"])
    return fires, {"training_complete": later, "loss_info": later, "episodes": later, "learner": later}


def _trainer_lint(params: Mapping[str, Any], given: Mapping[str, Type]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    shape = given["policy_outputs"].shape if "policy_outputs" in given else None
    size = params["horizon_length"] * shape[0] if shape and isinstance(shape[0], int) else None
    if size is not None and params["minibatch_size"] > size:
        found.append(
            (
                "minibatch_size",
                f"a rollout has {size} steps, fewer than minibatch_size={params['minibatch_size']}, so each epoch is one "
                "gradient step; make it smaller, or horizon_length or num_envs larger",
            )
        )
    if "terminated" not in given:
        found.append(
            (
                "dones",
                "dones alone cannot tell an end from a time limit, so every time limit is learned as an end worth nothing; "
                "connect terminated and truncated of Step",
            )
        )
    if "next_states" not in given:
        found.append(
            (
                "next_states",
                "without it the last step of each rollout only says what the one before led to, and steps that were cut short "
                "are left out; connect next_observations of Step",
            )
        )
    return found


def _agent_clocks(params: Mapping[str, Any], given: Mapping[str, Clock]) -> tuple[Clock, dict[str, Clock]]:
    fires = AGENT.firing(given)
    return fires, {"policy_output": fires, "model": CONST}


AGENT = NodeType(
    name="PPOAgentNode",
    category="RL/PPO",
    summary="An actor-critic network: chooses actions and says what it expects of them.",
    inputs=(
        Port(name="observations", type=Type("obs"), help="What the environment shows."),
        Port(
            name="starts",
            type=tensor("bool"),
            help="[N]: an episode begins here; for networks with memory.",
            optional=True,
            event=True,
        ),
    ),
    params=(
        Param(
            name="input_size",
            kind=shape(),
            help="How many numbers an observation has; [4, 84, 84] for pictures, {obs: 4, goal: 2} by part.",
        ),
        Param(
            name="output_size",
            kind=shape(),
            help="How many numbers an action has, or how many there are to choose from ([3, 2] for several choices at once).",
            aliases=("action_dim",),
        ),
        knob_param(NetConfig, "hidden", "hidden_sizes", (64, 64)),
        knob_param(NetConfig, "activation", "activation", "elu"),
        Param(
            name="learning_rate",
            kind=real(Within(0, open_low=True)),
            help="Kept for graphs that set it here; the trainer's own is the one that counts.",
            default=3e-4,
            aliases=("lr",),
        ),
        Param(
            name="action_space",
            kind=choice("continuous", "discrete"),
            help="Numbers, or one of several choices.",
            default="continuous",
        ),
        Param(
            name="network",
            kind=choice("mlp", "cnn", "gru", "lstm"),
            help="mlp for numbers, cnn for pictures, gru and lstm remember.",
            default="mlp",
        ),
        Param(
            name="deterministic",
            kind=flag(),
            help="Always the likeliest action: to watch a policy, not to train one.",
            default=False,
        ),
        knob_param(NetConfig, "log_std_init", "init_log_std", 0.0),
        knob_param(NetConfig, "shared", "shared", True),
        knob_param(NetConfig, "normalize_obs", "normalize_obs", False),
        knob_param(NetConfig, "ortho_init", "ortho_init", True),
        knob_param(NetConfig, "memory_size", "memory_size", 64),
    ),
    outputs=(
        Port(
            name="policy_output",
            type=Type("policy_output"),
            help="Action, value, log_prob and action_params of every copy.",
            aliases=("policy",),
        ),
        Port(name="model", type=Type("model"), help="The network, for the trainer."),
    ),
    runtime="surefoot.graph.nodes.agent:PPOAgent",
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

_KNOBS = {"horizon_length": "steps", "epochs": "epochs", "minibatch_size": "minibatch_size", "learning_rate": "lr"} | {
    "gamma": "gamma",
    "lam": "lam",
    "clip_param": "clip",
    "value_coef": "vf_coef",
    "entropy_coef": "ent_coef",
    "max_grad_norm": "max_grad_norm",
}


def _preset(name: str) -> dict[str, Any]:
    ppo = preset(name).ppo
    return {param: ppo[knob] for param, knob in _KNOBS.items() if knob in ppo}


TRAINER = NodeType(
    name="PPOTrainerNode",
    category="RL/PPO",
    summary="Keeps horizon_length steps of every copy, estimates advantages and moves the network: PPO.",
    inputs=(
        Port(name="states", type=Type("obs"), help="The observations that were acted on.", aliases=("state",)),
        Port(
            name="policy_outputs", type=Type("policy_output"), help="What the agent chose.", aliases=("policy_output",)
        ),
        Port(name="rewards", type=tensor(), help="[N]", aliases=("reward",)),
        Port(
            name="dones",
            type=tensor("bool"),
            help="[N]: an episode ended, for whichever reason.",
            optional=True,
            aliases=("done",),
        ),
        Port(name="model", type=Type("model"), help="The agent's network.", sampled=True),
        Port(
            name="terminated",
            type=tensor("bool"),
            help="[N]: over, worth nothing more. Wins over dones.",
            optional=True,
        ),
        Port(
            name="truncated",
            type=tensor("bool"),
            help="[N]: cut short; what would have come has a value.",
            optional=True,
        ),
        Port(
            name="next_states",
            type=Type("obs"),
            help="Where each step really led: next_observations of Step.",
            optional=True,
        ),
        Port(name="valid", type=tensor("bool"), help="[N]: False where nothing is to be learned.", optional=True),
        Port(name="info", type=Type("dict"), help="Of Step: success and whole returns of episodes.", optional=True),
        Port(name="curiosity", type=Type("curiosity"), help="Pays for what is new.", optional=True, sampled=True),
        Port(
            name="schedule",
            type=Type("schedule"),
            help="Of the learning rate, in place of the parameter.",
            optional=True,
            sampled=True,
        ),
    ),
    params=(
        knob_param(PPOConfig, "steps", "horizon_length", 2048, kind=COUNT),
        knob_param(PPOConfig, "epochs", "epochs", 10, "num_epochs"),
        knob_param(PPOConfig, "minibatch_size", "minibatch_size", 64, kind=COUNT),
        knob_param(PPOConfig, "lr", "learning_rate", 3e-4),
        knob_param(PPOConfig, "gamma", "gamma", 0.99),
        knob_param(PPOConfig, "lam", "lam", 0.95, "gae_lambda"),
        knob_param(PPOConfig, "clip", "clip_param", 0.2),
        knob_param(PPOConfig, "vf_coef", "value_coef", 0.5),
        knob_param(PPOConfig, "ent_coef", "entropy_coef", 0.01),
        knob_param(PPOConfig, "max_grad_norm", "max_grad_norm", 0.5),
        knob_param(PPOConfig, "target_kl", "target_kl", None),
        Param(
            name="lr_schedule",
            kind=schedule(),
            help="The learning rate over the run, as lin_3e-4; wins over learning_rate.",
            default=None,
        ),
        knob_param(PPOConfig, "normalize_advantage", "normalize_advantages", "minibatch"),
        knob_param(PPOConfig, "value_clip", "value_clip", None, kind=optional(real(Within(0, open_low=True)))),
        knob_param(CollectConfig, "normalize_reward", "normalize_rewards", False),
    ),
    outputs=(
        Port(name="training_complete", type=Type("trigger"), help="Comes when an update is done, never in between."),
        Port(
            name="loss_info",
            type=Type("dict"),
            help="What the update came to: losses, KL, gradient, returns.",
            aliases=("loss",),
        ),
        Port(name="episodes", type=Type("episodes"), help="Returns and lengths of the episodes that ended meanwhile."),
        Port(name="learner", type=Type("learner"), help="The learner, for a checkpoint."),
    ),
    runtime="surefoot.graph.nodes.trainer:PPOTrainer",
    calls="surefoot.learn.learner.Learner.update",
    effect="rng",
    needs=("seed", "total_steps", "path"),
    trains=True,
    infer=_trainer,
    clocks=_trainer_clocks,
    lint=_trainer_lint,
    presets={
        "stable": _preset("stable"),
        "fast": _preset("fast"),
        "sample-efficient": _preset("sample-efficient"),
        "isaac": _preset("robotics"),
        "atari": _preset("atari"),
    },
    aliases=("PPOTrainer",),
)

CURIOSITY = NodeType(
    name="RNDCuriosity",
    category="RL/PPO",
    summary="Pays for observations that a network cannot predict yet; connect it to the trainer.",
    params=(
        Param(
            name="kind",
            kind=choice("rnd", "icm"),
            help="Random distillation, or an inverse-forward model.",
            default="rnd",
        ),
        knob_param(CollectConfig, "curiosity_coef", "coef", 1.0),
        knob_param(CollectConfig, "ext_coef", "ext_coef", 1.0),
        knob_param(CollectConfig, "curiosity_lr", "learning_rate", 1e-4),
        knob_param(CollectConfig, "curiosity_hidden", "hidden_sizes", (256, 256)),
    ),
    outputs=(Port(name="curiosity", type=Type("curiosity"), help="For the trainer."),),
    runtime="surefoot.graph.nodes.extras:RNDCuriosity",
    calls="surefoot.train.algorithms.curiosity.Curiosity",
    effect="rng",
    needs=("seed",),
    source=CONST,
)

SCHEDULE = NodeType(
    name="Schedule",
    category="RL/PPO",
    summary="A value that moves over the run: a line, a cosine, or steps.",
    params=(
        Param(name="kind", kind=choice("linear", "cosine", "constant"), help="How it moves.", default="linear"),
        Param(name="start", kind=real(Within()), help="Where it begins.", default=3e-4),
        Param(name="end", kind=real(Within()), help="Where it ends.", default=0.0),
    ),
    outputs=(Port(name="schedule", type=Type("schedule"), help="For the trainer's schedule."),),
    runtime="surefoot.graph.nodes.extras:ScheduleNode",
    calls="surefoot.learn.schedule",
    source=CONST,
)

NODES = (AGENT, TRAINER, CURIOSITY, SCHEDULE)
