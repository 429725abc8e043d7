"""Tools chosen for queries: a source of questions, an encoder, a policy, tools that really run, a reward, and learning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot.data.kinds import NOT_NEGATIVE, POSITIVE, Interval, choice, real, whole
from surefoot.graph.spec.declare import NodeType, Param, Port, Types
from surefoot.graph.spec.types import CONST, ONCE, TICK, Clock, Type, tensor, when


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


_QUERIES = Port(name="queries", type=Type("queries"), help="What is asked.")
_CHOICES = Port(name="choices", type=Type("choices"), help="Of ToolPolicy.")
_TOOLBOX = Port(name="toolbox", type=Type("toolbox"), help="The tools there are.", sampled=True)

NODES = (
    NodeType(
        name="QuerySource",
        category="Tools",
        summary="Questions for tools, in another order each time they have all been asked; each knows what a right answer has.",
        params=(
            Param(name="batch", kind=whole(Interval(1, 1024)), help="Questions in a tick.", default=4),
            Param(
                name="held_out",
                kind=real(Interval(0, 0.9)),
                help="Share of the questions that are never asked, so that they can be asked afterwards.",
                default=0.0,
            ),
        ),
        outputs=(
            Port(name="queries", type=Type("queries"), help="[N] questions."),
            Port(name="held_out", type=Type("queries"), help="Those that are never asked here, for ToolExam."),
        ),
        runtime="surefoot.graph.nodes.tools:QuerySource",
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
                name="encoder",
                kind=choice("hashing", "static", "minilm"),
                help="hashing knows words and needs nothing; static and minilm know meanings (surefoot[embed]).",
                default="hashing",
            ),
        ),
        outputs=(
            Port(name="vectors", type=tensor("float32"), help="[N, D]"),
            Port(name="encoder", type=Type("encoder"), help="The encoder itself, for tools and the policy."),
        ),
        runtime="surefoot.graph.nodes.tools:QueryEncoder",
        calls="surefoot.decide.encoders.encoder.make_encoder",
        infer=_encoded,
        clocks=_with_handle("encoder", "vectors"),
    ),
    NodeType(
        name="ToolBox",
        category="Tools",
        summary="Five tools over the pages, tables and notes that are shipped: calc, search, answer, query, notion_write.",
        inputs=(Port(name="encoder", type=Type("encoder"), help="What search and answer compare by.", sampled=True),),
        outputs=(Port(name="toolbox", type=Type("toolbox"), help="For ToolPolicy and ToolRunner."),),
        runtime="surefoot.graph.nodes.tools:ToolBox",
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
            Port(name="vectors", type=tensor("float32"), help="[N, D] of QueryEncoder."),
            _TOOLBOX,
            Port(name="encoder", type=Type("encoder"), help="The same that made the vectors.", sampled=True),
        ),
        params=(
            Param(
                name="sharpness",
                kind=real(POSITIVE),
                help="Logits a unit of expected reward; lower explores more and costs more.",
                default=80.0,
            ),
            Param(
                name="floor",
                kind=real(Interval(0, 0.5)),
                help="Tools less likely than this are not drawn.",
                default=0.02,
            ),
            Param(
                name="fresh", kind=whole(Interval(1)), help="Finished decisions that make an update due.", default=32
            ),
            Param(name="reuse", kind=whole(NOT_NEGATIVE), help="Logged decisions that join each update.", default=224),
            Param(name="learning_rate", kind=real(POSITIVE), help="Of PPO.", default=3e-3, aliases=("lr",)),
            Param(name="epochs", kind=whole(Interval(1, 1000)), help="Passes over each update's decisions.", default=4),
        ),
        outputs=(
            Port(
                name="choices", type=Type("choices"), help="[N]: the tool, its probability and what it was chosen by."
            ),
            Port(name="chooser", type=Type("chooser"), help="The policy itself, for ToolTrainer."),
        ),
        runtime="surefoot.graph.nodes.tools:ToolPolicy",
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
        params=(Param(name="seconds", kind=real(POSITIVE), help="After so long a tool is stopped.", default=30.0),),
        outputs=(Port(name="results", type=Type("results"), help="[N] answers."),),
        runtime="surefoot.graph.nodes.tools:ToolRunner",
        calls="surefoot.decide.tools.protocol.Toolbox.run",
        effect="io",
    ),
    NodeType(
        name="ToolReward",
        category="Tools",
        summary="What an answer is worth, 0 to 1: whether it has what was asked for, or by confidence, quality and time.",
        inputs=(_QUERIES, _CHOICES, Port(name="results", type=Type("results"), help="Of ToolRunner.")),
        params=(
            Param(
                name="by",
                kind=choice("answer", "formula"),
                help="answer: right or not. formula: of what was measured; its digits follow the clock.",
                default="answer",
            ),
        ),
        outputs=(
            Port(name="rewards", type=tensor("float64"), help="[N]"),
            Port(name="right", type=tensor("bool"), help="[N]: the answer has what the question asks for."),
        ),
        runtime="surefoot.graph.nodes.tools:ToolReward",
        calls="surefoot.decide.rewards.reward_of",
        infer=_rewarded,
    ),
    NodeType(
        name="ToolExam",
        category="Tools",
        summary="Asks what nobody learned from: the share that is right by the policy, and by the nearest description alone.",
        inputs=(
            Port(name="trigger", type=Type("trigger"), help="When: training_complete."),
            Port(name="queries", type=Type("queries"), help="held_out of QuerySource.", sampled=True),
            Port(name="encoder", type=Type("encoder"), help="The same that the policy has.", sampled=True),
            Port(name="chooser", type=Type("chooser"), help="Whose.", sampled=True),
        ),
        params=(Param(name="every", kind=whole(Interval(1, 10**9)), help="Only each so-many-th update.", default=5),),
        outputs=(
            Port(name="right", type=Type("number"), help="Share of right answers by the policy's likeliest tool."),
            Port(name="nearest", type=Type("number"), help="The same by the tool whose description is nearest."),
        ),
        runtime="surefoot.graph.nodes.tools:ToolExam",
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
            Port(name="rewards", type=tensor("float64"), help="[N], 0 to 1."),
            Port(name="chooser", type=Type("chooser"), help="Of ToolPolicy.", sampled=True),
        ),
        outputs=(
            Port(name="training_complete", type=Type("trigger"), help="Comes with an update."),
            Port(name="loss_info", type=Type("dict"), help="What the update came to, and the share of right answers."),
            Port(name="episodes", type=Type("episodes"), help="Decisions since the last update."),
            Port(name="learner", type=Type("learner"), help="The learner, for a checkpoint."),
        ),
        runtime="surefoot.graph.nodes.tools:ToolTrainer",
        calls="surefoot.decide.policy.ppo.PPOChooser.learn",
        effect="state",
        clocks=_learned,
        trains=True,
    ),
)
