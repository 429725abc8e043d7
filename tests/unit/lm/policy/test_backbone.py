"""The one model in memory: what is changed in it changes nothing that it says."""

from __future__ import annotations

import torch
from lm_helpers import tiny
from transformers.activations import ACT2FN

from surefoot.lm.policy.backbone import Backbone


def test_the_activation_says_what_the_one_it_stands_for_says():
    model = tiny()
    before = [module for module in model.modules() if type(module).__name__ == "NewGELUActivation"]
    backbone = Backbone(model)
    fused = [module for module in backbone.model.modules() if isinstance(module, torch.nn.GELU)]
    x = torch.linspace(-8, 8, 400)
    assert len(fused) == len(before) > 0
    assert torch.allclose(fused[0](x), ACT2FN["gelu_new"](x), atol=1e-6)
