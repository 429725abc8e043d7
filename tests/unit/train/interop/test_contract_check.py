"""An exported policy is read back: a model or a contract that was changed afterwards is named."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from surefoot.data.spaces import Box, Discrete
from surefoot.errors import PolicyError
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.train.interop.contract_check import check_contract
from surefoot.train.interop.onnx_export import export_onnx

pytest.importorskip("onnxruntime")

ROW = {"obs": Box((4,))}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    export_onnx(ActorCritic(ROW, Discrete(3), NetConfig(hidden=(8,))), folder, origin={}, observations=40)
    return folder


@pytest.fixture
def exported(written, tmp_path):
    return Path(shutil.copytree(written, tmp_path / "copy"))


def edit(folder: Path, change: Any) -> None:
    """Apply `change` to the contract."""
    contract = json.loads((folder / "contract.json").read_text())
    change(contract)
    (folder / "contract.json").write_text(json.dumps(contract))


def test_an_export_is_as_its_contract_says(exported):
    checked = check_contract(exported)
    assert (checked.examples, checked.contract.model.file) == (2, "model.onnx")
    assert checked.worst <= 1e-6
    assert checked.runtime.startswith("onnxruntime")


@pytest.mark.parametrize(
    ("action", "net", "masks"),
    [(Discrete(3), {"memory": "gru"}, True), (Box((2,), -1.0, 1.0), {"beta": True}, False)],
)
def test_masks_memories_and_numbers_are_read_back_too(action, net, masks, tmp_path):
    policy = ActorCritic(ROW, action, NetConfig(hidden=(8,), **net))
    export_onnx(policy, tmp_path, origin={}, masks=masks, observations=40)
    assert check_contract(tmp_path).worst <= 1e-6


def test_a_model_with_one_changed_byte_is_not_the_contracts(exported):
    path = exported / "model.onnx"
    data = bytearray(path.read_bytes())
    data[-200] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(PolicyError, match="is not the model of the contract: it has .* bytes and the SHA-256"):
        check_contract(exported)


def test_a_model_of_another_policy_with_its_hash_is_refused_by_its_answers(exported, tmp_path):
    export_onnx(
        ActorCritic(ROW, Discrete(3), NetConfig(hidden=(8,)), seed=7), tmp_path / "other", origin={}, observations=40
    )
    other = json.loads((tmp_path / "other" / "contract.json").read_text())
    shutil.copy(tmp_path / "other" / "model.onnx", exported)
    edit(exported, lambda x: x.update(model=other["model"]))
    with pytest.raises(PolicyError, match=r"answers an example of the contract with \w+ .*the contract has .* apart"):
        check_contract(exported)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda x: x.update(version=2), "version"),
        (lambda x: x.update(format="other"), "format"),
        (lambda x: x.pop("inputs"), "inputs"),
        (lambda x: x["model"].update(bytes=-1), "bytes"),
        (lambda x: x["model"].update(file="../model.onnx"), "must be a file beside contract.json"),
        (lambda x: x["model"].update(file=".."), "must be a file|cannot be read"),
        (lambda x: x["model"].update(file="none.onnx"), "none.onnx cannot be read: No such file"),
        (lambda x: x["inputs"][0].update(shape=["batch", 5]), "the inputs of the model are .* the contract lists"),
        (lambda x: x["outputs"].pop(), "the outputs of the model are"),
        (lambda x: x["outputs"][0].update(dtype="float64"), "dtype"),
        (lambda x: x["examples"][0]["inputs"].update(obs=[1.0, 2.0]), r"has obs \[2\]; it must be \[4\]"),
        (lambda x: x["examples"][0]["inputs"].update(obs="word"), "no float32 numbers for 'obs'"),
        (lambda x: x["examples"][0]["outputs"].pop("value"), "no float32 numbers for 'value'"),
        (lambda x: x["examples"][0]["outputs"].update(value=[[1.0]]), r"has value \[1, 1\]"),
        (lambda x: x["examples"][0]["outputs"].update(value=float("nan")), "not a contract"),
        (lambda x: x["examples"][0]["outputs"].update(probs=[1.0, 0.0, 0.0]), "an example of the contract with probs"),
    ],
)
def test_a_changed_contract_is_named(exported, change, sentence):
    edit(exported, change)
    with pytest.raises(PolicyError, match=sentence):
        check_contract(exported)


def test_what_is_no_export_or_no_model_is_a_sentence(exported, tmp_path):
    with pytest.raises(PolicyError, match="contract.json cannot be read: No such file"):
        check_contract(tmp_path / "nowhere")
    (exported / "model.onnx").write_bytes(b"no model")
    digest = hashlib.sha256(b"no model").hexdigest()
    edit(exported, lambda x: x["model"].update(bytes=8, sha256=digest))
    with pytest.raises(PolicyError, match="onnxruntime cannot load"):
        check_contract(exported)
    (exported / "contract.json").write_bytes(b"\xff{")
    with pytest.raises(PolicyError, match="is not a contract of an exported policy"):
        check_contract(exported)
