"""A policy that knows candidates by their descriptions only."""

from __future__ import annotations

import numpy as np
import torch

from surefoot.core.batch import Batch
from surefoot.decide.policy.described import DescribedPolicy
from surefoot.nets.policy import PolicyInput
from surefoot.server.decisions.numpy_network import Described, probabilities


def drawn(seed: int = 0, n: int = 3, k: int = 4, dim: int = 6):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, dim)).astype(np.float32), rng.standard_normal((n, k, dim)).astype(np.float32)


def trained_at_random(dim: int = 6) -> DescribedPolicy:
    policy = DescribedPolicy(dim, prior=3.0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in policy.parameters():
            weight += 0.3 * torch.randn(weight.shape, generator=generator)
    return policy


def chances(policy: DescribedPolicy, x: np.ndarray, d: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    obs = {"obs": torch.tensor(x), "candidates": torch.tensor(d)}
    seen = PolicyInput(obs=obs, action_mask=None if mask is None else torch.tensor(mask))
    return policy.act(seen, generator=torch.Generator()).distribution.params()["probs"].detach().numpy()


def test_untrained_it_is_the_softmax_of_cosines():
    x, d = drawn()
    cosine = np.einsum("nd,nkd->nk", x, d) / np.linalg.norm(x, axis=1)[:, None] / np.linalg.norm(d, axis=2)
    expected = np.exp(5.0 * cosine) / np.exp(5.0 * cosine).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(chances(DescribedPolicy(6), x, d), expected, rtol=1e-4)


def test_the_order_of_candidates_means_nothing():
    policy, (x, d) = trained_at_random(), drawn()
    order = np.array([2, 0, 3, 1])
    np.testing.assert_allclose(chances(policy, x, d[:, order]), chances(policy, x, d)[:, order], rtol=1e-5)


def test_what_is_masked_is_never_chosen_and_padding_changes_nothing():
    policy, (x, d) = trained_at_random(), drawn()
    padded = np.concatenate([d, np.zeros((3, 2, 6), np.float32)], axis=1)
    mask = np.array([[True] * 4 + [False] * 2] * 3)
    found = chances(policy, x, padded, mask)
    assert (found[:, 4:] == 0).all()
    np.testing.assert_allclose(found[:, :4], chances(policy, x, d), rtol=1e-5)


def test_the_service_answers_with_the_same_digits():
    policy, (x, d) = trained_at_random(), drawn()
    net = Described({name: weight.detach().numpy() for name, weight in policy.state_dict().items()})
    logits = net.answer([{"obs": x[n], "candidates": d[n][: n + 2]} for n in range(3)])
    for n in range(3):
        expected = chances(policy, x[n : n + 1], d[n : n + 1, : n + 2])[0]
        np.testing.assert_allclose(probabilities(logits[n], None), expected, atol=1e-5)
    value = policy.value(PolicyInput(obs={"obs": torch.tensor(x)})).detach().numpy()
    np.testing.assert_allclose(net.values(x), value, atol=1e-5)


def test_learning_asks_about_what_acting_did():
    policy, (x, d) = trained_at_random(), drawn()
    obs = {"obs": torch.tensor(x), "candidates": torch.tensor(d)}
    did = policy.act(PolicyInput(obs=obs), generator=torch.Generator().manual_seed(0))
    zeros = torch.zeros(1, 3)
    batch = Batch(
        obs={name: part[None] for name, part in obs.items()},
        action=did.action[None],
        log_prob=did.log_prob[None],
        value=zeros,
        advantage=zeros,
        target=zeros,
    )
    torch.testing.assert_close(policy.evaluate(batch).log_prob[0], did.log_prob)
