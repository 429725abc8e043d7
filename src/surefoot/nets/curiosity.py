"""Novelty bonuses: prediction error on new states (RND), or on the effect of an action (ICM)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from surefoot.data.seeds import seed_for
from surefoot.data.spaces import ActionSpace, Box, Hybrid, choice_sizes
from surefoot.errors import ConfigError
from surefoot.nets.torsos import layer, mlp

# Outputs of RND's two networks and of ICM's encoder. For rows of numbers; the papers use 512 and 288 for Atari frames.
FEATURES = 32
FORWARD_SHARE = 0.2
"""β of ICM's objective (0.2 in Pathak et al. 2017): the forward model's share of the loss; the inverse model's is 1 - β."""


class RandomDistillation(nn.Module):
    """RND (Burda et al. 2018): ‖predictor(s') - target(s')‖², where the target is random and never learns.

    The predictor has learned the target's output for visited states only. The target is a deterministic function of s', so
    the error of a state that keeps being visited goes to 0, however random the step to it was.
    """

    def __init__(self, size: int, hidden: Sequence[int], *, seed: int) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_for("curiosity-weights", seed))
            self.target = _network(size, hidden, FEATURES)
            self.predictor = _network(size, hidden, FEATURES)
        self.target.requires_grad_(False)

    def surprise(self, rows: Tensor, action: Tensor, after: Tensor) -> Tensor:
        """Return the mean squared error over the target's outputs."""
        return (self.predictor(after) - self.target(after)).square().mean(dim=-1)

    def loss(self, rows: Tensor, action: Tensor, after: Tensor) -> Tensor:
        """Return the mean of `surprise` over all steps."""
        return self.surprise(rows, action, after).mean()


class InverseForward(nn.Module):
    """ICM (Pathak et al. 2017): the error of a model that predicts the features of s' from those of s and the action.

    The encoder learns only from the inverse model, which predicts the action from s and s'. So it represents what actions
    change, and the forward model cannot make its task easy by constant features.
    """

    def __init__(self, size: int, hidden: Sequence[int], action: ActionSpace, *, seed: int) -> None:
        super().__init__()
        if isinstance(action, Hybrid):
            raise ConfigError(
                "curiosity='icm' does not support hybrid actions; use curiosity='rnd', which does not read actions"
            )
        self.action, self.choices = action, list(choice_sizes(action))
        inputs = action.size if isinstance(action, Box) else sum(self.choices)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_for("curiosity-weights", seed))
            self.encoder = _network(size, hidden, FEATURES)
            self.inverse = _network(2 * FEATURES, hidden[-1:], inputs)
            self.forward_model = _network(FEATURES + inputs, hidden[-1:], FEATURES)

    def surprise(self, rows: Tensor, action: Tensor, after: Tensor) -> Tensor:
        """Return half the squared error of the predicted features (eq. 6, divided by their number)."""
        return self._surprise(self.encoder(rows), action, self.encoder(after))

    def loss(self, rows: Tensor, action: Tensor, after: Tensor) -> Tensor:
        """Return (1 - β) L_inverse + β L_forward."""
        before, then = self.encoder(rows), self.encoder(after)
        guess = self.inverse(torch.cat([before, then], dim=-1))
        forward = self._surprise(before.detach(), action, then.detach()).mean()
        return (1.0 - FORWARD_SHARE) * self._misses(guess, action) + FORWARD_SHARE * forward

    def _surprise(self, before: Tensor, action: Tensor, then: Tensor) -> Tensor:
        row = action.reshape(len(action), -1)  # the numbers, or one-hot rows side by side
        if self.choices:
            columns = zip(row.long().unbind(dim=-1), self.choices, strict=True)
            row = torch.cat([functional.one_hot(column, size) for column, size in columns], -1)
        expected = self.forward_model(torch.cat([before, row.float()], dim=-1))
        return 0.5 * (expected - then).square().mean(dim=-1)

    def _misses(self, guess: Tensor, action: Tensor) -> Tensor:
        """Return the cross-entropy of the choices, or the squared error of real numbers."""
        if not self.choices:
            return functional.mse_loss(guess, action.reshape(len(action), -1).float())
        columns = action.reshape(len(action), -1).long().unbind(dim=-1)
        parts = guess.split(self.choices, dim=-1)
        each = [functional.cross_entropy(part, column) for part, column in zip(parts, columns, strict=True)]
        return torch.stack(each).sum()


def _network(inputs: int, hidden: Sequence[int], outputs: int) -> nn.Sequential:
    body = mlp(inputs, hidden, activation="relu", ortho_init=True)
    width = hidden[-1] if hidden else inputs
    return nn.Sequential(*body, layer(width, outputs, gain=math.sqrt(2.0), ortho_init=True))
