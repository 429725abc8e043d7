"""Language models: prompts, a model that answers them, a reward, the price of leaving the reference, and learning.

Running them needs surefoot[lm].
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot.data.kinds import NOT_NEGATIVE, POSITIVE, Interval, choice, optional, real, whole
from surefoot.graph.nodes.param_kinds import lines, setting, text
from surefoot.graph.spec.declare import NodeType, Param, Port, Types
from surefoot.graph.spec.types import CONST, EPISODES, LEARNER, NUMBER, TABLE, TICK, TRIGGER, Clock, Type, tensor
from surefoot.learn.config import PPOConfig

PROMPTS = "The sea was\nIn the morning\nShe said that\nOnce upon a time\nThe last train\nNobody knew why\nWe have to"


def _rows(given: Mapping[str, Type], port: str) -> int | str:
    shape = given.get(port, Type()).shape
    return shape[0] if shape else "N"


def _answered(params: Mapping[str, Any], given: Mapping[str, Type]) -> Types:
    return {"responses": Type("responses", shape=(_rows(given, "prompts"),))}


def _sampler_clocks(params: Mapping[str, Any], given: Mapping[str, Clock]) -> tuple[Clock, dict[str, Clock]]:
    return TICK, {"responses": TICK, "language": CONST}


_RESPONSES = Port("responses", Type("responses"), "Of LMSampler.")
_LANGUAGE = Port("language", Type("language"), "The model, of LMSampler.", sampled=True)

SOURCE = NodeType(
    name="PromptSource",
    category="Language",
    summary="Prompts in another order each time all have been used.",
    params=(
        Param("prompts", lines(), "One on a line.", PROMPTS),
        Param("batch", whole(Interval(1, 4096)), "Prompts in a tick: one rollout, one update.", 32),
    ),
    outputs=(Port("prompts", Type("prompts"), "[N] texts."),),
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
    inputs=(Port("prompts", Type("prompts"), "Of PromptSource."),),
    params=(
        Param(
            "model",
            text(),
            "A folder, a name that `surefoot lm get` knows, or tiny: two layers of random weights to try things on.",
            "tiny",
        ),
        Param("train", choice("lora", "full"), "What learns: adapters, or all weights.", "lora"),
        Param("rank", whole(Interval(1, 1024)), "Of the adapters.", 8),
        Param("max_new_tokens", whole(Interval(1, 4096)), "The longest response.", 16),
        Param("min_new_tokens", whole(NOT_NEGATIVE), "Before this many it cannot end.", 0),
        Param("temperature", real(POSITIVE), "Of sampling; learning sees the same.", 1.0),
        Param("top_k", whole(NOT_NEGATIVE), "Only the likeliest so many tokens; 0 for all.", 0),
        Param("top_p", real(Interval(0, 1, open_low=True)), "Only tokens of this probability.", 1.0),
    ),
    outputs=(
        Port("responses", Type("responses"), "[N]: tokens, log-probs, values."),
        Port("language", Type("language"), "The model itself: policy, reference and critic."),
    ),
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
            "by",
            choice("characters", "constitution", "model"),
            "characters pays the share of paid ones; constitution applies the shipped principles; model asks the one below.",
            "characters",
        ),
        Param("paid", text(), "For characters: which.", "aeiou"),
        Param("model", text(), "For model: a folder that `surefoot lm reward` wrote.", ""),
    ),
    outputs=(Port("scores", tensor("float64"), "[N]"),),
    calls="surefoot.lm.rewards.scoring.scorer",
    infer=lambda params, given: {"scores": tensor("float64", _rows(given, "responses"))},
)

KL = NodeType(
    name="KLPenalty",
    category="Language",
    summary="The score at the last token, and what being away from the reference costs each; the reference is asked here.",
    inputs=(_RESPONSES, Port("scores", tensor("float64"), "[N] of RewardModel."), _LANGUAGE),
    params=(
        Param("beta", real(NOT_NEGATIVE), "What a nat costs.", 0.05),
        Param("kl", choice("k1", "exact"), "Measured by the sampled tokens, or over the whole vocabulary.", "k1"),
        Param(
            "target",
            optional(real(POSITIVE)),
            "Nats a response at which beta is held by a controller; none leaves beta alone.",
            None,
        ),
    ),
    outputs=(
        Port("tokens", Type("responses"), "Responses with a reward for every token, for LMTrainer."),
        Port("kl", NUMBER, "Nats a response."),
    ),
    calls="surefoot.lm.sampling.rollout.consult, token_rewards",
    effect="state",
)

TRAINER = NodeType(
    name="LMTrainer",
    category="Language",
    summary="PPO over the tokens of all responses of a tick.",
    inputs=(Port("tokens", Type("responses"), "Of KLPenalty."), _LANGUAGE),
    params=(
        setting(PPOConfig, "lr", "learning_rate", 1e-3),
        setting(PPOConfig, "epochs", "epochs", 4),
        setting(PPOConfig, "minibatches", "minibatches", 2, kind=whole(Interval(1, 1000))),
        setting(PPOConfig, "lam", "lam", 0.95),
        setting(PPOConfig, "clip", "clip_param", 0.2),
        setting(PPOConfig, "vf_coef", "value_coef", 0.1),
        setting(PPOConfig, "max_grad_norm", "max_grad_norm", 1.0),
    ),
    outputs=(
        Port("training_complete", TRIGGER, "Comes with every update."),
        Port("loss_info", TABLE, "What the update came to: score, KL, length, losses."),
        Port("episodes", EPISODES, "A response is an episode; its score is the return."),
        Port("learner", LEARNER, "The learner, for a checkpoint."),
    ),
    calls="surefoot.learn.learner.Learner.update",
    effect="rng",
    needs=("seed", "total_steps"),
    trains=True,
)

NODES = (SOURCE, SAMPLER, REWARD, KL, TRAINER)
