"""One policy above another: HighLevelPPO sets sub-goals, LowLevelPPO is paid for reaching them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from surefoot.data.kinds import Interval, choice, real
from surefoot.graph.catalogue.kinds import COUNT, counts, knob_param
from surefoot.graph.catalogue.ppo import AGENT
from surefoot.graph.spec.declare import NodeType, Param, Port, Types
from surefoot.graph.spec.types import CONST, TICK, Clock, Type
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
            Port(name="sim_handle", type=Type("world"), help="The environment.", sampled=True),
            Port(
                name="trigger",
                type=Type("trigger"),
                help="The lower trainer's training_complete, by a delay.",
                optional=True,
                event=True,
            ),
        ),
        params=(
            Param(
                name="horizon_length",
                kind=COUNT,
                help="That of the lower trainer: steps between two updates.",
                default=64,
            ),
            Param(name="steps_per_goal", kind=COUNT, help="Most steps that one sub-goal may take.", default=20),
            knob_param(PPOConfig, "gamma", "gamma", 0.99),
            knob_param(PPOConfig, "lr", "learning_rate", 1e-3),
            knob_param(PPOConfig, "ent_coef", "entropy_coef", 0.01),
            knob_param(PPOConfig, "epochs", "epochs", 4),
            knob_param(PPOConfig, "minibatch_size", "minibatch_size", 256, kind=COUNT),
            knob_param(PPOConfig, "normalize_advantage", "normalize_advantages", "off"),
            knob_param(NetConfig, "hidden", "hidden_sizes", (64, 64)),
            knob_param(NetConfig, "activation", "activation", "tanh"),
        ),
        outputs=(
            Port(name="manager", type=Type("manager"), help="For SubGoal."),
            Port(name="learned", type=Type("trigger"), help="Comes when it has learned: time for new sub-goals."),
            Port(name="loss_info", type=Type("dict"), help="What its update came to."),
        ),
        runtime="surefoot.graph.nodes.hierarchy:HighLevelPPO",
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
            Port(name="sim_handle", type=Type("world"), help="The environment.", sampled=True),
            Port(name="manager", type=Type("manager"), help="Who sets the sub-goals.", sampled=True),
            Port(name="first", type=Type("obs"), help="The environment's first observations.", event=True),
            Port(name="observations", type=Type("obs"), help="Of Step, by a delay.", optional=True, event=True),
            Port(
                name="renew",
                type=Type("trigger"),
                help="Set all sub-goals anew: learned of HighLevelPPO.",
                optional=True,
                event=True,
            ),
        ),
        params=(
            Param(
                name="goals",
                kind=choice("rooms", "offsets"),
                help="rooms: the middles of a maze's rooms. offsets: up to reach away, in some coordinates of the observation.",
                default="rooms",
            ),
            Param(
                name="coordinates",
                kind=counts(),
                help="For offsets: which numbers of the observation are a place, from 1.",
                default=(1, 2),
            ),
            Param(
                name="reach",
                kind=real(Interval(0, open_low=True)),
                help="For offsets: how far a sub-goal may be.",
                default=1.0,
            ),
            Param(
                name="near",
                kind=real(Interval(0)),
                help="A sub-goal is reached where no coordinate is further than this.",
                default=0.5,
            ),
            Param(name="progress", kind=real(Interval(0)), help="What a unit of distance gained pays.", default=1.0),
            Param(
                name="env_share",
                kind=real(Interval(0)),
                help="Share of the environment's own reward that is paid too.",
                default=0.0,
            ),
        ),
        outputs=(
            Port(name="sim_handle", type=Type("world"), help="The environment with sub-goals, for Step."),
            Port(name="observations", type=Type("obs"), help="With the part goal: the way that is left."),
        ),
        runtime="surefoot.graph.nodes.hierarchy:SubGoal",
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
        runtime="surefoot.graph.nodes.hierarchy:LowLevelPPO",
        aliases=(),
    ),
)
