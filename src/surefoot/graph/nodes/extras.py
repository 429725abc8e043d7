"""What plugs into a trainer: curiosity, and a schedule of the learning rate."""

from __future__ import annotations

from surefoot.data.kinds import Interval as Within
from surefoot.data.kinds import choice, real
from surefoot.graph.nodes.param_kinds import setting
from surefoot.graph.spec.declare import NodeType, Param, Port
from surefoot.graph.spec.types import (
    CONST,
    Type,
)
from surefoot.train.config import CollectConfig

CURIOSITY = NodeType(
    name="RNDCuriosity",
    category="RL/PPO",
    summary="Pays for observations that a network cannot predict yet; connect it to the trainer.",
    params=(
        Param("kind", choice("rnd", "icm"), "Random distillation, or an inverse-forward model.", "rnd"),
        setting(CollectConfig, "curiosity_coef", "coef", 1.0),
        setting(CollectConfig, "ext_coef", "ext_coef", 1.0),
        setting(CollectConfig, "curiosity_lr", "learning_rate", 1e-4),
        setting(CollectConfig, "curiosity_hidden", "hidden_sizes", (256, 256)),
    ),
    outputs=(Port("curiosity", Type("curiosity"), "For the trainer."),),
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
        Param("kind", choice("linear", "cosine", "constant"), "How it moves.", "linear"),
        Param("start", real(Within()), "Where it begins.", 3e-4),
        Param("end", real(Within()), "Where it ends.", 0.0),
    ),
    outputs=(Port("schedule", Type("schedule"), "For the trainer's schedule."),),
    calls="surefoot.learn.schedule",
    source=CONST,
)

NODES = (CURIOSITY, SCHEDULE)
