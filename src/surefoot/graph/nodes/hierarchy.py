"""One policy above another: HighLevelPPO sets sub-goals, LowLevelPPO is paid for reaching them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from surefoot.data.kinds import Interval, choice, real
from surefoot.graph.nodes.agent import AGENT
from surefoot.graph.nodes.param_kinds import COUNT, counts, setting
from surefoot.graph.spec.declare import NodeType, Param, Port, Types
from surefoot.graph.spec.types import CONST, OBS, TABLE, TICK, TRIGGER, WORLD, Clock, Type
from surefoot.learn.config import PPOConfig
from surefoot.nets.config import NetConfig

GOAL = "goal"


def _manager(params: Mapping[str, Any], given: Mapping[str, Type]) -> Types:
    return {}


def _manager_clocks(params: Mapping[str, Any], given: Mapping[str, Clock]) -> tuple[Clock, dict[str, Clock]]:
    later = given.get("trigger", TICK)
    return TICK, {"manager": CONST, "learned": later, "loss_info": later}


def _goals(params: Mapping[str, Any], given: Mapping[str, Type]) -> Types:
    world = given.get("sim_handle", Type("world"))
    size = 2 if params["goals"] == "rooms" else len(params["coordinates"])
    if world.parts is None:
        return {"sim_handle": world, "observations": Type("obs")}
    streams = world.parts[0][2][0]
    parts = tuple(sorted((*world.parts, (GOAL, "float32", (streams, size)))))
    return {
        "sim_handle": replace(world, parts=parts),
        "observations": Type("obs", parts=parts, tags=world.tags),
    }


def _goal_clocks(params: Mapping[str, Any], given: Mapping[str, Clock]) -> tuple[Clock, dict[str, Clock]]:
    return TICK, {"sim_handle": CONST, "observations": TICK}


NODES = (
    NodeType(
        name="HighLevelPPO",
        category="RL/Hierarchy",
        summary="The upper policy: chooses where each copy goes next, and learns from what that brought.",
        inputs=(
            Port("sim_handle", WORLD, "The environment.", sampled=True),
            Port("trigger", TRIGGER, "The lower trainer's training_complete, by a delay.", optional=True, event=True),
        ),
        params=(
            Param("horizon_length", COUNT, "That of the lower trainer: steps between two updates.", 64),
            Param("steps_per_goal", COUNT, "Most steps that one sub-goal may take.", 20),
            setting(PPOConfig, "gamma", "gamma", 0.99),
            setting(PPOConfig, "lr", "learning_rate", 1e-3),
            setting(PPOConfig, "ent_coef", "entropy_coef", 0.01),
            setting(PPOConfig, "epochs", "epochs", 4),
            setting(PPOConfig, "minibatch_size", "minibatch_size", 256, kind=COUNT),
            setting(PPOConfig, "normalize_advantage", "normalize_advantages", "off"),
            setting(NetConfig, "hidden", "hidden_sizes", (64, 64)),
            setting(NetConfig, "activation", "activation", "tanh"),
        ),
        outputs=(
            Port("manager", Type("manager"), "For SubGoal."),
            Port("learned", TRIGGER, "Comes when it has learned: time for new sub-goals."),
            Port("loss_info", TABLE, "What its update came to."),
        ),
        calls="surefoot.train.algorithms.hierarchy.Decisions, surefoot.learn.learner.Learner",
        effect="rng",
        needs=("seed", "total_steps", "path"),
        source=TICK,
        infer=_manager,
        clocks=_manager_clocks,
    ),
    NodeType(
        name="SubGoal",
        category="RL/Hierarchy",
        summary="Shows each copy the way to its sub-goal, pays for reaching it, and asks for the next one when it is over.",
        inputs=(
            Port("sim_handle", WORLD, "The environment.", sampled=True),
            Port("manager", Type("manager"), "Who sets the sub-goals.", sampled=True),
            Port("first", OBS, "The environment's first observations.", event=True),
            Port("observations", OBS, "Of Step, by a delay.", optional=True, event=True),
            Port("renew", TRIGGER, "Set all sub-goals anew: learned of HighLevelPPO.", optional=True, event=True),
        ),
        params=(
            Param(
                "goals",
                choice("rooms", "offsets"),
                "rooms: the middles of a maze's rooms. offsets: up to reach away, in some coordinates of the observation.",
                "rooms",
            ),
            Param(
                "coordinates", counts(), "For offsets: which numbers of the observation are a place, from 1.", (1, 2)
            ),
            Param("reach", real(Interval(0, open_low=True)), "For offsets: how far a sub-goal may be.", 1.0),
            Param("near", real(Interval(0)), "A sub-goal is reached where no coordinate is further than this.", 0.5),
            Param("progress", real(Interval(0)), "What a unit of distance gained pays.", 1.0),
            Param("env_share", real(Interval(0)), "Share of the environment's own reward that is paid too.", 0.0),
        ),
        outputs=(
            Port("sim_handle", WORLD, "The environment with sub-goals, for Step."),
            Port("observations", OBS, "With the part goal: the way that is left."),
        ),
        calls="surefoot.envs.goals.GoalWorld",
        effect="state",
        source=TICK,
        infer=_goals,
        clocks=_goal_clocks,
    ),
    replace(
        AGENT,
        name="LowLevelPPO",
        category="RL/Hierarchy",
        summary="The lower policy: an agent that sees its sub-goal beside everything else.",
        aliases=(),
    ),
)
