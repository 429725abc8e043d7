"""Tools chosen for queries: a source of questions, an encoder, a policy, tools that really run, a reward, and learning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot.data.kinds import NOT_NEGATIVE, POSITIVE, Interval, choice, real, whole
from surefoot.graph.spec.declare import NodeType, Param, Port, Types
from surefoot.graph.spec.types import (
    CONST,
    EPISODES,
    LEARNER,
    NUMBER,
    ONCE,
    TABLE,
    TICK,
    TRIGGER,
    Clock,
    Type,
    tensor,
    when,
)


def _encoded(params: Mapping[str, Any], given: Mapping[str, Type]) -> Types:
    asked = given.get("queries", Type("queries")).shape
    return {"vectors": tensor("float32", asked[0] if asked else "N", "D")}


def _rewarded(params: Mapping[str, Any], given: Mapping[str, Type]) -> Types:
    asked = given.get("queries", Type("queries")).shape
    rows = asked[0] if asked else "N"
    return {"rewards": tensor("float64", rows), "right": tensor("bool", rows)}


def _with_handle(handle: str, *others: str) -> Any:
    def clocks(params: Mapping[str, Any], given: Mapping[str, Clock]) -> tuple[Clock, dict[str, Clock]]:
        return TICK, {**dict.fromkeys(others, TICK), handle: CONST}

    return clocks


def _learned(params: Mapping[str, Any], given: Mapping[str, Clock]) -> tuple[Clock, dict[str, Clock]]:
    outputs = ("training_complete", "loss_info", "episodes", "learner")
    return TICK, dict.fromkeys(outputs, when("training_complete"))


_QUERIES = Port("queries", Type("queries"), "What is asked.")
_CHOICES = Port("choices", Type("choices"), "Of ToolPolicy.")
_TOOLBOX = Port("toolbox", Type("toolbox"), "The tools there are.", sampled=True)

NODES = (
    NodeType(
        name="QuerySource",
        category="Tools",
        summary="Questions for tools, in another order each time they have all been asked; each knows what a right answer has.",
        params=(
            Param("batch", whole(Interval(1, 1024)), "Questions in a tick.", 4),
            Param(
                "held_out",
                real(Interval(0, 0.9)),
                "Share of the questions that are never asked, so that they can be asked afterwards.",
                0.0,
            ),
        ),
        outputs=(
            Port("queries", Type("queries"), "[N] questions."),
            Port("held_out", Type("queries"), "Those that are never asked here, for ToolExam."),
        ),
        calls="surefoot.decide.tools.toolbox.assistant.questions",
        effect="rng",
        needs=("seed",),
        source=TICK,
        infer=lambda params, given: {"queries": Type("queries", shape=(params["batch"],)), "held_out": Type("queries")},
        clocks=_with_handle("held_out", "queries"),
        streams=lambda params: ("batch", 1),
    ),
    NodeType(
        name="QueryEncoder",
        category="Tools",
        summary="Questions as vectors of length 1.",
        inputs=(_QUERIES,),
        params=(
            Param(
                "encoder",
                choice("hashing", "static", "minilm"),
                "hashing knows words and needs nothing; static and minilm know meanings (surefoot[embed]).",
                "hashing",
            ),
        ),
        outputs=(
            Port("vectors", tensor("float32"), "[N, D]"),
            Port("encoder", Type("encoder"), "The encoder itself, for tools and the policy."),
        ),
        calls="surefoot.decide.encoders.encoder.make_encoder",
        infer=_encoded,
        clocks=_with_handle("encoder", "vectors"),
    ),
    NodeType(
        name="ToolBox",
        category="Tools",
        summary="Five tools over the pages, tables and notes that are shipped: calc, search, answer, query, notion_write.",
        inputs=(Port("encoder", Type("encoder"), "What search and answer compare by.", sampled=True),),
        outputs=(Port("toolbox", Type("toolbox"), "For ToolPolicy and ToolRunner."),),
        calls="surefoot.decide.tools.toolbox.assistant.tools",
        effect="io",
        needs=("folder",),
        source=ONCE,
        clocks=lambda params, given: (ONCE, {"toolbox": CONST}),
    ),
    NodeType(
        name="ToolPolicy",
        category="Tools",
        summary="Chooses a tool for each question: by its description at first, by what came of it later.",
        inputs=(
            Port("vectors", tensor("float32"), "[N, D] of QueryEncoder."),
            _TOOLBOX,
            Port("encoder", Type("encoder"), "The same that made the vectors.", sampled=True),
        ),
        params=(
            Param(
                "sharpness",
                real(POSITIVE),
                "Logits a unit of expected reward; lower explores more and costs more.",
                80.0,
            ),
            Param("floor", real(Interval(0, 0.5)), "Tools less likely than this are not drawn.", 0.02),
            Param("fresh", whole(Interval(1)), "Finished decisions that make an update due.", 32),
            Param("reuse", whole(NOT_NEGATIVE), "Logged decisions that join each update.", 224),
            Param("learning_rate", real(POSITIVE), "Of PPO.", 3e-3, aliases=("lr",)),
            Param("epochs", whole(Interval(1, 1000)), "Passes over each update's decisions.", 4),
        ),
        outputs=(
            Port("choices", Type("choices"), "[N]: the tool, its probability and what it was chosen by."),
            Port("chooser", Type("chooser"), "The policy itself, for ToolTrainer."),
        ),
        calls="surefoot.decide.policy.ppo.PPOChooser.choose",
        effect="rng",
        needs=("seed",),
        clocks=_with_handle("chooser", "choices"),
    ),
    NodeType(
        name="ToolRunner",
        category="Tools",
        summary="Runs the chosen tools, all of a tick at once. What goes wrong is an answer too.",
        inputs=(_QUERIES, _CHOICES, _TOOLBOX),
        params=(Param("seconds", real(POSITIVE), "After so long a tool is stopped.", 30.0),),
        outputs=(Port("results", Type("results"), "[N] answers."),),
        calls="surefoot.decide.tools.protocol.Toolbox.run",
        effect="io",
    ),
    NodeType(
        name="ToolReward",
        category="Tools",
        summary="What an answer is worth, 0 to 1: whether it has what was asked for, or by confidence, quality and time.",
        inputs=(_QUERIES, _CHOICES, Port("results", Type("results"), "Of ToolRunner.")),
        params=(
            Param(
                "by",
                choice("answer", "formula"),
                "answer: right or not. formula: of what was measured; its digits follow the clock.",
                "answer",
            ),
        ),
        outputs=(
            Port("rewards", tensor("float64"), "[N]"),
            Port("right", tensor("bool"), "[N]: the answer has what the question asks for."),
        ),
        calls="surefoot.decide.rewards.reward_of",
        infer=_rewarded,
    ),
    NodeType(
        name="ToolExam",
        category="Tools",
        summary="Asks what nobody learned from: the share that is right by the policy, and by the nearest description alone.",
        inputs=(
            Port("trigger", TRIGGER, "When: training_complete."),
            Port("queries", Type("queries"), "held_out of QuerySource.", sampled=True),
            Port("encoder", Type("encoder"), "The same that the policy has.", sampled=True),
            Port("chooser", Type("chooser"), "Whose.", sampled=True),
        ),
        params=(Param("every", whole(Interval(1, 10**9)), "Only each so-many-th update.", 5),),
        outputs=(
            Port("right", NUMBER, "Share of right answers by the policy's likeliest tool."),
            Port("nearest", NUMBER, "The same by the tool whose description is nearest."),
        ),
        calls="surefoot.decide.policy.ppo.PPOChooser.choose",
        effect="io",
        needs=("folder",),
        clocks=lambda params, given: (given.get("trigger", TICK), dict.fromkeys(("right", "nearest"), when("right"))),
    ),
    NodeType(
        name="ToolTrainer",
        category="Tools",
        summary="Learns from what came of choices: every one corrects what tools are held to be worth, many make a PPO update.",
        inputs=(
            _CHOICES,
            Port("rewards", tensor("float64"), "[N], 0 to 1."),
            Port("chooser", Type("chooser"), "Of ToolPolicy.", sampled=True),
        ),
        outputs=(
            Port("training_complete", TRIGGER, "Comes with an update."),
            Port("loss_info", TABLE, "What the update came to, and the share of right answers."),
            Port("episodes", EPISODES, "Decisions since the last update."),
            Port("learner", LEARNER, "The learner, for a checkpoint."),
        ),
        calls="surefoot.decide.policy.ppo.PPOChooser.learn",
        effect="state",
        clocks=_learned,
        trains=True,
    ),
)
