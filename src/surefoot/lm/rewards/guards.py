"""Guards against over-optimised rewards: a KL budget, and a held-out judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from surefoot.lm.config import LMConfig
from surefoot.lm.policy.policy import LMPolicy

Respond = Callable[[Sequence[np.ndarray]], tuple[list[str], list[str]]]
# Rollouts in a row beyond the budget after which `over_budget=back` ends the run too: β has grown by 1.5² by then.
PATIENCE = 3


_SAVED = ("best_step", "looks_since", "over", "score_then", "within", "best")


class HasBeta(Protocol):
    """Something with the weight of the KL."""

    beta: float


class Guards:
    """Checks each update before and after, and restores better weights if necessary."""

    def __init__(
        self,
        config: LMConfig,
        policy: LMPolicy,
        judge: Callable[[list[str], list[str]], Sequence[float]] | None,
        prompts: Sequence[np.ndarray],
    ) -> None:
        self.config, self.policy, self.judge, self.prompts = config, policy, judge, list(prompts)
        self.within: dict[str, Tensor] | None = None
        """The last weights within the budget."""
        self.best: dict[str, Tensor] | None = None
        self.best_score, self.best_step, self.looks_since = -np.inf, 0, 0
        self.judged: float | None = None
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
        price.beta *= 1.5
        return None, [f"{message}, and beta is {price.beta:.3g}"]

    def after_update(self, step: int, score: float, respond: Respond) -> tuple[str | None, list[str]]:
        """Let the judge score every `judge_every` steps; after `judge_patience` without progress restore the best and end."""
        self.improved, self.judged, self.gamed = False, None, 0.0
        last = step >= self.config.steps
        if self.judge is None or not self.prompts or (step % self.config.judge_every and not last and step != 1):
            return None, []
        # At the first and the last step too: the first is the baseline.
        scores = np.asarray([float(x) for x in self.judge(*respond(self.prompts))])
        self.judged = float(np.nanmean(scores))
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
        """Return the judge's scores, if it was called in this step."""
        if self.judged is None:
            return {}
        return {"judge": self.judged, "judge_best": self.best_score, "over_optimised": self.gamed}

    def state(self) -> dict[str, Any]:
        """Return everything that changes during a run."""
        return {"best_score": float(self.best_score), **{name: getattr(self, name) for name in _SAVED}}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        self.best_score = float(state["best_score"])
        for name in _SAVED:
            setattr(self, name, state[name])
        self.within, self.best = _tensors(state["within"]), _tensors(state["best"])


def _copy(policy: LMPolicy) -> dict[str, Tensor]:
    return {name: x.clone() for name, x in policy.state_dict().items()}


def _tensors(saved: Mapping[str, Any] | None) -> dict[str, Tensor] | None:
    if saved is None:
        return None
    return {name: torch.as_tensor(np.array(x) if isinstance(x, np.ndarray) else x) for name, x in saved.items()}
