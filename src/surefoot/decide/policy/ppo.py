"""PPO over candidates. Past decisions are reused with clipped importance weights and an outcome model.

    logits = sharpness · q(x, a) + W_a · x          q: guess from descriptions + correction (outcome_model.py)
    drawn from the plausible candidates only; the true probability is logged

A logged decision (x, a, r) of an older policy μ is reused as a step of the current policy π, with the reward

    r' = V(x) + w · (r - q(x, a)),    w = min(π(a|x) / μ(a|x), limit),    V(x) = Σ_a π(a|x) q(x, a)

which is the doubly robust estimate of π's value at x. The learner gets an ordinary rollout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from surefoot.data.experience import RecordedStep, rollout_of
from surefoot.data.kinds import NOT_NEGATIVE, POSITIVE, UNIT, Interval, integer, real
from surefoot.data.knobs import knob
from surefoot.data.rollout import Rollout
from surefoot.data.seeds import seed_for
from surefoot.decide.encoders.encoder import Likeness
from surefoot.decide.policy.choosers import Episode, Experience, OptionChoice, require_candidates
from surefoot.decide.policy.experience_log import Log, Logged, pack, stack_rollouts, unpack
from surefoot.decide.policy.exploration import ExplorationConfig, draw, log_softmax, spread
from surefoot.decide.policy.outcome_model import OutcomeConfig, OutcomeModel, Scene, times, with_bias
from surefoot.decide.policy.rowwise import CandidatePolicy
from surefoot.learn.config import PPOConfig
from surefoot.learn.learner import Learner
from surefoot.learn.report import UpdateReport
from surefoot.learn.schedule import value_at


@dataclass(frozen=True, slots=True, kw_only=True)
class ChooserConfig(ExplorationConfig):
    """Exploration and reuse of a PPO chooser."""

    fresh: int = knob(32, "Finished decisions that make an update due.", integer(Interval(1)))
    reuse: int = knob(
        224, "Logged decisions that join each update; 0 learns from fresh ones only.", integer(NOT_NEGATIVE)
    )
    log: int = knob(20_000, "Logged decisions that are kept for reuse.", integer(Interval(1)))
    weight_limit: float = knob(2.0, "Largest importance weight of a reused decision.", real(POSITIVE))
    value_share: float = knob(
        1.0,
        "Share of the discounted return in what the outcome model learns in episodes of several steps; 0 takes the reward "
        "of the step alone.",
        real(UNIT),
    )


# Small steps: at lr 1e-2 PPO unlearned the prior of the descriptions. Advantages are not normalised: they are near 0 once
# choices are right, and dividing by their deviation would amplify noise. No entropy bonus: the softmax itself explores.
PPO_DEFAULTS = PPOConfig(
    lr=3e-3, gamma=1.0, lam=1.0, epochs=4, minibatch_size=64, normalize_advantage="off", ent_coef=0.0, path="torch"
)


@dataclass(frozen=True, slots=True)
class _Published:
    """Arrays that `choose` reads; no update changes them."""

    theta: np.ndarray
    weight: np.ndarray
    critic: np.ndarray
    hope: np.float32
    version: int


class PPOChooser:
    """Policy, outcome model, log and learner. `choose` reads published arrays, which `learn` replaces in one assignment."""

    def __init__(
        self,
        dim: int,
        likeness: Likeness,
        *,
        options: int = 64,
        config: ChooserConfig | None = None,
        outcomes: OutcomeConfig | None = None,
        ppo: PPOConfig | None = None,
    ) -> None:
        self.dim, self.likeness = dim, likeness
        self.config, self.ppo = config or ChooserConfig(), ppo or PPO_DEFAULTS
        self.model = OutcomeModel(dim, likeness, outcomes)
        self.policy = CandidatePolicy(dim, max(1, options))
        self.learner = Learner(self.policy, self.ppo)
        self.version = 0
        self.log = Log(dim, self.config.log)
        """The logged decisions, which updates reuse and new versions are evaluated on."""
        self._fresh: list[Episode] = []
        self._generator = np.random.default_rng(seed_for("reuse", self.ppo.seed))
        self._now = self._snapshot()

    def choose(self, scene: Scene, generator: np.random.Generator, *, greedy: bool = False) -> OptionChoice:
        """Draw a candidate; with `greedy` the likeliest one, whose probability is then 1."""
        require_candidates(scene)
        prior, correction, trained, now = self._parts(scene)
        worth = prior + correction
        # Relative to the best: the softmax is the same, and no exponential can overflow.
        base = self.config.sharpness * (worth - worth.max())
        logits = base + trained
        value = float(now.critic @ scene.x)
        parts: dict[str, Any] = {"prior": prior, "learned": correction + trained / self.config.sharpness, "base": base}
        if greedy:
            probabilities = (np.arange(len(scene)) == logits.argmax()).astype(np.float64)
            plausible = probabilities > 0
        else:
            probabilities, plausible = spread(logits, self.config.floor)
        at = draw(probabilities, generator)
        return OptionChoice(
            at=at,
            probability=float(probabilities[at]),
            probabilities=probabilities,
            value=float(probabilities @ worth) + value,
            worth=worth,
            plausible=plausible,
            version=now.version,
            **parts,
        )

    def learn(self, episodes: Sequence[Episode]) -> UpdateReport | None:
        """Add finished episodes to the outcome model; once enough are there, make a PPO update that reuses the log."""
        for episode in episodes:
            self._take(episode)
        if sum(map(len, self._fresh)) >= self.config.fresh:
            return self.update()
        if episodes:
            self._publish()
        return None

    def update(self) -> UpdateReport | None:
        """Make a PPO update from fresh and reused decisions; return None if there are none."""
        if not self._fresh and not len(self.log):
            return None
        report = self.learner.update(self._rollout(self._fresh))
        self._fresh = []
        self._publish()
        return report

    @property
    def fresh(self) -> int:
        """Number of finished decisions that no PPO update has used."""
        return sum(map(len, self._fresh))

    def set_lr(self, lr: float) -> None:
        """Set the learning rate of PPO."""
        self.learner.lr_scale = lr / value_at(self.ppo.lr, progress=0.0, updates=0)

    def reconfigure(self, ppo: PPOConfig) -> None:
        """Change the PPO settings; keep the weights, reset the optimiser."""
        self.ppo = ppo
        self.learner = Learner(self.policy, ppo)

    def _publish(self) -> None:
        self.version += 1
        self._now = self._snapshot()

    def _take(self, episode: Episode) -> None:
        total = 0.0
        for step in reversed(episode):
            total = step.reward + self.ppo.gamma * total
            learned = step.reward + self.config.value_share * (total - step.reward)
            self.model.learn(step.scene, step.choice.at, learned)
        highest = max(int(step.scene.option.max()) for step in episode)
        if highest >= self.policy.options:
            self._grow(highest + 1)
        self._fresh.append(episode)
        # The doubly robust reward of `_again` is that of a single step: longer episodes cannot be reused.
        if len(episode) == 1:
            (only,) = episode
            self.log.append(only.scene, only.choice.at, only.choice.probability, only.reward)

    def _rollout(self, fresh: Sequence[Episode]) -> Rollout:
        # At least 1: with `reuse=0`, an update without fresh decisions would have an empty rollout.
        reuse = self.config.reuse if fresh else max(self.config.reuse, 1)
        again = self._replayed_rollout(self.log.sample(reuse, self._generator)) if reuse and len(self.log) else None
        if not fresh:
            assert again is not None
            return again
        rollout = rollout_of([[_recorded(s, last=s is e[-1]) for s in e] for e in fresh])
        return rollout if again is None else stack_rollouts(rollout, again)

    def probabilities(self, old: Logged) -> np.ndarray:
        """Return the current policy's probabilities for logged decisions, [B, K]."""
        logits = self._logits(old)[1]
        return np.stack([spread(row, self.config.floor)[0] for row in logits])

    def prior(self, old: Logged) -> np.ndarray:
        """Return the prior from the descriptions as a policy, [B, K].

        Smoothed like the learned policy, so that both could have produced every action in the log.
        """
        calibrated, _ = self.model.guesses(old.cosine, old.valid)
        return np.stack([spread(np.log(np.maximum(row, 1e-30)), self.config.floor)[0] for row in calibrated])

    def _logits(self, old: Logged) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return estimates, logits, and the part of the logits that PPO does not train, [B, K] each."""
        now = self._now
        calibrated, hopeful = self.model.guesses(old.cosine, old.valid)
        worth = calibrated + now.hope * (hopeful - calibrated) + _table(now.theta, with_bias(old.x), old.option)
        # -1e3 for padding: its probability is exactly 0, and nothing becomes infinite or NaN.
        worth = np.where(old.valid, worth, -1e3)
        base = self.config.sharpness * (worth - worth.max(axis=1, keepdims=True))
        return worth, base + _table(now.weight, old.x, old.option), base

    def _replayed_rollout(self, old: Logged) -> Rollout:
        """Return logged decisions as steps of the current policy, with their doubly robust rewards."""
        now, rows = self._now, np.arange(len(old))
        worth, logits, base = self._logits(old)
        log_probs = log_softmax(logits)
        probabilities, chosen = np.exp(log_probs), log_probs[rows, old.at]
        guess = (probabilities * np.where(old.valid, worth, 0.0)).sum(axis=1)
        value = guess + old.x @ now.critic
        # 1e-6 only avoids a division by 0; `weight_limit` bounds the weight.
        weight = np.minimum(np.exp(chosen) / np.maximum(old.probability, 1e-6), self.config.weight_limit)
        obs = {"x": old.x, "base": base.astype(np.float32), "option": old.option, "guess": guess.astype(np.float32)}
        return Rollout(
            obs={name: part[None] for name, part in obs.items()},
            action=old.at[None],
            # Of the current policy: the old one is accounted for in the reward, so PPO's ratio starts at 1.
            log_prob=chosen[None],
            value=value[None].astype(np.float64),
            next_value=np.zeros((1, len(old))),
            reward=(value + weight * (old.reward - worth[rows, old.at]))[None].astype(np.float64),
            terminated=np.ones((1, len(old)), bool),
            truncated=np.zeros((1, len(old)), bool),
            start=np.ones((1, len(old)), bool),
            valid=np.ones((1, len(old)), bool),
            policy_version=np.full((1, len(old)), self.learner.policy_version, np.int64),
            action_mask=old.valid[None],
            stats={
                "reused": float(len(old)),
                "reuse_sample_size": float(weight.sum() ** 2 / max(1e-12, len(old) * (weight**2).sum())),
            },
        )

    def _parts(self, scene: Scene) -> tuple[np.ndarray, np.ndarray, np.ndarray, _Published]:
        """Return the guess from descriptions, the learned correction and PPO's part of the logits, [K] each."""
        now = self._now
        calibrated, hopeful = self.model.guesses(scene.cosine)
        prior = calibrated + now.hope * (hopeful - calibrated)
        correction = times(now.theta, scene.option, with_bias(scene.x))
        return prior, correction, times(now.weight, scene.option, scene.x), now

    def _snapshot(self) -> _Published:
        return _Published(
            # Copies: torch shares its memory with numpy, and the learner changes the weights in place.
            theta=self.model.theta().copy(),
            weight=self.policy.weight.detach().numpy().copy(),
            critic=self.policy.critic.detach().numpy().copy(),
            hope=np.float32(self.model.hope),
            version=self.version,
        )

    def _grow(self, options: int) -> None:
        """Add rows for more options; keep the weights and the optimiser state of the others."""
        old, memory = self.policy, self.learner.state()
        # Doubled: each growth makes a new learner and copies all weights.
        self.policy = CandidatePolicy(old.dim, max(options, 2 * old.options))
        self.learner = Learner(self.policy, self.ppo)
        with torch.no_grad():
            self.policy.weight[: old.options] = old.weight
            self.policy.critic.copy_(old.critic)
        fresh = self.learner.state()["optimizer"]
        for name, tensor in memory["optimizer"].items():
            if tensor.shape == fresh[name].shape:
                fresh[name] = tensor
            else:
                fresh[name][: old.options] = tensor
        self.learner.set_state({**memory, "optimizer": fresh})

    def state(self) -> dict[str, Any]:
        """Return model, weights, optimiser, log and generators; `set_state` continues bit-exactly."""
        return {
            "weights": {name: x.clone() for name, x in self.policy.state_dict().items()},
            "learner": self.learner.state(),
            "model": self.model.state(),
            "version": self.version,
            "options": self.policy.options,
            "log": self.log.state(),
            "fresh": pack(self._fresh),
            "generator": self._generator.bit_generator.state,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        self.policy = CandidatePolicy(self.model.dim, int(state["options"]))
        self.policy.load_state_dict({name: torch.as_tensor(x) for name, x in state["weights"].items()})
        self.learner = Learner(self.policy, self.ppo)
        self.learner.set_state(state["learner"])
        self.model.set_state(state["model"])
        self.version = int(state["version"])
        self.log.set_state(state["log"])
        self._fresh = unpack(state["fresh"])
        self._generator.bit_generator.state = state["generator"]
        self._now = self._snapshot()


def _table(table: np.ndarray, x: np.ndarray, option: np.ndarray) -> np.ndarray:
    """Return row `option` of the table times x, [B, K]; 0 for options beyond the table."""
    padded = np.zeros((max(len(table), int(option.max()) + 1), table.shape[-1]), np.float32)
    padded[: len(table)] = table
    return np.take_along_axis(x @ padded.T, option, axis=1)


def _recorded(step: Experience, *, last: bool) -> RecordedStep:
    choice, scene = step.choice, step.scene
    guess = np.float32(choice.probabilities @ choice.worth)
    obs = {"x": scene.x, "base": choice.base.astype(np.float32), "option": scene.option, "guess": guess}
    return RecordedStep(
        obs={name: np.asarray(part) for name, part in obs.items()},
        action=choice.at,
        # log(0) is -inf, and one such step would make the ratio, and the loss of its minibatch, infinite.
        log_prob=float(np.log(max(choice.probability, 1e-30))),
        value=choice.value,
        policy_version=choice.version,
        reward=step.reward,
        terminated=last,
        action_mask=choice.plausible,
    )
