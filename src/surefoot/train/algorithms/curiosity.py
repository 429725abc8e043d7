"""Curiosity: adds an exploration bonus (RND or ICM) to the rewards of a rollout, and trains the bonus networks.

The bonus is episodic: it stops at the end of an episode, because one critic values both rewards. (RND's paper has a second
critic for the bonus, which looks past the ends.)
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.data.rollout import Rollout
from surefoot.data.seeds import seed_for
from surefoot.data.spaces import ActionSpace, ObservationSpace
from surefoot.envs.api import Arrays
from surefoot.errors import CheckpointIncompatible
from surefoot.learn.config import PPOConfig
from surefoot.learn.optimizer import Optimizer
from surefoot.learn.schedule import value_at
from surefoot.nets.curiosity import InverseForward, RandomDistillation
from surefoot.nets.torsos import Flatten
from surefoot.train.collect.reward import RewardScaler
from surefoot.train.config import CollectConfig

# Limit of normalized observations, from RND's paper: without it one extreme number can dominate the bonus.
OBS_CLIP = 5.0


class Curiosity:
    """The bonus networks, their optimizer, observation statistics and the scale of the bonus."""

    def __init__(
        self,
        config: CollectConfig,
        observation: ObservationSpace,
        action: ActionSpace,
        *,
        streams: int,
        gamma: float,
        seed: int = 0,
        device: str | torch.device = "cpu",
    ) -> None:
        self.config, self.device = config, torch.device(device)
        self.flatten = Flatten(observation, normalize=True, clip=OBS_CLIP).to(self.device)
        size, hidden = self.flatten.size, config.curiosity_hidden
        net = (
            RandomDistillation(size, hidden, seed=seed)
            if config.curiosity == "rnd"
            else InverseForward(size, hidden, action, seed=seed)
        )
        self.net = net.to(self.device)
        self.optimizer = Optimizer(self.net.parameters(), PPOConfig(optimizer="adam"))
        # Only for the shuffling below, so that acting draws the same numbers with and without curiosity.
        self.generator = torch.Generator().manual_seed(seed_for("curiosity-shuffle", seed))
        self.scaler = RewardScaler(streams, gamma=gamma, clip=math.inf)
        self.seconds = 0.0
        """Time that the last rollout took."""

    def add_bonus(self, rollout: Rollout, after: Arrays, *, progress: float = 0.0, updates: int = 0) -> Rollout:
        """Return the rollout with reward = ext_coef · reward + curiosity_coef · bonus; then train the networks on it.

        `after` ({name: [N, …]}) are the observations after its last step. A step that ended an episode has no bonus: its
        successor is not in the rollout, and the next row belongs to another episode.
        """
        begin, config = time.perf_counter(), self.config
        counts = rollout.valid & ~rollout.ended
        rows = self._rows(rollout, after, counts)
        action = torch.from_numpy(rollout.action).to(self.device).flatten(0, 1)
        now, then = rows[:-1].flatten(0, 1), rows[1:].flatten(0, 1)
        with torch.no_grad():
            raw = self.net.surprise(now, action, then).cpu().numpy().reshape(counts.shape)
        raw = np.where(counts, raw, 0.0).astype(np.float64)
        bonus = self.scaler.scale(raw, rollout.ended, rollout.valid)
        # The bonus is computed before the networks learn: otherwise it would reward what they have just seen.
        loss = self._learn(now, action, then, torch.from_numpy(np.flatnonzero(counts)))
        coef = value_at(config.curiosity_coef, progress=progress, updates=updates)
        reward = config.ext_coef * rollout.reward + np.where(rollout.valid, coef * bonus, 0.0)
        stats = {
            "bonus_mean": float(bonus[counts].mean()) if counts.any() else 0.0,
            "bonus_max": float(bonus.max(initial=0.0)),
            "curiosity_loss": loss,
            "curiosity_coef": coef,
        }
        self.seconds = time.perf_counter() - begin
        return replace(rollout, reward=reward.astype(np.float32), stats={**rollout.stats, **stats})

    def _rows(self, rollout: Rollout, after: Arrays, counts: np.ndarray) -> Tensor:
        """Return normalized observations, [T + 1, N, size], after adding those that count to the statistics."""
        steps, streams = counts.shape
        flat = {name: np.concatenate([x, after[name][None]]) for name, x in rollout.obs.items()}
        flat = {name: x.reshape(-1, *x.shape[2:]) for name, x in flat.items()}
        reached = np.concatenate([np.zeros((1, streams), bool), counts]).ravel()
        if reached.any():
            self.flatten.absorb({name: x[reached] for name, x in flat.items()})
        with torch.no_grad():
            rows = self.flatten({name: torch.from_numpy(x).to(self.device) for name, x in flat.items()})
        return rows.view(steps + 1, streams, -1)

    def _learn(self, now: Tensor, action: Tensor, then: Tensor, rows: Tensor) -> float:
        """Take a few gradient steps on a share of `rows` and return the mean loss."""
        # More steps would make everything familiar before the policy could use the bonus.
        config, losses = self.config, list[float]()
        order = rows[torch.randperm(len(rows), generator=self.generator)]
        order = order[: math.ceil(config.curiosity_share * len(order))].to(self.device)
        for part in order.chunk(config.curiosity_minibatches):
            if not len(part):
                continue
            self.optimizer.zero_grad()
            loss = self.net.loss(now[part], action[part], then[part])
            loss.backward()
            # One step with a loss that is not finite would destroy the networks; the rollout's other parts still count.
            if bool(torch.isfinite(loss)):
                self.optimizer.step(config.curiosity_lr)
                losses.append(float(loss.detach()))
        return float(np.mean(losses)) if losses else 0.0

    def state(self) -> dict[str, Any]:
        """Return everything that changes, and RND's fixed target."""
        return {
            "weights": {name: x.detach().clone() for name, x in self.net.state_dict().items()},
            "normalizer": {name: x.clone() for name, x in self.flatten.state_dict().items()},
            "optimizer": {name: x.clone() for name, x in self.optimizer.tensors().items()},
            "generator": self.generator.get_state(),
            "scaler": self.scaler.state(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from `state`; with another number of streams the running returns start at 0."""
        for module, part in ((self.net, "weights"), (self.flatten, "normalizer")):
            saved = {name: torch.as_tensor(x) for name, x in state[part].items()}
            current = module.state_dict()
            if set(current) != set(saved) or any(current[name].shape != saved[name].shape for name in current):
                raise CheckpointIncompatible(
                    f"the checkpoint's curiosity does not match curiosity={self.config.curiosity} and curiosity_hidden="
                    f"{self.config.curiosity_hidden} for these observations; use the settings it was saved with"
                )
            module.load_state_dict(saved)
        self.optimizer.load({name: torch.as_tensor(x) for name, x in state["optimizer"].items()})
        self.generator.set_state(torch.as_tensor(state["generator"]))
        # The running returns belong to streams, so they are only valid for the same number of them.
        same = len(state["scaler"]["running"]) == len(self.scaler.running)
        running = {} if same else {"running": self.scaler.running}
        self.scaler.set_state({**state["scaler"], **running})
