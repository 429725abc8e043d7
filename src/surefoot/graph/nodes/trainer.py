"""The trainer: PPO."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot.data.kinds import Interval as Within
from surefoot.data.kinds import optional, real
from surefoot.graph.nodes.agent import MASK
from surefoot.graph.nodes.param_kinds import COUNT, schedule, setting
from surefoot.graph.spec.declare import Misfit, NodeType, Param, Port, Types
from surefoot.graph.spec.types import (
    EPISODES,
    LEARNER,
    MODEL,
    OBS,
    TABLE,
    TICK,
    TRIGGER,
    Clock,
    Type,
    every,
    tensor,
)
from surefoot.learn.config import PPOConfig
from surefoot.learn.presets import preset
from surefoot.train.config import CollectConfig


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


def _preset(name: str) -> dict[str, Any]:
    """A preset of the library by the parameters' names; what it says besides is left out."""
    ppo = preset(name).ppo
    return {param: ppo[knob] for param, knob in _IN_PRESETS.items() if knob in ppo}


_IN_PRESETS = {
    "horizon_length": "steps",
    "epochs": "epochs",
    "minibatch_size": "minibatch_size",
    "learning_rate": "lr",
    "gamma": "gamma",
    "lam": "lam",
    "clip_param": "clip",
    "value_coef": "vf_coef",
    "entropy_coef": "ent_coef",
    "max_grad_norm": "max_grad_norm",
}

TRAINER = NodeType(
    name="PPOTrainerNode",
    category="RL/PPO",
    summary="Keeps horizon_length steps of every copy, estimates advantages and moves the network: PPO.",
    inputs=(
        Port("states", OBS, "The observations that were acted on.", aliases=("state",)),
        Port("policy_outputs", Type("policy_output"), "What the agent chose.", aliases=("policy_output",)),
        Port("rewards", tensor(), "[N]", aliases=("reward",)),
        Port("dones", tensor("bool"), "[N]: an episode ended, for whichever reason.", optional=True, aliases=("done",)),
        Port("model", MODEL, "The agent's network.", sampled=True),
        Port("terminated", tensor("bool"), "[N]: over, worth nothing more. Wins over dones.", optional=True),
        Port("truncated", tensor("bool"), "[N]: cut short; what would have come has a value.", optional=True),
        Port("next_states", OBS, "Where each step really led: next_observations of Step.", optional=True),
        Port("valid", tensor("bool"), "[N]: False where nothing is to be learned.", optional=True),
        Port("info", TABLE, "Of Step: success and whole returns of episodes.", optional=True),
        Port("curiosity", Type("curiosity"), "Pays for what is new.", optional=True, sampled=True),
        Port(
            "schedule",
            Type("schedule"),
            "Of the learning rate, in place of the parameter.",
            optional=True,
            sampled=True,
        ),
    ),
    params=(
        setting(PPOConfig, "steps", "horizon_length", 2048, kind=COUNT),
        setting(PPOConfig, "epochs", "epochs", 10, "num_epochs"),
        setting(PPOConfig, "minibatch_size", "minibatch_size", 64, kind=COUNT),
        setting(PPOConfig, "lr", "learning_rate", 3e-4),
        setting(PPOConfig, "gamma", "gamma", 0.99),
        setting(PPOConfig, "lam", "lam", 0.95, "gae_lambda"),
        setting(PPOConfig, "clip", "clip_param", 0.2),
        setting(PPOConfig, "vf_coef", "value_coef", 0.5),
        setting(PPOConfig, "ent_coef", "entropy_coef", 0.01),
        setting(PPOConfig, "max_grad_norm", "max_grad_norm", 0.5),
        setting(PPOConfig, "target_kl", "target_kl", None),
        Param("lr_schedule", schedule(), "The learning rate over the run, as lin_3e-4; wins over learning_rate.", None),
        setting(PPOConfig, "normalize_advantage", "normalize_advantages", "minibatch"),
        setting(PPOConfig, "value_clip", "value_clip", None, kind=optional(real(Within(0, open_low=True)))),
        setting(CollectConfig, "normalize_reward", "normalize_rewards", False),
    ),
    outputs=(
        Port("training_complete", TRIGGER, "Comes when an update is done, never in between."),
        Port("loss_info", TABLE, "What the update came to: losses, KL, gradient, returns.", aliases=("loss",)),
        Port("episodes", EPISODES, "Returns and lengths of the episodes that ended meanwhile."),
        Port("learner", LEARNER, "The learner, for a checkpoint."),
    ),
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

NODES = (TRAINER,)
