"""Vowpal Wabbit's contextual bandit (cb_explore_adf, SquareCB) behind the same two verbs, with the same features and prior."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import vowpalwabbit

from surefoot.decide.encoders.encoder import Likeness
from surefoot.decide.policy.choosers import Episode, OptionChoice
from surefoot.decide.policy.outcome_model import OutcomeConfig, OutcomeModel, Scene

WARM = 400
"""Made-up examples from which VW learns, before the stream begins, that the prior is what an action is worth."""


class VW:
    """Interactions of the query with the tool's name, and the prior as a feature of the tool whose weight it knows."""

    def __init__(self, dim: int, likeness: Likeness, *, seed: int, gamma: float = 500.0, rate: float = 1.0) -> None:
        self.version = 0
        self._prior = OutcomeModel(dim, likeness, OutcomeConfig(patience=0.0))
        self._vw = vowpalwabbit.Workspace(
            f"--cb_explore_adf --squarecb --gamma_scale {gamma} --cb_type mtr -q xa -l {rate} --power_t 0 --quiet "
            f"--random_seed {seed} --bit_precision 22 --ignore_linear x"
        )
        generator = np.random.default_rng([seed, 3])
        for _ in range(WARM):
            guesses = generator.random(5)
            at = int(generator.integers(5))
            rows = [f"{f'0:{-g:.4f}:0.2 ' if k == at else ''}|p guess:{g:.4f}" for k, g in enumerate(guesses)]
            self._vw.learn("\n".join(["shared |x", *rows]))

    def choose(self, scene: Scene, generator: np.random.Generator, *, greedy: bool = False) -> OptionChoice:
        drawn = np.asarray(self._vw.predict(self._lines(scene)))
        probabilities = drawn / drawn.sum()
        at = int(generator.choice(len(scene), p=probabilities))
        return OptionChoice(at=at, probability=float(probabilities[at]), probabilities=probabilities.astype(np.float32))

    def learn(self, episodes: Sequence[Episode]) -> None:
        for episode in episodes:
            for step in episode:
                label = (step.choice.at, -step.reward, step.choice.probability)
                self._vw.learn(self._lines(step.scene, label))

    def _lines(self, scene: Scene, label: tuple[int, float, float] | None = None) -> str:
        guess = self._prior.guess(scene)
        lines = ["shared |x " + " ".join(f"{i}:{v:.4f}" for i, v in enumerate(scene.x))]
        for k, option in enumerate(scene.option):
            said = f"0:{label[1]}:{label[2]:.6f} " if label is not None and label[0] == k else ""
            lines.append(f"{said}|a t{option} |p guess:{guess[k]:.4f}")
        return "\n".join(lines)

    def state(self) -> dict[str, Any]:
        return {}

    def set_state(self, state: dict[str, Any]) -> None: ...
