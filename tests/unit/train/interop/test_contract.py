"""The parts of a contract that do not depend on the format."""

from __future__ import annotations

import math

import pytest
import torch

from surefoot.data.spaces import Box, Discrete
from surefoot.envs.make import make_world
from surefoot.errors import PolicyError
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.onnx_builder import ExportPort
from surefoot.train.interop.contract import contract_of, require_proof, takes_masks, weights_hash
from surefoot.train.interop.onnx_check import Verification

OBS = {"obs": Box((2,), (-math.inf, 0.0), 1.0)}


def test_a_contract_has_the_range_of_each_input_and_no_infinity():
    ports = [ExportPort("obs", "float32", (2,)), ExportPort("action_mask", "bool", (3,))]
    contract = contract_of(
        ActorCritic(OBS, Discrete(3, start=4)), ports, [ExportPort("action", "int32", ())], Verification(observations=7),
        model={"file": "x"}, origin={"run": "r"}, env="", masks=True, runtime="cc 1",
    )  # fmt: skip
    assert contract["inputs"][0] == {
        "name": "obs", "dtype": "float32", "shape": [2], "meaning": "observation", "low": [None, 0.0], "high": 1.0,
    }  # fmt: skip
    assert contract["inputs"][1]["meaning"].startswith("True for allowed choices")
    assert (contract["outputs"][0]["low"], contract["outputs"][0]["high"]) == (4, 6)
    assert (contract["proof"]["observations"], contract["proof"]["runtime"]) == (7, "cc 1")
    assert (contract["from"]["run"], contract["inside"]["action_mask"]) == ("r", True)


def test_the_hash_of_the_weights_changes_with_one_of_them():
    policy = ActorCritic(OBS, Discrete(3))
    before = weights_hash(policy)
    assert weights_hash(ActorCritic(OBS, Discrete(3))) == before
    with torch.no_grad():
        policy.network.value_out.bias.add_(1e-6)
    assert weights_hash(policy) != before


def test_masks_are_taken_where_the_world_has_them():
    masked, plain = make_world("surefoot/Masked-v0", 2), make_world("CartPole-v1", 2)
    policy = ActorCritic(masked.observation, masked.action)
    assert [takes_masks(policy, world) for world in (masked, plain, None)] == [True, False, False]


def test_a_difference_or_a_wrong_choice_is_refused():
    require_proof(Verification(difference={"value": 1e-6}), "ONNX model")
    for wrong in (
        Verification(difference={"value": 2e-5}),
        Verification(wrong_choices=1),
        Verification(difference={"value": math.nan}),
    ):
        with pytest.raises(PolicyError, match="outputs of the ONNX model differ"):
            require_proof(wrong, "ONNX model")
