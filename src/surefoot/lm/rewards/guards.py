"""What keeps a policy from gaming its reward: a budget of KL, and a judge that learning never sees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from surefoot.lm.config import LMConfig
from surefoot.lm.policy.policy import LMPolicy

Respond = Callable[[Sequence[np.ndarray]], tuple[list[str], list[str]]]
PATIENCE = 3
"""Times in a row that a run may be beyond its budget before `over_budget=back` ends it too."""


class HasBeta(Protocol):
    """What prices the KL."""

    beta: float


class Guards:
    """Looks before and after each update; goes back to better weights where it must."""

    def __init__(
        self,
        config: LMConfig,
        policy: LMPolicy,
        judge: Callable[[list[str], list[str]], Sequence[float]] | None,
        prompts: Sequence[np.ndarray],
    ) -> None:
        self.config, self.policy, self.judge, self.prompts = config, policy, judge, list(prompts)
        self.within: dict[str, Tensor] | None = None
        """The last weights that were within the budget."""
        self.best: dict[str, Tensor] | None = None
        self.best_score, self.best_step, self.looks_since = -np.inf, 0, 0
        self.judged: float | None = None
        self.score_then = 0.0
        """What the reward said when the judge was at its best."""
        self.gamed = 0.0
        """1 while the reward is higher than then and the judge is not."""
        self.over = 0
        self.held_back = False
        """True if this step's rollout must not be learned from."""
        self.improved = False
        """True right after a look that was the best so far."""

    def before_update(self, kl: float, price: HasBeta) -> tuple[str | None, list[str]]:
        """(why the run ends, sentences): the rollout of the weights of now is `kl` nats a response away."""
        budget = self.config.kl_budget
        self.held_back = False
        if budget is None:
            return None, []
        if kl <= budget:
            self.within, self.over = _copy(self.policy), 0
            return None, []
        self.held_back, self.over = True, self.over + 1
        if self.within is not None:
            self.policy.load_state_dict(self.within)
        back = (
            "the weights are those of the last rollout within it" if self.within is not None else "it began beyond it"
        )
        said = f"{kl:.1f} nats a response are beyond kl_budget={budget:g}; {back}"
        if self.config.over_budget == "stop" or self.over >= PATIENCE or self.within is None:
            return said, [said]
        price.beta *= 1.5
        return None, [f"{said}, and beta is {price.beta:.3g}"]

    def after_update(self, step: int, score: float, respond: Respond) -> tuple[str | None, list[str]]:
        """Let the judge look when it is time; after too many looks without a better one, go back to the best and end."""
        self.improved, self.judged, self.gamed = False, None, 0.0
        last = step >= self.config.steps
        if self.judge is None or not self.prompts or (step % self.config.judge_every and not last and step != 1):
            return None, []
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
        said = (
            f"the held-out judge says {self.judged:.3g}; its best was {self.best_score:.3g} at step {self.best_step}, "
            "whose weights these are again"
        )
        return said, [said]

    def stats(self) -> dict[str, float]:
        """What the judge said, if it looked."""
        if self.judged is None:
            return {}
        return {"judge": self.judged, "judge_best": self.best_score, "over_optimised": self.gamed}

    def state(self) -> dict[str, Any]:
        """Everything that moves."""
        return {
            "best_score": float(self.best_score),
            "best_step": self.best_step,
            "looks_since": self.looks_since,
            "over": self.over,
            "score_then": self.score_then,
            "within": self.within,
            "best": self.best,
        }

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self.best_score, self.best_step = float(state["best_score"]), state["best_step"]
        self.looks_since, self.over = state["looks_since"], state["over"]
        self.score_then = state["score_then"]
        self.within, self.best = _tensors(state["within"]), _tensors(state["best"])


def _copy(policy: LMPolicy) -> dict[str, Tensor]:
    return {name: x.clone() for name, x in policy.state_dict().items()}


def _tensors(saved: Mapping[str, Any] | None) -> dict[str, Tensor] | None:
    if saved is None:
        return None
    return {name: torch.as_tensor(np.array(x) if isinstance(x, np.ndarray) else x) for name, x in saved.items()}
