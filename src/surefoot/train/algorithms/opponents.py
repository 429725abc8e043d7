"""Opponents for self-play: a pool of past versions of the learner, sampled per game and rated by their results."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from surefoot.data.kinds import NOT_NEGATIVE, UNIT, Interval, choice, integer, real
from surefoot.data.knobs import Config, documented, knob
from surefoot.data.seeds import seed_for
from surefoot.envs.api import View
from surefoot.envs.gym.snapshot import rng_from_json, rng_to_json
from surefoot.errors import ConfigError
from surefoot.nets.policy import Policy, PolicyInput
from surefoot.train.algorithms.ratings import START, after_game, expected
from surefoot.train.collect.kernel_act import kernel_act
from surefoot.train.collect.kernel_rollout import kernel_actor

# Opponent id of the current policy. Past versions have their env step, which is never negative.
LATEST = -1


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class SelfPlayConfig(Config):
    """Choice of the opponents of a learner."""

    latest: float = knob(
        0.2, "Share of games against the current policy; the other games are against its past versions.", real(UNIT)
    )
    choice: str = knob(
        "uniform",
        "How a past version is chosen: uniform, or elo: in proportion to its expected score against the learner.",
        choice("uniform", "elo"),
    )
    every: int = knob(50_000, "Env steps between two past versions that are added to the pool.", integer(Interval(1)))
    keep: int = knob(
        20,
        "Maximum number of past versions; then the one with the closest neighbours is removed.",
        integer(Interval(2)),
    )
    elo_k: float = knob(8.0, "Largest change of a rating by one game (Elo's K).", real(NOT_NEGATIVE))


class Noise:
    """Random numbers of the players' moves, for the kernel and for torch."""

    def __init__(self, seed: int) -> None:
        self.kernel = np.array([seed_for(f"opponent-kernel-{i}", seed) for i in range(4)], np.uint64)
        self.torch = torch.Generator().manual_seed(seed_for("opponent", seed))

    def state(self) -> dict[str, Any]:
        return {"kernel": self.kernel.copy(), "torch": self.torch.get_state()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self.kernel[:] = state["kernel"]
        self.torch.set_state(torch.as_tensor(np.array(state["torch"])))


class Player:
    """A policy that chooses moves, with the kernel if it supports the policy. Call `refresh` after its weights change."""

    def __init__(self, policy: Policy) -> None:
        if policy.sequential:
            raise ConfigError(
                "a policy with memory cannot be an opponent: its state between moves is not stored. "
                "Use a policy without recurrent layers."
            )
        self.policy = policy
        self.actor = self._kernel = kernel_actor(policy, 0)

    def refresh(self) -> None:
        """Load the current weights into the kernel; a policy that was changed since may need torch."""
        if self._kernel is not None:
            self.actor = self._kernel if self._kernel.refresh() is None else None

    @torch.no_grad()
    def moves(self, view: View, noise: Noise, *, deterministic: bool = False) -> np.ndarray:
        """Return actions for the environment, [n], sampled from the policy or its most likely ones."""
        if self.actor is not None:
            return kernel_act(self.actor, view, noise.kernel, deterministic=deterministic).env_action
        inputs = PolicyInput.from_arrays(view.obs, view.action_mask)
        out = self.policy.act(inputs, generator=noise.torch, deterministic=deterministic)
        return self.policy.env_action(out.action.numpy())


@dataclass(slots=True)
class Past:
    """A past version of the learner, saved after `step` env steps."""

    step: int
    weights: dict[str, np.ndarray]
    rating: float
    games: int
    player: Player | None = None


class Pool:
    """`Opponents` for N boards: the current policy and its past versions. `state` returns all of it."""

    def __init__(self, policy: Policy, boards: int, config: SelfPlayConfig | None = None) -> None:
        self.policy, self.config = policy, config or SelfPlayConfig()
        self._latest = Player(policy)
        self._opponent = np.full(boards, LATEST, np.int64)
        """The opponent on each board: the step of a past version, or LATEST."""
        self.past: list[Past] = []
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Clear the pool and add the current policy as the first past version."""
        self._rng = np.random.default_rng(seed_for("opponents", seed))
        self._noise = Noise(seed)
        self.rating, self.steps, self.past = START, 0, []
        self._opponent[:] = LATEST
        self.keep()

    def keep(self) -> None:
        """Add a copy of the current policy, with its rating, to the past versions."""
        weights = weights_of(self.policy)
        self.past = [
            *(past for past in self.past if past.step != self.steps),
            Past(self.steps, weights, self.rating, 0),
        ]
        if len(self.past) > self.config.keep:
            # Remove the one whose removal leaves the smallest gap, never the first or the last.
            steps = [past.step for past in self.past]
            gaps = [after - before for before, after in zip(steps, steps[2:], strict=False)]
            removed = self.past.pop(1 + gaps.index(min(gaps)))
            # A running game against the removed version continues against the next one.
            self._opponent[self._opponent == removed.step] = min(
                past.step for past in self.past if past.step > removed.step
            )

    def passed(self, steps: int) -> None:
        """Count `steps` more env steps of the learner, and add it to the pool if the interval has passed."""
        before, self.steps = self.steps, self.steps + steps
        if before // self.config.every < self.steps // self.config.every:
            self.keep()
        # The learner's weights change between rollouts without a notification.
        self._latest.refresh()

    def meet(self, streams: np.ndarray) -> None:
        """Choose new opponents for `streams`."""
        n = len(streams)
        steps = np.array([past.step for past in self.past])
        chosen = steps[self._rng.choice(len(steps), size=n, p=self.odds())]
        self._opponent[streams] = np.where(self._rng.random(n) < self.config.latest, LATEST, chosen)

    def odds(self) -> np.ndarray:
        """Return the probability of each past version among the past versions."""
        if self.config.choice == "uniform":
            return np.full(len(self.past), 1.0 / len(self.past))
        scores = np.array([expected(past.rating, self.rating) for past in self.past])
        return scores / scores.sum()

    def reply(self, view: View, streams: np.ndarray) -> np.ndarray:
        """Return the opponents' moves, [n], with one batch per opponent."""
        opponents = self._opponent[streams]
        out = np.empty(len(streams), np.int64)
        for opponent in np.unique(opponents):
            rows = np.flatnonzero(opponents == opponent)
            mask = None if view.action_mask is None else view.action_mask[rows]
            part = View(obs={name: x[rows] for name, x in view.obs.items()}, action_mask=mask)
            out[rows] = self.player(int(opponent)).moves(part, self._noise)
        return out

    def score(self, streams: np.ndarray, score: np.ndarray) -> None:
        """Update both ratings after each game. Games against the current policy are not rated."""
        by_step = {past.step: past for past in self.past}
        for opponent, points in zip(self._opponent[streams].tolist(), score.tolist(), strict=True):
            if opponent != LATEST:
                past = by_step[opponent]
                # Points are -1, 0 or 1; Elo counts 0, ½ and 1.
                self.rating, past.rating = after_game(self.rating, past.rating, (points + 1.0) / 2.0, self.config.elo_k)
                past.games += 1

    def player(self, step: int) -> Player:
        """Return the player of the current policy (LATEST) or of the past version of a step."""
        if step == LATEST:
            return self._latest
        past = next(past for past in self.past if past.step == step)
        # Built on first use: not every past version meets the learner again.
        if past.player is None:
            past.player = player_of(self.policy, past.weights)
        return past.player

    def table(self) -> str:
        """Return a text table of the learner and its past versions by rating, strongest first."""
        rows = [(self.rating, "now", self.steps, "")]
        rows += [(past.rating, "", past.step, f"{past.games:,}") for past in self.past]
        head = f"{'rating':>7}  {'env steps':>12}  {'games':>8}"
        return "\n".join(
            [head, *(f"{r:7.0f}  {s:12,}  {g:>8}  {n}".rstrip() for r, n, s, g in sorted(rows, reverse=True))]
        )

    def state(self) -> dict[str, Any]:
        """Return everything that changes: weights, ratings, opponents per board and random generators."""
        versions = {
            str(i): {"step": past.step, "rating": past.rating, "games": past.games, "weights": dict(past.weights)}
            for i, past in enumerate(self.past)
        }
        return {
            "past": versions,
            "who": self._opponent.copy(),
            "rating": self.rating,
            "steps": self.steps,
            "rng": rng_to_json(self._rng),
            "noise": self._noise.state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from `state`."""
        saved = [state["past"][str(i)] for i in range(len(state["past"]))]
        self.past = [
            Past(
                int(version["step"]),
                {name: np.array(x) for name, x in version["weights"].items()},
                float(version["rating"]),
                int(version["games"]),
            )
            for version in saved
        ]
        self._opponent = np.array(state["who"], np.int64)
        self.rating, self.steps = float(state["rating"]), int(state["steps"])
        self._rng = rng_from_json(state["rng"])
        self._noise.set_state(state["noise"])
        self._latest.refresh()


def weights_of(policy: Policy) -> dict[str, np.ndarray]:
    """Return a copy of a policy's weights and statistics."""
    return {name: x.detach().cpu().numpy().copy() for name, x in policy.state_dict().items()}


def player_of(policy: Policy, weights: Mapping[str, np.ndarray]) -> Player:
    """Return a player with the architecture of `policy` and other weights."""
    past = copy.deepcopy(policy)
    past.load_state_dict({name: torch.from_numpy(np.array(x)) for name, x in weights.items()})
    return Player(past)
