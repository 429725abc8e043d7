"""A learner's past selves: kept as it learns, chosen to play against it, rated by how they do."""

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
from surefoot.train.collect.kernel_rollout import kernel_actions, kernel_actor

LATEST = -1
"""Who plays against itself as it is now."""


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class SelfPlayConfig(Config):
    """Whom a learner plays against."""

    latest: float = knob(
        0.2, "How often the opponent is the learner as it is now; otherwise it is one of its past selves.", real(UNIT)
    )
    choice: str = knob(
        "uniform",
        "How a past self is chosen: all alike, or by elo, each as likely as its expected score against the learner.",
        choice("uniform", "elo"),
    )
    every: int = knob(50_000, "Env steps between two past selves that are kept.", integer(Interval(1)))
    keep: int = knob(
        20, "Most past selves at once; beyond that the one goes whose neighbours are closest.", integer(Interval(2))
    )
    elo_k: float = knob(8.0, "How far one game moves a rating.", real(NOT_NEGATIVE))


class Noise:
    """Every random number of players' moves, for the kernel and for torch."""

    def __init__(self, seed: int) -> None:
        self.kernel = np.array([seed_for(f"opponent-kernel-{i}", seed) for i in range(4)], np.uint64)
        self.torch = torch.Generator().manual_seed(seed_for("opponent", seed))

    def state(self) -> dict[str, Any]:
        return {"kernel": self.kernel.copy(), "torch": self.torch.get_state()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        self.kernel[:] = state["kernel"]
        self.torch.set_state(torch.as_tensor(np.array(state["torch"])))


class Player:
    """A policy that makes moves, by the kernel where it can. Call `refresh` after its weights have changed."""

    def __init__(self, policy: Policy) -> None:
        if policy.sequential:
            raise ConfigError("a policy with memory cannot be an opponent yet: nobody keeps what it remembers")
        self.policy = policy
        self.actor = kernel_actor(policy, 0)
        self.refresh()

    def refresh(self) -> None:
        """Take the weights of now."""
        if self.actor is not None:
            self.actor.net.refresh()

    @torch.no_grad()
    def moves(self, view: View, noise: Noise, *, deterministic: bool = False) -> np.ndarray:
        """[n] what the world takes, drawn from the policy or its likeliest."""
        if self.actor is not None:
            return kernel_actions(self.actor, view, noise.kernel, deterministic=deterministic)
        mask = None if view.action_mask is None else torch.from_numpy(view.action_mask)
        seen = PolicyInput(obs={name: torch.from_numpy(x) for name, x in view.obs.items()}, action_mask=mask)
        out = self.policy.act(seen, generator=noise.torch, deterministic=deterministic)
        return self.policy.env_action(out.action.numpy())


@dataclass(slots=True)
class Past:
    """The learner as it was after `step` env steps."""

    step: int
    weights: dict[str, np.ndarray]
    rating: float
    games: int
    player: Player | None = None


class Pool:
    """`Opponents` for N boards: the learner's own policy and what it was before. All of it is in `state`."""

    def __init__(self, policy: Policy, boards: int, config: SelfPlayConfig | None = None) -> None:
        self.policy, self.config = policy, config or SelfPlayConfig()
        self._live = Player(policy)
        self._who = np.full(boards, LATEST, np.int64)
        """The step of the past self on the other seat, or LATEST."""
        self.past: list[Past] = []
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Forget everybody but the learner as it is now, which is the first of its past selves."""
        self._rng = np.random.default_rng(seed_for("opponents", seed))
        self._noise = Noise(seed)
        self.rating, self.steps, self.past = START, 0, []
        self._who[:] = LATEST
        self.keep()

    def keep(self) -> None:
        """Add the learner as it is now to its past selves, rated as it is."""
        weights = weights_of(self.policy)
        self.past = [*(one for one in self.past if one.step != self.steps), Past(self.steps, weights, self.rating, 0)]
        if len(self.past) > self.config.keep:
            steps = [one.step for one in self.past]
            spans = [after - before for before, after in zip(steps, steps[2:], strict=False)]
            gone = self.past.pop(1 + spans.index(min(spans)))
            # A game against who is gone goes on against the next one.
            self._who[self._who == gone.step] = min(one.step for one in self.past if one.step > gone.step)

    def passed(self, steps: int) -> None:
        """The learner has taken this many steps more; keep it if it is time."""
        before, self.steps = self.steps, self.steps + steps
        if before // self.config.every < self.steps // self.config.every:
            self.keep()
        # The learner's weights change between rollouts, and nobody says when.
        self._live.refresh()

    def meet(self, streams: np.ndarray) -> None:
        """Choose who plays in `streams`."""
        n = len(streams)
        steps = np.array([one.step for one in self.past])
        chosen = steps[self._rng.choice(len(steps), size=n, p=self.odds())]
        self._who[streams] = np.where(self._rng.random(n) < self.config.latest, LATEST, chosen)

    def odds(self) -> np.ndarray:
        """How likely each past self is to be chosen, if one of them is."""
        if self.config.choice == "uniform":
            return np.full(len(self.past), 1.0 / len(self.past))
        scores = np.array([expected(one.rating, self.rating) for one in self.past])
        return scores / scores.sum()

    def reply(self, view: View, streams: np.ndarray) -> np.ndarray:
        """[n] moves; each opponent answers all its boards at once."""
        who = self._who[streams]
        out = np.empty(len(streams), np.int64)
        for one in np.unique(who):
            rows = np.flatnonzero(who == one)
            mask = None if view.action_mask is None else view.action_mask[rows]
            part = View(obs={name: x[rows] for name, x in view.obs.items()}, action_mask=mask)
            out[rows] = self.player(int(one)).moves(part, self._noise)
        return out

    def score(self, streams: np.ndarray, score: np.ndarray) -> None:
        """Rate both after each game; one against itself says nothing."""
        by_step = {one.step: one for one in self.past}
        for who, points in zip(self._who[streams].tolist(), score.tolist(), strict=True):
            if who != LATEST:
                one = by_step[who]
                self.rating, one.rating = after_game(self.rating, one.rating, (points + 1.0) / 2.0, self.config.elo_k)
                one.games += 1

    def player(self, step: int) -> Player:
        """The learner now (LATEST), or the past self of a step."""
        if step == LATEST:
            return self._live
        one = next(past for past in self.past if past.step == step)
        if one.player is None:
            one.player = player_of(self.policy, one.weights)
        return one.player

    def table(self) -> str:
        """The learner and its past selves by rating, strongest first."""
        rows = [(self.rating, "now", self.steps, "")]
        rows += [(one.rating, "", one.step, f"{one.games:,}") for one in self.past]
        head = f"{'rating':>7}  {'env steps':>12}  {'games':>8}"
        return "\n".join(
            [head, *(f"{r:7.0f}  {s:12,}  {g:>8}  {n}".rstrip() for r, n, s, g in sorted(rows, reverse=True))]
        )

    def state(self) -> dict[str, Any]:
        """Everything that moves: weights, ratings, whoever plays where, and the randomness."""
        past = {
            str(i): {"step": one.step, "rating": one.rating, "games": one.games, "weights": dict(one.weights)}
            for i, one in enumerate(self.past)
        }
        return {
            "past": past,
            "who": self._who.copy(),
            "rating": self.rating,
            "steps": self.steps,
            "rng": rng_to_json(self._rng),
            "noise": self._noise.state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Go on from where `state` was taken."""
        kept = [state["past"][str(i)] for i in range(len(state["past"]))]
        self.past = [
            Past(
                int(one["step"]),
                {name: np.array(x) for name, x in one["weights"].items()},
                float(one["rating"]),
                int(one["games"]),
            )
            for one in kept
        ]
        self._who = np.array(state["who"], np.int64)
        self.rating, self.steps = float(state["rating"]), int(state["steps"])
        self._rng = rng_from_json(state["rng"])
        self._noise.set_state(state["noise"])
        self._live.refresh()


def weights_of(policy: Policy) -> dict[str, np.ndarray]:
    """A copy of a policy's weights and statistics."""
    return {name: x.detach().cpu().numpy().copy() for name, x in policy.state_dict().items()}


def player_of(policy: Policy, weights: Mapping[str, np.ndarray]) -> Player:
    """A player of `policy`'s architecture with other weights."""
    past = copy.deepcopy(policy)
    past.load_state_dict({name: torch.from_numpy(np.array(x)) for name, x in weights.items()})
    return Player(past)
