"""The KL in the reward has the right mean and the right credit; the controller holds its target."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from surefoot.errors import ConfigError
from surefoot.lm.rewards.kl_penalty import AdaptiveBeta, FixedBeta, kl_rewards, require_kl


def test_k1_costs_beta_times_the_log_ratio_and_padding_nothing():
    log_prob, reference = np.array([[-1.0, -2.0], [-0.5, -9.0]]), np.array([[-2.0, -2.5], [-1.5, 7.0]])
    valid = np.array([[True, True], [True, False]])
    found = kl_rewards(log_prob, reference, valid, beta=0.1)
    assert np.allclose(found, [[-0.1, -0.05], [-0.1, 0.0]])


def test_exact_leaves_each_token_its_own_k1_and_the_kl_of_all_that_follow():
    rng = np.random.default_rng(0)
    log_prob, reference, exact = rng.normal(size=(3, 5, 2))
    valid = np.ones((5, 2), bool)
    valid[3:, 1] = False
    beta, decay = 0.3, 0.7
    reward = kl_rewards(log_prob, reference, valid, beta=beta, exact=exact, decay=decay)
    for n, length in ((0, 5), (1, 3)):
        for t in range(length):
            summed = sum(decay ** (s - t) * reward[s, n] for s in range(t, length))
            own = -beta * (log_prob - reference)[t, n]
            later = sum(-beta * decay ** (s - t) * exact[s, n] for s in range(t + 1, length))
            assert summed == pytest.approx(own + later, abs=1e-12)


def test_both_ways_have_the_same_mean_gradient_on_two_tokens():
    # All sequences of two tokens from a vocabulary of three, weighted by their probability.
    rng = np.random.default_rng(1)
    logits, other = rng.normal(size=(2, 4, 3))
    p, q = (np.exp(x) / np.exp(x).sum(-1, keepdims=True) for x in (logits, other))
    exact = (p * np.log(p / q)).sum(-1)
    sums = {"k1": np.zeros((4, 3)), "exact": np.zeros((4, 3))}
    for a, b in itertools.product(range(3), repeat=2):
        weight = p[0, a] * p[1 + a, b]
        states, tokens = [0, 1 + a], [a, b]
        lp = np.array([[np.log(p[s, t])] for s, t in zip(states, tokens, strict=True)])
        lq = np.array([[np.log(q[s, t])] for s, t in zip(states, tokens, strict=True)])
        for name in sums:
            kl = None if name == "k1" else exact[states][:, None]
            reward = kl_rewards(lp, lq, np.ones((2, 1), bool), beta=1.0, exact=kl)
            for t, (s, token) in enumerate(zip(states, tokens, strict=True)):
                score = -p[s].copy()
                score[token] += 1.0
                sums[name][s] += weight * reward[t:].sum() * score
    assert np.allclose(sums["k1"], sums["exact"], atol=1e-12)


@pytest.mark.parametrize("kl", ["k2", "k3"])
def test_an_estimator_without_an_optimum_is_refused_in_the_reward(kl):
    with pytest.raises(ConfigError, match="no optimum"):
        require_kl("reward", kl)


def test_k1_is_refused_in_the_loss():
    with pytest.raises(ConfigError, match="zero on average"):
        require_kl("loss", "k1")


def test_the_controller_raises_beta_beyond_its_target_and_lowers_it_below():
    beta = AdaptiveBeta(0.1, target=6.0, horizon=100)
    beta.see(12.0, 10)  # the error is held to 0.2
    assert beta.beta == pytest.approx(0.1 * (1 + 0.2 * 0.1))
    beta.see(3.0, 10)
    assert beta.beta == pytest.approx(0.1 * 1.02 * 0.98)
    beta.see(6.0, 10)
    assert beta.beta == pytest.approx(0.1 * 1.02 * 0.98)
    fixed = FixedBeta(0.1)
    fixed.see(99.0, 10)
    assert fixed.beta == 0.1
