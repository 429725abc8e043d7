"""Modules of the user's own inside a policy, as ONNX: with the answers of torch, or one sentence."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from surefoot.data.spaces import Box, Discrete, Hybrid
from surefoot.errors import PolicyError
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.train.interop.onnx_export import export_onnx

pytest.importorskip("onnxruntime")
OBS = {"value": Box((4,)), "screen": Box((6, 6), 0, 255, "uint8")}


class Attention(nn.Module):
    """Layers that the policy's own writer does not know."""

    def __init__(self) -> None:
        super().__init__()
        self.inward, self.norm = nn.Linear(4, 8), nn.LayerNorm(8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.conv = nn.Conv2d(1, 2, 3)

    def forward(self, obs):
        x = self.norm(torch.tanh(self.inward(obs["value"])))
        tokens = torch.stack([x, x.flip(-1), x * 2.0], dim=1)
        image = self.conv(obs["screen"].float().unsqueeze(1) / 255.0).flatten(1)
        return torch.cat([self.attention(tokens, tokens, tokens)[0].mean(1), image], dim=-1)


class Whole(nn.Module):
    """A network: head input and value."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.body = Attention()
        self.actor, self.critic = nn.Linear(40, outputs), nn.Linear(40, 1)

    def forward(self, obs):
        x = self.body(obs)
        return self.actor(x), self.critic(x).squeeze(-1)


class Branches(nn.Module):
    """A trace knows one of its branches."""

    def forward(self, obs):
        return obs["value"] * (1.0 if float(obs["value"].sum()) >= 0.0 else 2.0)


class ByNumpy(nn.Module):
    """Something that no exporter can see."""

    def forward(self, obs):
        return torch.linalg.pinv(obs["value"].unsqueeze(1)).squeeze(-1)


@pytest.mark.parametrize("net", [{}, {"memory": "gru", "memory_size": 5}, {"squash": True}], ids=str)
def test_a_torso_of_ones_own_gives_the_same_answers(net, tmp_path):
    action = Box((2,), -1.0, 2.0) if net else Hybrid((3, 2), Box((2,), -1.0, 2.0))
    policy = ActorCritic(OBS, action, NetConfig(hidden=(8,), **net), torso=Attention())
    contract = export_onnx(policy, tmp_path, origin={}, observations=200).contract
    assert max(contract["proof"]["largest_difference"].values()) <= 1e-5
    assert {port["name"] for port in contract["inputs"]} >= {"obs.value", "screen"}
    assert contract["inputs"][1]["dtype"] == "uint8"


def test_a_network_of_ones_own_gives_the_same_answers_with_masks(tmp_path):
    policy = ActorCritic(OBS, Discrete(3), network=Whole(3))
    contract = export_onnx(policy, tmp_path, origin={}, masks=True, observations=200).contract
    assert set(contract["proof"]["largest_difference"]) == {"probs", "value"}
    assert max(contract["proof"]["largest_difference"].values()) <= 1e-5


@pytest.mark.parametrize(
    ("torso", "sentence"),
    [(ByNumpy(), "torch.onnx cannot export ByNumpy: "), (Branches(), "outputs of the ONNX model differ")],
)
def test_what_torch_cannot_export_is_one_sentence_and_no_file(torso, sentence, tmp_path):
    with pytest.raises(PolicyError, match=sentence) as caught:
        export_onnx(ActorCritic({"value": Box((4,))}, Discrete(2), torso=torso), tmp_path, origin={}, observations=200)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
