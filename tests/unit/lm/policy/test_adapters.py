"""Adapters against matrix products."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from surefoot.errors import ConfigError
from surefoot.lm.policy.adapters import Adapter, adapt, adapters_in, merge, settle_adapters, targets_in


def an_adapter() -> Adapter:
    torch.manual_seed(0)
    adapter = Adapter(nn.Linear(3, 2), rank=2, alpha=4.0, generator=torch.Generator().manual_seed(0))
    nn.init.normal_(adapter.b)
    return adapter


def test_a_new_adapter_changes_nothing():
    base = nn.Linear(3, 2)
    adapter = Adapter(base, rank=2, alpha=4.0, generator=torch.Generator().manual_seed(0))
    x = torch.randn(5, 3)
    assert torch.equal(adapter(x), base(x))


def test_an_adapter_adds_alpha_over_rank_times_b_a():
    adapter, x = an_adapter(), torch.randn(5, 3)
    expected = x @ adapter.base.weight.T + adapter.base.bias + 2.0 * x @ adapter.a.T @ adapter.b.T
    assert torch.allclose(adapter(x), expected, atol=1e-6)
    adapter.on = False
    assert torch.equal(adapter(x), adapter.base(x))


def test_merging_keeps_the_output_and_leaves_plain_layers():
    model = nn.Sequential(an_adapter(), nn.ReLU())
    x = torch.randn(5, 3)
    expected = model(x)
    merge(model)
    assert type(model[0]) is nn.Linear
    assert torch.allclose(model(x), expected, atol=1e-6)


def test_settled_adapters_do_not_learn_and_a_second_stage_goes_around_them():
    model = nn.Sequential(an_adapter())
    settle_adapters(model)
    adapt(model, "0", rank=1, alpha=1.0, generator=torch.Generator().manual_seed(1))
    assert [name for name, p in model.named_parameters() if p.requires_grad and name.endswith((".a", ".b"))] == [
        "0.a",
        "0.b",
    ]
    assert len(list(adapters_in(model))) == 2
    assert targets_in(model, "all") == ["0"]


def test_an_unknown_target_is_named_with_those_there_are():
    with pytest.raises(ConfigError, match="no layer is called q_proj; this model has 0"):
        targets_in(nn.Sequential(nn.Linear(2, 2)), "q_proj")
