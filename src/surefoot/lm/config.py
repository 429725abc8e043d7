"""The knobs of a language-model run, each written once. PPO's own are in PPOConfig."""

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
    """Everything about a run but the model, the prompts and the reward."""

    algorithm: str = knob(
        "ppo",
        "ppo learns a critic; rloo and grpo compare several responses to one prompt instead.",
        choice("ppo", "rloo", "grpo"),
    )
    steps: int = knob(100, "Rollouts and updates in the run.", AT_LEAST_ONE)
    prompts: int = knob(8, "Prompts in one rollout.", AT_LEAST_ONE)
    group: int = knob(1, "Responses to each prompt; rloo and grpo need at least 2.", AT_LEAST_ONE)
    max_new_tokens: int = knob(64, "The longest response, in tokens.", AT_LEAST_ONE)
    min_new_tokens: int = knob(0, "Before this many tokens a response cannot end.", integer(NOT_NEGATIVE))
    temperature: float = knob(1.0, "Sampling temperature; learning sees the same distribution.", real(POSITIVE))
    top_k: int = knob(0, "Sample only from the likeliest so many tokens; 0 for all.", integer(NOT_NEGATIVE))
    top_p: float = knob(
        1.0, "Sample only from the likeliest tokens of this probability.", real(Interval(0, 1, open_low=True))
    )
    rows: int = knob(32, "Responses written side by side.", AT_LEAST_ONE)

    train: str = knob("lora", "What learns: adapters, all weights, or nothing.", choice("lora", "full", "none"))
    rank: int = knob(8, "Rank of the adapters.", AT_LEAST_ONE)
    alpha: float | None = knob(
        None, "Adapters count alpha/rank times; unset, alpha is twice the rank.", optional(real(POSITIVE))
    )
    top: int | None = knob(
        None,
        "Only this many upper layers learn; those below are computed once a rollout. None: all layers.",
        optional(AT_LEAST_ONE),
    )
    targets: str = knob(
        "attention", "Layers that get adapters: attention, all, or one name.", matching(r"\w+", "a name")
    )
    dtype: str = knob(
        "auto",
        "What the weights are kept in: float32, bfloat16; auto is bfloat16 where the machine computes in it.",
        choice("auto", "float32", "bfloat16"),
    )
    learn_rows: int | None = knob(
        None,
        "Responses that are learned from at one time; gradients add up to those of the minibatch, in less memory. "
        "None: all of a minibatch.",
        optional(AT_LEAST_ONE),
    )
    packed: bool = knob(False, "Lay responses end to end in one row instead of in buckets of similar length.", flag())
    recompute_logprobs: bool = knob(
        False,
        "Score responses again before learning instead of keeping the log-probs of sampling. In bfloat16 the two differ by "
        "rounding (sampler_mismatch).",
        flag(),
    )

    kl_in: str = knob(
        "reward", "Where the KL to the reference counts: reward, loss, or off.", choice("reward", "loss", "off")
    )
    kl: str = knob(
        "k1",
        "How it is measured: k1 or exact in the reward; k2, k3 or exact in the loss.",
        choice("k1", "k2", "k3", "exact"),
    )
    beta: float = knob(0.05, "What a nat of KL costs.", real(NOT_NEGATIVE))
    kl_target: float | None = knob(
        None,
        "Nats a response at which beta is held by an adaptive controller; none leaves beta alone.",
        optional(real(POSITIVE)),
    )
    kl_horizon: int = knob(1000, "Responses after which the adaptive controller has its full effect.", AT_LEAST_ONE)
    kl_budget: float | None = knob(
        None,
        "The most nats a response may be away from the reference. Beyond it the weights go back to the last ones within.",
        optional(real(POSITIVE)),
    )
    over_budget: str = knob(
        "stop",
        "What happens beyond kl_budget: stop, or back (beta grows by half and the run goes on).",
        choice("stop", "back"),
    )

    score_clip: float | None = knob(None, "Scores are held to ± this.", optional(real(POSITIVE)))
    normalize_score: bool = knob(False, "Scores get mean 0 and deviation 1 over all so far.", flag())
    whiten_rewards: bool = knob(
        False, "Rewards are divided by their deviation in each rollout; the mean stays.", flag()
    )
    missing_eos_penalty: float = knob(
        0.0, "Taken from the score of a response that did not end by itself.", real(NOT_NEGATIVE)
    )
    length_penalty: float = knob(0.0, "Taken from the score for every token.", real(NOT_NEGATIVE))
    reward_timeout: float = knob(300.0, "Seconds after which a reward function is given up on.", real(POSITIVE))

    judge_every: int = knob(10, "Steps between two looks of the held-out judge, if there is one.", AT_LEAST_ONE)
    judge_patience: int = knob(
        3, "Looks without a better one after which the run ends and goes back to its best.", AT_LEAST_ONE
    )
    checkpoint_every: int = knob(10, "Steps between two checkpoints.", AT_LEAST_ONE)
    keep_checkpoints: int = knob(2, "Checkpoints kept, the best one besides.", AT_LEAST_ONE)
    seed: int = knob(0, "Everything random follows from it.", integer(Interval(0, 2**63 - 1)))

    def check(self) -> None:
        """Raise `ConfigError` if knobs contradict each other."""
        if self.kl_in != "off":
            require_kl(self.kl_in, self.kl)
        if self.algorithm != "ppo" and self.group < 2:
            raise ConfigError(
                f"algorithm is {self.algorithm} with group={self.group}; it compares responses to one prompt, "
                "so group must be 2 or more"
            )
        if self.kl_target is not None and self.kl_in != "reward":
            raise ConfigError(f"kl_target needs kl_in='reward'; it is {self.kl_in!r}")
        if self.algorithm == "grpo" and self.kl_in == "reward":
            raise ConfigError("grpo has its KL in the loss; set kl_in=loss with kl=k3, or kl_in=off")
        _ = self.sampling

    @property
    def sampling(self) -> Sampling:
        """How responses are drawn."""
        names = ("max_new_tokens", "min_new_tokens", "temperature", "top_k", "top_p", "rows")
        return Sampling(**{name: getattr(self, name) for name in names})

    @property
    def responses(self) -> int:
        """Responses in one rollout."""
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

    def ppo(self, given: PPOConfig | None = None, **changes: Any) -> PPOConfig:
        """The learner's config: the field's defaults for language models, and what follows from this one."""
        lr = 1e-4 if self.train == "lora" else 1e-6
        base = given or PPOConfig(
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
        base = base.replace(**{"seed": self.seed, **changes})
        return self.follow(base)

    def follow(self, base: PPOConfig) -> PPOConfig:
        """`base` with what this config decides: the KL's weight in the loss, and no critic where there is none."""
        if self.kl_in != "loss" and base.kl_coef:
            raise ConfigError(
                f"kl_coef is {base.kl_coef} in the loss but kl_in is {self.kl_in!r}: the KL would count twice; "
                "set kl_in=loss, or kl_coef=0"
            )
        if self.kl_in == "loss":
            base = base.replace(kl_coef=self.beta)
        if self.algorithm != "ppo":
            base = base.replace(gamma=1.0, lam=1.0, vf_coef=0.0, value_clip=None, normalize_advantage="off")
        return base
