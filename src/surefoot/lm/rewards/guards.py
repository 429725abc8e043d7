"""Guards against over-optimised rewards: a KL budget, a held-out judge, limits of fluency."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from surefoot.errors import ConfigError, RewardError
from surefoot.lm.config import LMConfig
from surefoot.lm.policy.policy import LMPolicy
from surefoot.lm.rewards.fluency import Fluency
from surefoot.lm.rewards.rewards import RewardInputs, as_rewards

Evaluate = Callable[[bool], tuple[RewardInputs, Fluency]]
"""(by the reference) → (responses to the held-out prompts, their fluency)."""
# Rollouts in a row beyond the budget, or evaluations beyond a limit of fluency, after which `over_budget=back` ends the run
# too: β has grown by 1.5² by then.
PATIENCE = 3


_SAVED = ("best_step", "looks_since", "over", "score_then", "within", "best", "fluent", "over_limits")


class HasBeta(Protocol):
    """Something with the weight of the KL."""

    beta: float


class Guards:
    """Checks each update before and after, and restores better weights if necessary."""

    def __init__(
        self,
        config: LMConfig,
        policy: LMPolicy,
        judge: Any,
        held_out: int,
    ) -> None:
        self.config, self.policy, self.held_out = config, policy, held_out
        timeout, device = config.reward_timeout, next(iter(policy.state_dict().values())).device
        self.judge = None if judge is None else as_rewards(judge, timeout=timeout, device=device, kind="judge")
        if judge is not None and not held_out:
            raise ConfigError(
                "the judge has no prompts; pass held-out prompts (--judge-prompts FILE, judge_prompts=[…])"
            )
        self.within: dict[str, Tensor] | None = None
        """The last weights within the budget."""
        self.best: dict[str, Tensor] | None = None
        self.best_score, self.best_step, self.looks_since = -np.inf, 0, 0
        self.judged: float | None = None
        self.limited = any(limit is not None for limit in config.limits.values())
        if self.limited and not held_out:
            raise ConfigError(
                "nll_limit, repetition_limit, refusal_limit and diversity_limit are measured on held-out prompts; pass "
                "--judge-prompts FILE"
            )
        self.base: Fluency | None = None
        """Fluency of the reference's own responses to the held-out prompts."""
        self.fluency: Fluency | None = None
        self.fluent: dict[str, Tensor] | None = None
        """The last weights within the limits of fluency."""
        self.over_limits = 0
        """Evaluations so far that were beyond a limit of fluency."""
        self.score_then = 0.0
        """The reward's score when the judge's was best."""
        self.gamed = 0.0
        """1 at an evaluation where the reward is higher than at that time and the judge is not."""
        self.over = 0
        self.held_back = False
        """True if this step's rollout must not be learned from."""
        self.improved = False
        """True after an evaluation by the judge that was the best so far."""

    def before_update(self, kl: float, price: HasBeta) -> tuple[str | None, list[str]]:
        """Return (why the run ends or None, sentences) for a rollout that is `kl` nats per response from the reference."""
        budget = self.config.kl_budget
        self.held_back = False
        if budget is None:
            return None, []
        # A copy per step is cheap: the policy's state holds the trainable weights only.
        if kl <= budget:
            self.within, self.over = _copy(self.policy), 0
            return None, []
        self.held_back, self.over = True, self.over + 1
        if self.within is not None:
            self.policy.load_state_dict(self.within)
        weights = "restored the last weights within it" if self.within is not None else "no weights were within it"
        message = f"{kl:.1f} nats per response exceed kl_budget={budget:g}; {weights}"
        if self.config.over_budget == "stop" or self.over >= PATIENCE or self.within is None:
            return message, [message]
        # With the same price the restored weights would exceed the budget again.
        price.beta *= 1.5
        return None, [f"{message}, and beta is {price.beta:.3g}"]

    def after_update(
        self, step: int, score: float, evaluate: Evaluate, price: HasBeta | None = None
    ) -> tuple[str | None, list[str]]:
        """Evaluate every `judge_every` steps on the held-out prompts; restore better weights and end the run if necessary.

        With `price` and over_budget=back the run continues beyond a limit of fluency, with a larger weight of the KL.
        """
        self.improved, self.judged, self.gamed, self.fluency = False, None, 0.0, None
        # At the first and the last step too: the first is the baseline of the judge.
        last = step >= self.config.steps
        if not self.held_out or (step % self.config.judge_every and not last and step != 1):
            return None, []
        if self.base is None:
            self.base = evaluate(True)[1]
        inputs, self.fluency = evaluate(False)
        beyond = self.fluency.beyond(self.base, **self.config.limits)
        if not beyond:
            self.fluent = _copy(self.policy) if self.limited else None
            return self._judge(inputs, step, score) if self.judge is not None else (None, [])
        # The judge's best weights were within the limits as well: beyond them the run ends.
        restored = self.best if self.best is not None else self.fluent
        if restored is not None:
            self.policy.load_state_dict(restored)
        outcome = "restored the last weights within the limits" if restored is not None else "no weights were within it"
        message = f"{beyond}; {outcome}"
        self.over_limits += 1
        if (
            self.config.over_budget == "stop"
            or price is None
            or restored is None
            or self.over_limits >= PATIENCE
            or last
        ):
            return message, [message]
        # With the same price the restored weights would take the same way again.
        price.beta *= 1.5
        return None, [f"{message}, and beta is {price.beta:.3g}"]

    def _judge(self, inputs: RewardInputs, step: int, score: float) -> tuple[str | None, list[str]]:
        """Let the judge score; after `judge_patience` evaluations without progress restore the best weights and end."""
        last = step >= self.config.steps
        assert self.judge is not None
        try:
            scores = self.judge(inputs)[0]
        except RewardError as why:
            raise RewardError(f"{why}; the step is saved, fix the judge and resume") from why
        if not np.isfinite(scores).any():
            raise RewardError(f"none of the judge's {len(scores)} scores is a finite number; the step is saved")
        self.judged = float(scores[np.isfinite(scores)].mean())
        if self.judged > self.best_score:
            self.best, self.best_score, self.best_step = _copy(self.policy), self.judged, step
            self.looks_since, self.improved, self.score_then = 0, True, score
            return None, []
        self.looks_since += 1
        self.gamed = float(score > self.score_then)
        if self.looks_since < self.config.judge_patience and not last:
            return None, []
        if self.best is not None:
            self.policy.load_state_dict(self.best)
        message = (
            f"the held-out judge gives {self.judged:.3g}; its best was {self.best_score:.3g} at step {self.best_step}, "
            "whose weights were restored"
        )
        return message, [message]

    def stats(self) -> dict[str, float]:
        """Return the results of this step's evaluation, if there was one; drifts are relative to the reference's responses."""
        stats: dict[str, float] = {}
        if self.fluency is not None and self.base is not None:
            now, base = self.fluency, self.base
            stats = {
                "eval_nll": now.nll,
                "eval_repetition": now.repetition,
                "eval_refusals": now.refusals,
                "eval_diversity": now.diversity,
                "eval_nll_drift": now.nll / max(base.nll, 1e-9),
                "eval_repetition_drift": now.repetition - base.repetition,
                "eval_refusals_drift": now.refusals - base.refusals,
                "eval_diversity_loss": base.diversity - now.diversity,
            }
        if self.judged is not None:
            stats |= {"judge": self.judged, "judge_best": self.best_score, "over_optimised": self.gamed}
        return stats

    def state(self) -> dict[str, Any]:
        """Return everything that changes during a run."""
        base = None if self.base is None else self.base.to_json()
        return {
            "best_score": float(self.best_score),
            "base": base,
            **{name: getattr(self, name) for name in _SAVED},
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        self.best_score = float(state["best_score"])
        for name in _SAVED:
            # Checkpoints of earlier versions have no `fluent` and no `over_limits`.
            setattr(self, name, state.get(name))
        self.over_limits = self.over_limits or 0
        self.within, self.best, self.fluent = (_tensors(state.get(name)) for name in ("within", "best", "fluent"))
        self.base = Fluency(**state["base"]) if state.get("base") is not None else None


def _copy(policy: LMPolicy) -> dict[str, Tensor]:
    return {name: x.clone() for name, x in policy.state_dict().items()}


def _tensors(saved: Mapping[str, Any] | None) -> dict[str, Tensor] | None:
    if saved is None:
        return None
    return {name: torch.as_tensor(np.array(x) if isinstance(x, np.ndarray) else x) for name, x in saved.items()}
