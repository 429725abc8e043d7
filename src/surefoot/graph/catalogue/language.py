"""Language models: prompts, a model that answers them, a reward, the price of leaving the reference, and learning.

The kinds are there where `surefoot.lm` is; what they run needs surefoot[lm].
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any

from surefoot.data.kinds import NOT_NEGATIVE, POSITIVE, UNIT, Interval, choice, optional, real, whole
from surefoot.graph.catalogue.kinds import knob_param, lines, text
from surefoot.graph.spec.declare import NodeType, Param, Port, Types
from surefoot.graph.spec.types import CONST, TICK, Clock, Type, tensor
from surefoot.learn.config import PPOConfig

THERE = importlib.util.find_spec("surefoot.lm") is not None
PROMPTS = "The sea was\nIn the morning\nShe said that\nOnce upon a time\nThe last train\nNobody knew why\nWe have to"


def _rows(given: Mapping[str, Type], port: str) -> int | str:
    shape = given.get(port, Type()).shape
    return shape[0] if shape else "N"


def _answered(params: Mapping[str, Any], given: Mapping[str, Type]) -> Types:
    return {"responses": Type("responses", shape=(_rows(given, "prompts"),))}


def _sampler_clocks(params: Mapping[str, Any], given: Mapping[str, Clock]) -> tuple[Clock, dict[str, Clock]]:
    return TICK, {"responses": TICK, "language": CONST}


_RESPONSES = Port(name="responses", type=Type("responses"), help="Of LMSampler.")
_LANGUAGE = Port(name="language", type=Type("language"), help="The model, of LMSampler.", sampled=True)

SOURCE = NodeType(
    name="PromptSource",
    category="Language",
    summary="Prompts in another order each time all have been used.",
    params=(
        Param(name="prompts", kind=lines(), help="One on a line.", default=PROMPTS),
        Param(
            name="batch", kind=whole(Interval(1, 4096)), help="Prompts in a tick: one rollout, one update.", default=32
        ),
    ),
    outputs=(Port(name="prompts", type=Type("prompts"), help="[N] texts."),),
    runtime="surefoot.graph.nodes.language:PromptSource",
    calls="surefoot.lm.training.Cursor",
    effect="rng",
    needs=("seed",),
    source=TICK,
    infer=lambda params, given: {"prompts": Type("prompts", shape=(params["batch"],))},
    streams=lambda params: ("batch", 1),
)

SAMPLER = NodeType(
    name="LMSampler",
    category="Language",
    summary="A language model answers prompts, token by token, and keeps how likely it found each.",
    inputs=(Port(name="prompts", type=Type("prompts"), help="Of PromptSource."),),
    params=(
        Param(
            name="model",
            kind=text(),
            help="A folder, a name that `surefoot lm get` knows, or tiny: two layers of random weights to try things on.",
            default="tiny",
        ),
        Param(name="train", kind=choice("lora", "full"), help="What learns: adapters, or all weights.", default="lora"),
        Param(name="rank", kind=whole(Interval(1, 1024)), help="Of the adapters.", default=8),
        Param(name="max_new_tokens", kind=whole(Interval(1, 4096)), help="The longest response.", default=16),
        Param(name="min_new_tokens", kind=whole(NOT_NEGATIVE), help="Before this many it cannot end.", default=0),
        Param(name="temperature", kind=real(POSITIVE), help="Of sampling; learning sees the same.", default=1.0),
        Param(name="top_k", kind=whole(NOT_NEGATIVE), help="Only the likeliest so many tokens; 0 for all.", default=0),
        Param(
            name="top_p", kind=real(Interval(0, 1, open_low=True)), help="Only tokens of this probability.", default=1.0
        ),
    ),
    outputs=(
        Port(name="responses", type=Type("responses"), help="[N]: tokens, log-probs, values."),
        Port(name="language", type=Type("language"), help="The model itself: policy, reference and critic."),
    ),
    runtime="surefoot.graph.nodes.language:LMSampler",
    calls="surefoot.lm.sampling.sampler.generate",
    effect="rng",
    needs=("seed", "folder"),
    infer=_answered,
    clocks=_sampler_clocks,
)

REWARD = NodeType(
    name="RewardModel",
    category="Language",
    summary="A score for each response: of a reward model, of the constitution, or a number for each character of a set.",
    inputs=(_RESPONSES,),
    params=(
        Param(
            name="by",
            kind=choice("characters", "constitution", "model"),
            help="characters pays the share of paid ones; constitution applies the shipped principles; model asks the one below.",
            default="characters",
        ),
        Param(name="paid", kind=text(), help="For characters: which.", default="aeiou"),
        Param(name="model", kind=text(), help="For model: a folder that `surefoot lm reward` wrote.", default=""),
    ),
    outputs=(Port(name="scores", type=tensor("float64"), help="[N]"),),
    runtime="surefoot.graph.nodes.language:RewardModel",
    calls="surefoot.lm.rewards.scoring.scorer",
    infer=lambda params, given: {"scores": tensor("float64", _rows(given, "responses"))},
)

KL = NodeType(
    name="KLPenalty",
    category="Language",
    summary="The score at the last token, and what being away from the reference costs each; the reference is asked here.",
    inputs=(_RESPONSES, Port(name="scores", type=tensor("float64"), help="[N] of RewardModel."), _LANGUAGE),
    params=(
        Param(name="beta", kind=real(NOT_NEGATIVE), help="What a nat costs.", default=0.05),
        Param(
            name="kl",
            kind=choice("k1", "exact"),
            help="Measured by the sampled tokens, or over the whole vocabulary.",
            default="k1",
        ),
        Param(
            name="target",
            kind=optional(real(POSITIVE)),
            help="Nats a response at which beta is held by a controller; none leaves beta alone.",
            default=None,
        ),
    ),
    outputs=(
        Port(name="tokens", type=Type("responses"), help="Responses with a reward for every token, for LMTrainer."),
        Port(name="kl", type=Type("number"), help="Nats a response."),
    ),
    runtime="surefoot.graph.nodes.language:KLPenalty",
    calls="surefoot.lm.sampling.rollout.consult, token_rewards",
    effect="state",
)

TRAINER = NodeType(
    name="LMTrainer",
    category="Language",
    summary="PPO over the tokens of all responses of a tick.",
    inputs=(Port(name="tokens", type=Type("responses"), help="Of KLPenalty."), _LANGUAGE),
    params=(
        knob_param(PPOConfig, "lr", "learning_rate", 1e-3),
        Param(name="epochs", kind=whole(Interval(1, 1000)), help="Passes over each rollout.", default=4),
        Param(name="minibatches", kind=whole(Interval(1, 1000)), help="Gradient steps in one pass.", default=2),
        Param(name="lam", kind=real(UNIT), help="λ of the advantage estimate.", default=0.95),
        Param(name="clip_param", kind=real(POSITIVE), help="How far a probability may move.", default=0.2),
        Param(name="value_coef", kind=real(NOT_NEGATIVE), help="Weight of the critic's loss.", default=0.1),
        Param(name="max_grad_norm", kind=real(POSITIVE), help="The gradient is scaled down to this norm.", default=1.0),
    ),
    outputs=(
        Port(name="training_complete", type=Type("trigger"), help="Comes with every update."),
        Port(name="loss_info", type=Type("dict"), help="What the update came to: score, KL, length, losses."),
        Port(name="episodes", type=Type("episodes"), help="A response is an episode; its score is the return."),
        Port(name="learner", type=Type("learner"), help="The learner, for a checkpoint."),
    ),
    runtime="surefoot.graph.nodes.language:LMTrainer",
    calls="surefoot.learn.learner.Learner.update",
    effect="rng",
    needs=("seed", "total_steps"),
    trains=True,
)

NODES = (SOURCE, SAMPLER, REWARD, KL, TRAINER) if THERE else ()
