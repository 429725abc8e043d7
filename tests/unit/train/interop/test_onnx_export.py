"""Exported policies: proven, described, refused when they differ."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
import torch

from surefoot.data.spaces import Box, Discrete, Hybrid, MultiDiscrete
from surefoot.envs.make import make_world
from surefoot.errors import PolicyError
from surefoot.nets import onnx as writer
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.train.interop.onnx_check import verify
from surefoot.train.interop.onnx_export import export_onnx

onnxruntime = pytest.importorskip("onnxruntime")

ROW = {"obs": Box((4,))}
PICTURE = {"camera": Box((12, 10, 3), 0, 255, "uint8"), "state": Box((3,), -5.0, 5.0)}
SHAPES = [
    (ROW, Discrete(3), {}, False),
    (ROW, Discrete(3), {"memory": "gru", "normalize_obs": True}, True),
    (ROW, Box((2,), -1.0, 2.0), {"memory": "lstm", "squash": True}, False),
    (ROW, MultiDiscrete((3, 2)), {"memory": "lstm", "shared": True}, True),
    (ROW, Hybrid((3, 2), Box((2,), -2.0, 2.0)), {"beta": True}, True),
    (ROW, Box((2, 2), -1.0, 2.0), {"gsde": True, "hidden": ()}, False),
    (PICTURE, Discrete(4), {"normalize_obs": True}, False),
    ({"screen": Box((36, 36), 0, 255, "uint8")}, Discrete(4), {"cnn": "nature", "shared": True}, False),
    ({"frames": Box((4, 36, 40), 0, 255, "uint8")}, Hybrid((2,), Box((1,), -1.0, 1.0)), {"memory": "gru"}, False),
    ({"screen": Box((8, 8), 0, 255, "uint8")}, Discrete(4), {"cnn": "off"}, False),
]


def trained(observation, action, **net):
    policy = ActorCritic(observation, action, NetConfig(**net))
    torch.manual_seed(1)
    with torch.no_grad():
        for weight in policy.parameters():
            weight.add_(0.2 * torch.randn_like(weight) / max(1.0, weight.shape[-1] ** 0.5))
    rng = np.random.default_rng(0)
    for torso in policy.torsos:
        torso.absorb({name: rng.uniform(0, 9, (64, *box.shape)).astype(box.dtype) for name, box in observation.items()})
    return policy


@pytest.mark.parametrize(("observation", "action", "net", "masks"), SHAPES, ids=lambda value: str(value)[:40])
def test_policies_of_every_shape_come_back_alike(observation, action, net, masks, tmp_path):
    done = export_onnx(trained(observation, action, **net), tmp_path, origin={}, masks=masks)
    proof = done.contract["proof"]
    assert proof["observations"] == 1000
    assert max(proof["largest_difference"].values()) <= 1e-5
    assert json.loads((tmp_path / "contract.json").read_text()) == done.contract


def test_the_contract_says_what_the_file_is(tmp_path):
    world = make_world("CartPole-v1", 20)
    policy = trained(world.observation, world.action)
    contract = export_onnx(policy, tmp_path, origin={"run": "walk"}, env="CartPole-v1", world=world).contract
    data = (tmp_path / "model.onnx").read_bytes()
    assert contract["model"]["sha256"] == hashlib.sha256(data).hexdigest()
    assert contract["from"] | {"surefoot": ""} == {"run": "walk", "env": "CartPole-v1", "surefoot": ""}
    (obs,) = contract["inputs"]
    assert (obs["name"], obs["dtype"], obs["shape"]) == ("obs", "float32", ["batch", 4])
    assert [c["unit"] for c in obs["components"]] == ["m", "m/s", "rad", "rad/s"]
    assert obs["low"][1] is None
    assert [port["name"] for port in contract["outputs"]] == ["action", "probs", "value"]
    assert contract["outputs"][0]["high"] == 1
    assert contract["proof"]["shown_by_the_world"] == 500
    assert contract["inside"]["action_mask"] is False


def test_the_examples_of_a_contract_are_what_the_model_answers(tmp_path):
    contract = export_onnx(trained(ROW, Discrete(3), memory="gru"), tmp_path, origin={}).contract
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    names = [port.name for port in session.get_outputs()]
    assert len(contract["examples"]) == 3
    for example in contract["examples"]:
        answers = session.run(None, {name: np.array([x], np.float32) for name, x in example["inputs"].items()})
        for name, answer in zip(names, answers, strict=True):
            np.testing.assert_allclose(answer[0], example["outputs"][name], atol=1e-6)


def test_a_world_with_masks_makes_a_model_with_a_mask(tmp_path):
    world = make_world("surefoot/Masked-v0", 20)
    contract = export_onnx(trained(world.observation, world.action), tmp_path, origin={}, world=world).contract
    assert contract["inputs"][-1]["name"] == "action_mask"


def test_a_model_that_answers_otherwise_is_not_written(tmp_path, monkeypatch):
    policy = trained(ROW, Discrete(3), normalize_obs=True)
    forget = writer._ModuleWriter._flatten

    def without_statistics(self, torso, parts):
        kept, torso.normalizer = torso.normalizer, None
        try:
            return forget(self, torso, parts)
        finally:
            torso.normalizer = kept

    monkeypatch.setattr(writer._ModuleWriter, "_flatten", without_statistics)
    with pytest.raises(PolicyError, match="outputs of the ONNX model differ"):
        export_onnx(policy, tmp_path, origin={})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wrong", ["action", "probs", "value", "memory_out", "nan"])
def test_a_proof_sees_a_wrong_answer_in_any_output(wrong):
    policy = trained(ROW, Discrete(3), memory="gru")
    session = onnxruntime.InferenceSession(writer.policy_graph(policy)[0].SerializeToString())

    class Off:
        def get_outputs(self):
            return session.get_outputs()

        def run(self, names, feed):
            answers = dict(zip([p.name for p in session.get_outputs()], session.run(None, feed), strict=True))
            match wrong:
                case "action":
                    answers["action"] = (answers["action"] + 1) % 3
                case "nan":
                    answers["value"] = answers["value"] * np.nan
                case _:
                    answers[wrong] = answers[wrong] + np.float32(3e-5)
            return list(answers.values())

    assert verify(policy, session, None, masks=False, observations=100).holds
    assert not verify(policy, Off(), None, masks=False, observations=100).holds
