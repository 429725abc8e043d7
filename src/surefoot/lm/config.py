"""The settings of a language-model run; those of the learner are in PPOConfig."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from surefoot.data.kinds import NOT_NEGATIVE, POSITIVE, Interval, choice, flag, integer, matching, optional, real
from surefoot.data.knobs import Config, knob, read_texts
from surefoot.errors import ConfigError
from surefoot.learn.config import PPOConfig
from surefoot.lm.rewards.kl_penalty import require_kl
from surefoot.lm.sampling.sampler import Sampling

AT_LEAST_ONE = integer(Interval(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class LMConfig(Config):
    """All settings of a run but the model, the prompts and the reward; each field carries its help text."""

    algorithm: str = knob(
        "ppo",
        "ppo learns a critic; rloo and grpo compare several responses per prompt instead; dpo and ipo (`lm dpo`) learn from "
        "preference pairs.",
        choice("ppo", "rloo", "grpo", "dpo", "ipo"),
    )
    steps: int = knob(100, "Rollouts and updates in the run.", AT_LEAST_ONE)
    prompts: int = knob(8, "Prompts in one rollout; with dpo and ipo, pairs per step.", AT_LEAST_ONE)
    group: int = knob(1, "Responses per prompt; rloo and grpo need at least 2.", AT_LEAST_ONE)
    max_new_tokens: int = knob(64, "The longest response, in tokens.", AT_LEAST_ONE)
    min_new_tokens: int = knob(0, "A response cannot end before this many tokens.", integer(NOT_NEGATIVE))
    temperature: float = knob(1.0, "Sampling temperature; learning uses the same distribution.", real(POSITIVE))
    top_k: int = knob(0, "Sample only from this many most likely tokens; 0 for all.", integer(NOT_NEGATIVE))
    top_p: float = knob(
        1.0,
        "Sample only from the most likely tokens that make up this probability.",
        real(Interval(0, 1, open_low=True)),
    )
    rows: int = knob(32, "Responses written in parallel.", AT_LEAST_ONE)
    chat: str = knob(
        "auto",
        "Whether plain prompts go through the tokenizer's chat template: auto (if it has one), never or always.",
        choice("auto", "never", "always"),
    )

    train: str = knob("lora", "What learns: adapters, all weights, or nothing.", choice("lora", "full", "none"))
    rank: int = knob(8, "Rank of the adapters.", AT_LEAST_ONE)
    alpha: float | None = knob(
        None, "Adapters are scaled by alpha/rank; unset, alpha is twice the rank.", optional(real(POSITIVE))
    )
    top: int | None = knob(
        None,
        "Only this many upper layers learn; those below are computed once per rollout. None: all layers.",
        optional(AT_LEAST_ONE),
    )
    targets: str = knob(
        "attention", "Layers that get adapters: attention, all, or one name.", matching(r"\w+", "a name")
    )
    dtype: str = knob(
        "auto",
        "Dtype of the weights: float32 or bfloat16; auto is bfloat16 if the machine computes in it natively.",
        choice("auto", "float32", "bfloat16"),
    )
    learn_rows: int | None = knob(
        None,
        "Responses per backward pass; gradients add up to those of the minibatch, in less memory. "
        "None: the whole minibatch.",
        optional(AT_LEAST_ONE),
    )
    packed: bool = knob(
        False, "Pack several responses into one row instead of sorting them into buckets of similar length.", flag()
    )
    recompute_logprobs: bool = knob(
        False,
        "Score responses again before learning instead of using the log-probs of sampling. In bfloat16 the two differ by "
        "rounding (sampler_mismatch).",
        flag(),
    )

    kl_in: str = knob(
        "reward", "Where the KL to the reference counts: reward, loss, or off.", choice("reward", "loss", "off")
    )
    kl: str = knob(
        "k1",
        "Estimator of the KL: k1 or exact in the reward; k2, k3 or exact in the loss.",
        choice("k1", "k2", "k3", "exact"),
    )
    beta: float = knob(
        0.05, "Weight of the KL, per nat; with dpo and ipo the same weight in their closed form.", real(NOT_NEGATIVE)
    )
    label_smoothing: float = knob(
        0.0, "With dpo: the share of pairs that are assumed to be labelled the wrong way round.", real(Interval(0, 0.5))
    )
    kl_target: float | None = knob(
        None,
        "Target of the KL in nats per response, which an adaptive controller of beta keeps; none: beta is constant.",
        optional(real(POSITIVE)),
    )
    kl_horizon: int = knob(1000, "Responses after which the adaptive controller has its full effect.", AT_LEAST_ONE)
    kl_budget: float | None = knob(
        None,
        "Largest KL to the reference in nats per response. Beyond it the last weights within the budget are restored.",
        optional(real(POSITIVE)),
    )
    over_budget: str = knob(
        "stop",
        "What happens beyond kl_budget or a limit of fluency, after the last weights within are restored: stop, or back (beta "
        "grows by half and the run continues; the third time ends it).",
        choice("stop", "back"),
    )

    score_clip: float | None = knob(None, "Scores are clipped to ± this.", optional(real(POSITIVE)))
    normalize_score: bool = knob(False, "Scores are scaled to mean 0 and standard deviation 1 over all so far.", flag())
    whiten_rewards: bool = knob(
        False, "Rewards are divided by their standard deviation in each rollout; the mean stays.", flag()
    )
    missing_eos_penalty: float = knob(
        0.0, "Subtracted from the score of a response without an end token.", real(NOT_NEGATIVE)
    )
    length_penalty: float = knob(0.0, "Subtracted from the score per token.", real(NOT_NEGATIVE))
    fluency_weight: float = knob(
        0.0,
        "Weight of the reference's mean log-prob per token in the score: responses that the base model finds unlikely lose.",
        real(NOT_NEGATIVE),
    )
    reward_timeout: float = knob(300.0, "Timeout of a reward function, in seconds.", real(POSITIVE))

    judge_every: int = knob(
        10, "Steps between two evaluations on held-out prompts (judge, fluency limits).", AT_LEAST_ONE
    )
    judge_patience: int = knob(
        3, "Evaluations without progress after which the run ends and restores its best weights.", AT_LEAST_ONE
    )
    nll_limit: float | None = knob(
        None,
        "Largest rise of the reference NLL per token on held-out prompts, as a share (0.15: +15 %). Beyond it the last "
        "weights within are restored and the run ends.",
        optional(real(POSITIVE)),
    )
    repetition_limit: float | None = knob(
        None, "The same for the share of repeated 4-grams (0.1: 10 points).", optional(real(POSITIVE))
    )
    refusal_limit: float | None = knob(
        None,
        "The same for the share of refusals and self-descriptions such as 'As an AI' (0.1: 10 points).",
        optional(real(POSITIVE)),
    )
    diversity_limit: float | None = knob(
        None,
        "Largest fall of the share of distinct token pairs over all held-out responses (0.1: 10 points): it falls when one "
        "phrase is in every response.",
        optional(real(POSITIVE)),
    )
    checkpoint_every: int = knob(10, "Steps between two checkpoints.", AT_LEAST_ONE)
    keep_checkpoints: int = knob(2, "Checkpoints to keep, besides the best one.", AT_LEAST_ONE)
    seed: int = knob(0, "Seed of all random numbers.", integer(Interval(0, 2**63 - 1)))

    def check(self) -> None:
        """Raise `ConfigError` if settings contradict each other."""
        if self.kl_in != "off":
            require_kl(self.kl_in, self.kl)
        if self.algorithm in ("rloo", "grpo") and self.group < 2:
            raise ConfigError(
                f"algorithm is {self.algorithm} with group={self.group}; it compares responses to one prompt, "
                "so group must be 2 or more"
            )
        # The controller prices the KL per response in the reward; in the loss it would have no effect.
        if self.kl_target is not None and self.kl_in != "reward":
            raise ConfigError(f"kl_target needs kl_in='reward'; it is {self.kl_in!r}")
        if self.algorithm in ("dpo", "ipo"):
            if self.beta == 0.0:
                raise ConfigError(f"beta is 0, which is no limit at all in {self.algorithm}; set a number above 0")
            if self.kl_budget is not None:
                raise ConfigError(
                    f"kl_budget is measured on rollouts, which {self.algorithm} has none of; set nll_limit"
                )
        if self.algorithm == "grpo" and self.kl_in == "reward":
            raise ConfigError("grpo has its KL in the loss; set kl_in=loss with kl=k3, or kl_in=off")
        # Raises if the sampling settings contradict each other.
        _ = self.sampling

    @property
    def sampling(self) -> Sampling:
        """Return how responses are sampled."""
        names = ("max_new_tokens", "min_new_tokens", "temperature", "top_k", "top_p", "rows")
        return Sampling(**{name: getattr(self, name) for name in names})

    @property
    def limits(self) -> dict[str, float | None]:
        """Return the limits of `Fluency.beyond`."""
        return {
            "nll": self.nll_limit,
            "repetition": self.repetition_limit,
            "refusals": self.refusal_limit,
            "diversity": self.diversity_limit,
        }

    @property
    def responses(self) -> int:
        """Return the number of responses in one rollout."""
        return self.prompts * self.group

    @classmethod
    def canonical(cls, names: Mapping[str, Any]) -> dict[str, Any]:
        known = {entry.name for entry in dataclasses.fields(cls)}
        for name in names:
            if name not in known:
                raise ConfigError(
                    f"no setting of a language run is called {name!r}; there are {', '.join(sorted(known))}"
                )
        return read_texts(cls, names)

    def ppo(self, base: PPOConfig | None = None, **changes: Any) -> PPOConfig:
        """Return the config of the learner: `base` or defaults for language models, `changes`, and `follow`."""
        # Adapters start at zero and need larger steps; full weights must stay close to the reference.
        lr = 1e-4 if self.train == "lora" else 1e-6
        # gamma, lam, both clips, vf_coef and epochs are those of TRL's PPOConfig.
        base = base or PPOConfig(
            lr=lr,
            gamma=1.0,
            lam=0.95,
            clip=0.2,
            value_clip=0.2,
            vf_coef=0.1,
            epochs=4,
            minibatch_size=None,
            minibatches=1,
            max_grad_norm=1.0,
            normalize_advantage="batch",
        )
        return self.follow(base.replace(**{"seed": self.seed, **changes}))

    def follow(self, base: PPOConfig) -> PPOConfig:
        """Return `base` with what this config decides: the KL's weight in the loss, and no critic for rloo and grpo."""
        if self.kl_in != "loss" and base.kl_coef:
            raise ConfigError(
                f"kl_coef is {base.kl_coef} in the loss but kl_in is {self.kl_in!r}: the KL would count twice; "
                "set kl_in=loss, or kl_coef=0"
            )
        # beta has one meaning for users wherever the KL counts.
        if self.kl_in == "loss":
            base = base.replace(kl_coef=self.beta)
        # The group's comparison is the advantage: with these settings GAE hands it through unchanged.
        if self.algorithm in ("rloo", "grpo"):
            base = base.replace(gamma=1.0, lam=1.0, vf_coef=0.0, value_clip=None, normalize_advantage="off")
        return base
