"""The KL to the reference as a cost in the reward, and the controllers of its weight β."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surefoot.errors import ConfigError

IN_REWARD = ("k1", "exact")
IN_LOSS = ("k2", "k3", "exact")


def require_kl(kl_in: str, kl: str) -> None:
    """Raise `ConfigError` for an estimator that does not work in the reward or in the loss."""
    if kl_in == "reward" and kl not in IN_REWARD:
        raise ConfigError(
            f"kl is {kl!r} with kl_in='reward'; that has no optimum π ∝ π_ref·exp(r/β): its pull grows without bound as a "
            "token becomes likelier. Use k1 or exact in the reward; use k2 and k3 in the loss"
        )
    if kl_in == "loss" and kl not in IN_LOSS:
        raise ConfigError(
            f"kl is {kl!r} with kl_in='loss'; the gradient of its mean is zero on average. Use k2, k3 or exact in the loss"
        )


def kl_rewards(
    log_prob: np.ndarray,
    reference: np.ndarray,
    valid: np.ndarray,
    *,
    beta: float,
    exact: np.ndarray | None = None,
    decay: float = 1.0,
) -> np.ndarray:
    """Return the cost of each token, [T, N].

    k1:     r_t = -β k_t                                    with k_t = log π(a_t) - log ref(a_t)
    exact:  r_t = -β (k_t - γλ (k_{t+1} - KL_{t+1}))        with KL_t over the whole vocabulary

    The sampled k_t must stay for the token itself: it carries the gradient of its KL. For later tokens only the mean of k
    matters, which is KL. In the sum with weights (γλ)^l the second line leaves exactly that: k of the token, KL of all
    that follow. Both have the same mean; the second has less noise. `decay` is γλ.
    """
    k = np.where(valid, log_prob - reference, 0.0)
    if exact is None:
        return -beta * k
    noise = np.where(valid, k - exact, 0.0)
    following = np.concatenate([noise[1:], np.zeros_like(noise[:1])])
    return np.where(valid, -beta * (k - decay * following), 0.0)


@dataclass(slots=True)
class FixedBeta:
    """A constant weight."""

    beta: float

    def see(self, kl: float, responses: int) -> None:
        """Do nothing."""


@dataclass(slots=True)
class AdaptiveBeta:
    """A weight that keeps the KL of a response at `target` nats (Ziegler et al. 2019, §2.2).

    β ← β (1 + clip(KL/target - 1, ±0.2) · responses/horizon)
    """

    beta: float
    target: float
    horizon: int

    def see(self, kl: float, responses: int) -> None:
        """Adapt to a rollout of `responses` responses with a mean KL of `kl` nats per response."""
        error = min(max(kl / self.target - 1.0, -0.2), 0.2)
        self.beta *= 1.0 + error * responses / self.horizon
