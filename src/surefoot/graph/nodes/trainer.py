"""The trainer: PPO."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot.graph.nodes.agent import MASK
from surefoot.graph.nodes.catalogue import declare
from surefoot.graph.spec.declare import Misfit, Types
from surefoot.graph.spec.types import (
    TICK,
    Clock,
    Type,
    every,
)
from surefoot.learn.presets import preset


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
    fires = NODES["PPOTrainerNode"].firing(given)
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
    "horizon_length": "rollout_steps",
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


NODES = declare(
    "trainer",
    PPOTrainerNode={
        "infer": _trainer,
        "clocks": _trainer_clocks,
        "lint": _trainer_lint,
        "presets": {
            "stable": _preset("stable"),
            "fast": _preset("fast"),
            "sample-efficient": _preset("sample-efficient"),
            "isaac": _preset("robotics"),
            "atari": _preset("atari"),
        },
    },
)
