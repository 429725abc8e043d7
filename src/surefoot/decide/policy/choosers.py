"""Choosers: policies over candidates that choose and learn from outcomes, all with the same two methods."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from surefoot.decide.encoders.encoder import Likeness
from surefoot.decide.policy.outcome_model import OutcomeConfig, OutcomeModel, Scene
from surefoot.errors import AllActionsMasked, ConfigError
from surefoot.learn.report import UpdateReport

NOTHING = np.zeros(0, np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionChoice:
    """The chosen candidate, its probability, and the scores behind the choice."""

    at: int
    """Index among the candidates."""
    probability: float
    """True probability of this draw, and of an answer at all; NaN if unknown (Thompson sampling)."""
    probabilities: np.ndarray
    """[K]: of each candidate, given that there is an answer."""
    value: float = 0.0
    """Expected reward of the policy for this query."""
    worth: np.ndarray = field(default_factory=NOTHING.copy)
    """[K]: the estimated reward of each candidate."""
    confidence: float = math.nan
    """Score of the chosen candidate, 0 … 1, that is also low if the query fits no candidate; NaN if the chooser has none."""
    prior: np.ndarray = field(default_factory=NOTHING.copy)
    """[K]: the part of the estimate that comes from the descriptions."""
    learned: np.ndarray = field(default_factory=NOTHING.copy)
    """[K]: the part that was learned from outcomes."""
    base: np.ndarray = field(default_factory=NOTHING.copy)
    """[K]: logits before the trained weights; empty for choosers that have none."""
    plausible: np.ndarray = field(default_factory=NOTHING.copy)
    """[K] bool: candidates with a probability above 0."""
    version: int = 0

    @property
    def score(self) -> float:
        """What the agent calibrates: the confidence if known, else the estimated reward, else the probability."""
        if not math.isnan(self.confidence):
            return self.confidence
        return float(self.worth[self.at]) if len(self.worth) else self.probability

    @property
    def weight(self) -> float:
        """Number of decisions that this one stands for: more than 1 if most of its kind were refused."""
        answered = float(self.probabilities[self.at])
        return answered / self.probability if 0.0 < self.probability < answered else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Experience:
    """A choice and its reward, 0 (worst) to 1 (best)."""

    scene: Scene
    choice: OptionChoice
    reward: float
    weight: float = 1.0
    id: str = ""


Episode = Sequence[Experience]


class Chooser(Protocol):
    """Chooses, and learns from finished episodes; a decision that stands alone is an episode of one step."""

    @property
    def version(self) -> int:
        """Increases with every change of the policy; answers cached for another version are stale."""
        ...

    def choose(self, scene: Scene, generator: np.random.Generator, *, greedy: bool = False) -> OptionChoice: ...

    def learn(self, episodes: Sequence[Episode]) -> UpdateReport | None: ...

    def state(self) -> dict[str, Any]: ...

    def set_state(self, state: dict[str, Any]) -> None: ...


def certain(scene: Scene, worth: np.ndarray, version: int = 0, *, at: int | None = None, **parts: Any) -> OptionChoice:
    """Return the choice of candidate `at`, by default the best one, with probability 1."""
    require_candidates(scene)
    at = int(worth.argmax()) if at is None else at
    probabilities = np.zeros(len(scene), np.float32)
    probabilities[at] = 1.0
    return OptionChoice(
        at=at,
        probability=1.0,
        probabilities=probabilities,
        value=float(worth[at]),
        worth=worth,
        version=version,
        **parts,
    )


def require_candidates(scene: Scene) -> None:
    if len(scene) == 0:
        raise AllActionsMasked("there is no candidate to choose from: every option is masked or the set is empty")


class ZeroShot:
    """Choose the candidate with the nearest description. Learns nothing: the baseline for all others."""

    def __init__(self, dim: int, likeness: Likeness) -> None:
        self.version, self.dim, self.likeness = 0, dim, likeness

    def choose(self, scene: Scene, generator: np.random.Generator, *, greedy: bool = False) -> OptionChoice:
        return certain(scene, scene.cosine, prior=scene.cosine)

    def learn(self, episodes: Sequence[Episode]) -> None:
        return None

    def state(self) -> dict[str, Any]:
        return {}

    def set_state(self, state: dict[str, Any]) -> None: ...


class LinearChooser:
    """Base of the linear choosers: a guess from descriptions and, per option, a ridge regression on its residuals."""

    def __init__(
        self, dim: int, likeness: Likeness, *, ridge: float = 1.0, prior: bool = True, patience: float = 0.0
    ) -> None:
        # patience 0 with the calibrated cosine of the encoder: the guess does not change, as in the literature.
        self.model = OutcomeModel(dim, likeness, OutcomeConfig(ridge=ridge, patience=patience, forget=0.0))
        self.version, self.prior = 0, prior

    def learn(self, episodes: Sequence[Episode]) -> None:
        for episode in episodes:
            for step in episode:
                self.model.learn(self._visible(step.scene), step.choice.at, step.reward)
                self.version += 1

    def _estimates(self, scene: Scene) -> tuple[Scene, np.ndarray]:
        """Return the scene as the model sees it, and its estimates of the rewards, [K]."""
        require_candidates(scene)
        visible = self._visible(scene)
        return visible, self.model.predict(visible)

    def _visible(self, scene: Scene) -> Scene:
        """Return the scene, with equal cosines if the prior is off."""
        if self.prior:
            return scene
        # Far below any cosine: the hopeful guess of every option is about 0, and only outcomes count.
        return Scene(x=scene.x, option=scene.option, cosine=np.full(len(scene), -9.0, np.float32))

    def state(self) -> dict[str, Any]:
        return {"model": self.model.state(), "version": self.version}

    def set_state(self, state: dict[str, Any]) -> None:
        self.model.set_state(state["model"])
        self.version = int(state["version"])


class Residual(LinearChooser):
    """Greedy on the guess plus its ridge correction. Logs no propensities, so it cannot be evaluated offline."""

    def choose(self, scene: Scene, generator: np.random.Generator, *, greedy: bool = False) -> OptionChoice:
        require_candidates(scene)
        visible = self._visible(scene)
        guess, correction = self.model.guess(visible), self.model.correction(visible)
        return certain(scene, guess + correction, self.version, prior=guess, learned=correction)


class EpsilonGreedy(LinearChooser):
    """Residual, with a share ε of decisions drawn uniformly from all candidates."""

    # A baseline: 0.1, drawn uniformly from all candidates, cost 8 points of success when it was measured.
    def __init__(self, dim: int, likeness: Likeness, *, epsilon: float = 0.1, **options: Any) -> None:
        super().__init__(dim, likeness, **options)
        if not 0.0 <= epsilon <= 1.0:
            raise ConfigError(f"epsilon is {epsilon}; it must be at least 0 and at most 1")
        self.epsilon = epsilon

    def choose(self, scene: Scene, generator: np.random.Generator, *, greedy: bool = False) -> OptionChoice:
        _, worth = self._estimates(scene)
        if greedy:
            return certain(scene, worth, self.version)
        probabilities = np.full(len(scene), self.epsilon / len(scene))
        probabilities[worth.argmax()] += 1.0 - self.epsilon
        # `choice` raises if rounding moved the sum too far from 1.
        at = int(generator.choice(len(scene), p=probabilities / probabilities.sum()))
        return OptionChoice(
            at=at,
            probability=float(probabilities[at]),
            probabilities=probabilities.astype(np.float32),
            value=float(probabilities @ worth),
            worth=worth,
            version=self.version,
        )


class LinUCB(LinearChooser):
    """LinUCB (Li et al. 2010): estimate plus α confidence widths. Deterministic."""

    def __init__(self, dim: int, likeness: Likeness, *, alpha: float = 0.2, **options: Any) -> None:
        super().__init__(dim, likeness, **options)
        self.alpha = alpha

    def choose(self, scene: Scene, generator: np.random.Generator, *, greedy: bool = False) -> OptionChoice:
        visible, worth = self._estimates(scene)
        at = None if greedy else self.model.best(visible, worth, np.full(len(scene), self.alpha))
        return certain(scene, worth, self.version, at=at)


class LinTS(LinearChooser):
    """Linear Thompson sampling (Agrawal and Goyal 2013): draw each estimate from its posterior, take the largest."""

    def __init__(self, dim: int, likeness: Likeness, *, spread: float = 0.1, **options: Any) -> None:
        super().__init__(dim, likeness, **options)
        self.spread = spread

    def choose(self, scene: Scene, generator: np.random.Generator, *, greedy: bool = False) -> OptionChoice:
        visible, worth = self._estimates(scene)
        if greedy:
            return certain(scene, worth, self.version)
        # θ ~ N(θ̂, s²A⁻¹) makes θ·x normal with deviation s·width: drawing that is the same and far cheaper.
        at = self.model.best(visible, worth, self.spread * generator.standard_normal(len(scene)))
        # The probability of being the largest of K draws has no closed form. NaN, and not a guess: importance weights
        # computed from a wrong probability would be wrong without notice.
        unknown = np.full(len(scene), np.nan, np.float32)
        return OptionChoice(
            at=at,
            probability=float("nan"),
            probabilities=unknown,
            value=float(worth[at]),
            worth=worth,
            version=self.version,
        )
