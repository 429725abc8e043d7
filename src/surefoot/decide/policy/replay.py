"""The default policy over options: one logistic model of which option is right, trained on replayed outcomes.

    z_a = s cos(x, d_a) + w_a · [x, 0.3]        z_none = s m + 0.3 n        p = softmax over the candidates and "none"

s and m are the encoder's `sharpness` and `middle`, so that an untrained policy follows the descriptions; w_a and n start at 0.
Only the reward r of the chosen option a is observed. With the likelihood p_a^r (1 - p_a)^(1-r), the gradient of the logits is

    (e_a - p) · (r - p_a) / (1 - p_a)

A success means that every other option would have been wrong; a failure moves the chosen option's probability to the others.
This is what one regression per option cannot learn, and it needs d numbers per option instead of d². Every outcome is logged
and replayed in minibatches, so that the policy gets close to the best fit of the whole log without solving for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surefoot.data.seeds import seed_for
from surefoot.decide.encoders.encoder import Likeness
from surefoot.decide.policy.change_detector import WINDOW, ChangeDetector
from surefoot.decide.policy.choosers import Episode, OptionChoice, require_candidates
from surefoot.decide.policy.experience_log import Log, Logged
from surefoot.decide.policy.exploration import draw, softmax_with_none, spread
from surefoot.decide.policy.options import successors
from surefoot.decide.policy.outcome_model import BIAS, Scene, times, with_bias
from surefoot.decide.policy.outside import against_outside, moved_outside
from surefoot.decide.policy.replay_config import ReplayConfig

# Weights that a step computes with per new outcome; more of them make steps rarer. At 32,000 three outcomes share a step over
# 200 options with 384 numbers, and a decision costs about as much as over 77.
_WEIGHTS_PER_OUTCOME = 32_000
# Decay of the mean squared gradient: about the last hundred steps.
_RMS = 0.99


@dataclass(frozen=True, slots=True)
class _Weights:
    """Arrays that `choose` reads; no step changes them."""

    table: np.ndarray
    """[options, d + 1]"""
    none: float
    outside: np.ndarray
    """[d + 1]: u, the level of "outside", which confidences are measured against."""
    version: int


class ReplayChooser:
    """Policy, log and optimiser. `choose` reads arrays that `learn` replaces in one assignment."""

    def __init__(self, dim: int, likeness: Likeness, *, config: ReplayConfig | None = None) -> None:
        self.dim, self.likeness, self.config = dim, likeness, config or ReplayConfig()
        self.outcomes, self.forgotten = 0, 0
        """Outcomes learned from, and changes detected."""
        self.log = Log(dim, self.config.log)
        """The logged decisions, which steps replay and new versions are evaluated on."""
        self._usable = np.zeros(0, bool)
        """[log]: False for outcomes that contradict what an option does now."""
        self._met = np.zeros(0, bool)
        """[options]: True for options that were candidates of an outcome."""
        self._square = np.zeros(1)
        """[options + 1]: mean squared length of each row's gradient; that of "none" is the last."""
        self._steps, self._pending = 0, 0
        self._changes = ChangeDetector(self.config.surprise)
        self._generator = np.random.default_rng(seed_for("reuse", self.config.seed))
        self._now = _Weights(np.zeros((0, dim + 1), np.float32), 0.0, np.zeros(dim + 1, np.float32), 0)

    @property
    def version(self) -> int:
        """Increases with every change of the policy."""
        return self._now.version

    def choose(self, scene: Scene, generator: np.random.Generator, *, greedy: bool = False) -> OptionChoice:
        """Draw a candidate; with `greedy` the best one, whose probability is then 1."""
        require_candidates(scene)
        now, x, logits = self._now, with_bias(scene.x), self.likeness.sharpness * scene.cosine
        prior = self._success(logits, self._none(0.0))
        logits = logits + times(now.table, scene.option, x)
        worth = self._success(logits, self._none(now.none))
        probabilities, plausible = self._spread(worth)
        at = int(worth.argmax()) if greedy else draw(probabilities, generator)
        if greedy:
            plausible = np.arange(len(scene)) == at
            probabilities = plausible.astype(np.float64)
        outside = self._none(0.0) + float(now.outside @ x)
        return OptionChoice(
            at=at,
            probability=float(probabilities[at]),
            probabilities=probabilities,
            value=float(probabilities @ worth),
            worth=worth,
            confidence=against_outside(float(worth[at]), float(logits[at]), self._none(now.none), outside),
            plausible=plausible,
            prior=prior,
            learned=worth - prior,
            version=now.version,
        )

    def learn(self, episodes: Sequence[Episode]) -> None:
        """Log finished decisions and take the steps that they make due."""
        for episode in episodes:
            later = 0.0
            for count, step in enumerate(reversed(episode), 1):
                later += step.reward
                # The mean of the rewards from this step on: the value of a step of a chain is what the chain achieves.
                self._take(step.scene, step.choice, later / count)

    def probabilities(self, old: Logged) -> np.ndarray:
        """Return the current policy's probabilities for logged decisions, [B, K]."""
        return np.stack([self._spread(row)[0] for row in self.predict(old)])

    def predict(self, old: Logged) -> np.ndarray:
        """Return the expected reward of each candidate of logged decisions, [B, K]; 0 where not valid."""
        now = self._now
        return softmax_with_none(
            self._logits(old, with_bias(old.x) @ now.table.T, old.option), old.valid, self._none(now.none)
        )[:, :-1]

    def prior(self, old: Logged) -> np.ndarray:
        """Return the policy that knows the descriptions only, [B, K]."""
        untrained = np.zeros((len(old), 0), np.float32)
        worth = softmax_with_none(self._logits(old, untrained, old.option), old.valid, self._none(0.0))[:, :-1]
        return np.stack([self._spread(row)[0] for row in worth])

    def _take(self, scene: Scene, choice: OptionChoice, reward: float) -> None:
        at, now = choice.at, self._now
        if self.config.forget > 0.0:
            # Before it is learned: an outcome must not take part in its own prediction.
            worth = choice.worth
            if choice.version != now.version or not len(worth):
                logits = self.likeness.sharpness * scene.cosine
                logits = logits + times(now.table, scene.option, with_bias(scene.x))
                worth = self._success(logits, self._none(now.none))
            self._look_for_change(int(scene.option[at]), float(worth[at]), reward)
        self._grow(int(scene.option.max()) + 1)
        self._meet(scene)
        # Thompson sampling and copied decisions may have no probability; learning does not need one.
        self.log.append(scene, at, choice.probability, reward)
        newest = (self.log.written - 1) % self.log.capacity
        if newest >= len(self._usable):
            self._usable = np.concatenate([self._usable, np.zeros(max(64, len(self._usable)), bool)])
        self._usable[newest] = True
        self.outcomes += 1
        self._pending += 1
        if self._pending * _WEIGHTS_PER_OUTCOME >= self._now.table.size:
            self._step()

    def _meet(self, scene: Scene) -> None:
        """Give options that are met for the first time the weights of an absent option with the same description."""
        new = scene.option[~self._met[scene.option]]
        if len(new) and scene.described is not None:
            # Only from options that cannot be chosen any more: two that stand side by side differ in something.
            absent = np.setdiff1d(np.flatnonzero(self._met), scene.option)
            renamed, former = successors(scene.described, new, absent)
            table = self._now.table.copy()
            table[renamed], self._square[renamed] = table[former], self._square[former]
            self._now = replace(self._now, table=table, version=self._now.version + 1)
        self._met[new] = True

    def _step(self) -> None:
        """Take one step on the outcomes since the last one and on a sample of the log."""
        log, config = self.log, self.config
        fresh = min(self._pending, config.minibatch_size, len(log))
        newest = (log.written - 1 - np.arange(fresh)) % log.capacity
        # Twice as many as needed, because those that are no longer usable are left out.
        drawn = self._generator.integers(0, len(log), 2 * config.minibatch_size)
        drawn = drawn[self._usable[drawn]][: config.minibatch_size - fresh]
        batch = log.rows(np.concatenate([newest, drawn]))
        self._pending, self._steps = 0, self._steps + 1
        now, x, rows = self._now, with_bias(batch.x), np.arange(len(batch))
        used, option = batch.compact(len(now.table))
        table = now.table[used]
        none = self._none(now.none)
        chance = softmax_with_none(self._logits(batch, x @ table.T, option), batch.valid, none)
        taken, success = chance[rows, batch.at], batch.reward.astype(np.float32)
        # At least -1: a failure of an option that seemed certain would otherwise count 50 times as much as a success, and
        # one reward in ten may be wrong. 0.02 only avoids a division by 0.
        weight = np.maximum((success - taken) / np.maximum(1.0 - taken, 0.02), -1.0)
        outside = moved_outside(now.outside, now.none, chance[:fresh], batch.at[:fresh], success[:fresh], x[:fresh])
        chance *= -weight[:, None] / np.float32(len(batch))
        chance[rows, batch.at] += weight / np.float32(len(batch))
        gradient = chance[:, :-1]
        if option is not None:
            # Padding goes to a separate column: as option 0 it would overwrite the gradient of the real one.
            by_row = np.zeros((len(batch), len(table) + 1), np.float32)
            np.put_along_axis(by_row, np.where(batch.valid, option, len(table)), gradient, axis=1)
            gradient = by_row[:, :-1]
        pull = np.float32(config.decay / self.outcomes)
        step = gradient.T @ x
        step -= pull * table
        none = BIAS * float(chance[:, -1].sum()) - float(pull) * now.none
        # Each row is divided by the typical length of its gradient: rare options then learn as fast as frequent ones.
        square = self._square
        square *= _RMS
        square[:-1][used] += (1.0 - _RMS) * np.einsum("ij,ij->i", step, step)
        square[-1] += (1.0 - _RMS) * none * none
        scale = config.lr / (np.sqrt(square / (1.0 - _RMS**self._steps)) + 1e-6)
        step *= scale[:-1][used][:, None].astype(np.float32)
        if isinstance(used, slice):
            moved = np.add(table, step, out=step)
        else:
            moved = now.table.copy()
            moved[used] += step
        self._now = _Weights(moved, now.none + float(scale[-1]) * none, outside, now.version + 1)

    def _look_for_change(self, option: int, expected: float, reward: float) -> None:
        """Drop an option's older outcomes and most of its weights if it fails where it is expected to succeed."""
        if not self._changes.observe(option, expected, reward):
            return
        self.forgotten += 1
        log = self.log
        past = log.rows(slice(None))
        taken = np.flatnonzero(past.option[np.arange(len(past)), past.at] == option)
        age = (log.written - 1 - taken) % log.capacity
        # The last ones are from after the change: they are what made it visible.
        self._usable[taken[np.argsort(age)][WINDOW // 2 :]] = False
        if option < len(self._now.table):
            table = self._now.table.copy()
            table[option] *= np.float32(1.0 - self.config.forget)
            self._now = replace(self._now, table=table, version=self._now.version + 1)

    def _success(self, logits: np.ndarray, none: float) -> np.ndarray:
        """Return p_a of each candidate against "none" with this logit, [K]."""
        # Relative to the largest: the softmax is the same, and no exponential can overflow.
        top = max(float(logits.max()), none)
        raised = np.exp(logits - np.float32(top))
        raised /= raised.sum() + np.exp(np.float32(none - top))
        return raised

    def _none(self, learned: float) -> float:
        return self.likeness.sharpness * self.likeness.middle + BIAS * learned

    def _logits(self, batch: Logged, products: np.ndarray, option: np.ndarray | None = None) -> np.ndarray:
        """Return z of each candidate, [B, K], from the products of inputs and weights, [B, options].

        Candidate k of every decision belongs to column k if `option` is None.
        """
        if option is None:
            return np.float32(self.likeness.sharpness) * batch.cosine + products
        if option.max(initial=0) >= products.shape[1]:  # options that have no weights yet
            width = int(option.max()) + 1
            products = np.pad(products, ((0, 0), (0, width - products.shape[1])))
        return np.float32(self.likeness.sharpness) * batch.cosine + np.take_along_axis(products, option, axis=1)

    def _spread(self, worth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # float64: probabilities are logged, and off-policy evaluation divides by them.
        return spread(self.config.sharpness * worth.astype(np.float64), self.config.floor)

    def _grow(self, options: int) -> None:
        now = self._now
        if options <= len(now.table):
            return
        # By a quarter: unused rows take part in every product.
        size = max(options, len(now.table) + len(now.table) // 4)
        table = np.zeros((size, self.dim + 1), np.float32)
        table[: len(now.table)] = now.table
        square = np.zeros(size + 1)
        square[: len(now.table)], square[-1] = self._square[:-1], self._square[-1]
        self._met = np.concatenate([self._met, np.zeros(size - len(self._met), bool)])
        self._square, self._now = square, replace(now, table=table)

    def state(self) -> dict[str, Any]:
        """Return weights, optimiser, log and generator; `set_state` continues bit-exactly."""
        now = self._now
        return {
            "table": now.table.copy(),
            "square": self._square.copy(),
            "usable": self._usable.copy(),
            "met": self._met.copy(),
            "none": now.none,
            "outside": now.outside.copy(),
            "version": now.version,
            "outcomes": self.outcomes,
            "forgotten": self.forgotten,
            "steps": self._steps,
            "pending": self._pending,
            "changes": self._changes.state(),
            "log": self.log.state(),
            "generator": self._generator.bit_generator.state,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        self._square, self._usable = np.array(state["square"], np.float64), np.array(state["usable"], bool)
        self.outcomes, self.forgotten = int(state["outcomes"]), int(state["forgotten"])
        self._steps, self._pending = int(state["steps"]), int(state["pending"])
        self._changes.set_state(state["changes"])
        self.log.set_state(state["log"])
        self._generator.bit_generator.state = state["generator"]
        self._met = np.array(state["met"], bool)
        table, outside = np.array(state["table"], np.float32), np.array(state["outside"], np.float32)
        self._now = _Weights(table, float(state["none"]), outside, int(state["version"]))
