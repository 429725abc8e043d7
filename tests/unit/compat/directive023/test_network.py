"""The network of served policies: shapes, first probabilities, and the defect of stateful layers."""

import torch

from surefoot.compat.directive023.network import EmbeddingNetwork


def a_network(**changes):
    torch.manual_seed(0)
    return EmbeddingNetwork({"a": 3, "b": 2}, 4, 16, **changes)


def test_parts_are_concatenated_to_logits_and_a_value():
    logits, value = a_network()({"a": torch.ones(5, 3), "b": torch.zeros(5, 2)})
    assert (logits.shape, value.shape) == ((5, 4), (5,))


def test_all_actions_are_almost_equally_likely_at_first():
    logits, _ = a_network()({"a": torch.randn(50, 3), "b": torch.randn(50, 2)})
    assert torch.softmax(logits, 1).sub(0.25).abs().max() < 0.02


def test_only_stateful_layers_compute_differently_in_training():
    obs = {"a": torch.randn(8, 3), "b": torch.randn(8, 2)}
    for stateful in (False, True):
        network = a_network(stateful=stateful)
        acting, learning = network.eval()(obs)[0], network.train()(obs)[0]
        assert torch.equal(acting, learning) != stateful
