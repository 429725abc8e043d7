"""State trees through JSON and array files and back: every kind of leaf, every odd key."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from surefoot.learn.checkpoint.checkpoint import load_checkpoint, save_checkpoint
from surefoot.learn.checkpoint.state_tree import pack_tree, parse_json, unpack_tree


def there_and_back(root: Path, tree: dict, part: str = "part") -> dict:
    save_checkpoint(root, 0, {part: tree})
    return load_checkpoint(root).parts[part]


def test_an_array_leaves_a_reference_under_its_dotted_path():
    arrays = {}
    packed = pack_tree({"rng": {"torch": np.arange(3)}, "n": (1, None)}, "", arrays)
    assert packed == {"rng": {"torch": {"$array": "rng.torch"}}, "n": {"$tuple": [1, None]}}
    assert list(arrays) == ["rng.torch"]


def test_unpacking_removes_the_arrays_it_uses():
    arrays = {"x": np.arange(3), "other": np.zeros(1)}
    assert unpack_tree({"x": {"$array": "x"}}, arrays)["x"].tolist() == [0, 1, 2]
    assert list(arrays) == ["other"]


def test_an_unknown_tag_is_refused():
    with pytest.raises(ValueError, match=r"unknown tag \$code"):
        unpack_tree({"$code": "print(1)"}, {})


@pytest.mark.parametrize("constant", [b"NaN", b"Infinity", b"-Infinity"])
def test_what_is_not_json_is_refused(constant):
    with pytest.raises(ValueError, match="is not JSON"):
        parse_json(b'{"x": ' + constant + b"}")


@pytest.mark.parametrize(
    "number", [2**127 + 5, -(2**200), 2**63, -(2**63), 2**63 - 1, 7**9000, 0], ids=lambda n: hex(n)[:12]
)
def test_integers_of_any_size_survive(tmp_path, number):
    assert there_and_back(tmp_path, {"x": number}) == {"x": number}


def test_floats_survive_to_the_last_bit_and_beyond_the_finite(tmp_path):
    numbers = [0.1, -0.0, 5e-324, 1.7976931348623157e308, float("inf"), float("-inf"), float("nan")]
    back = there_and_back(tmp_path, {"x": numbers})["x"]
    assert [x.hex() for x in back] == [x.hex() for x in numbers]


def test_keys_with_dots_and_keys_that_look_like_ours_do_not_collide(tmp_path):
    tree = {
        "a.b": np.array(1),
        "a": {"b": np.array(2), "b#2": np.array(3)},
        "a.b#2": np.array(4),
        "__metadata__": np.array(5),
        "$array": {"$int": "0x1", "$$": 2},
        "\ud800": np.array(6),
    }
    back = there_and_back(tmp_path, tree, part="weights")
    assert [back["a.b"], back["a"]["b"], back["a"]["b#2"], back["a.b#2"]] == [1, 2, 3, 4]
    assert back["__metadata__"] == 5
    assert back["\ud800"] == 6
    assert back["$array"] == {"$int": "0x1", "$$": 2}


def test_the_order_of_keys_is_kept(tmp_path):
    assert list(there_and_back(tmp_path, {"z": 1, "a": 2, "m": {}})) == ["z", "a", "m"]


def test_arrays_in_another_order_of_axes_or_bytes_keep_their_values(tmp_path):
    turned = np.arange(6).reshape(2, 3).T
    back = there_and_back(tmp_path, {"turned": turned, "big": np.array([1.5, 2.0], dtype=">f4"), "every": turned[::2]})
    assert back["turned"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert back["every"].tolist() == [[0, 3], [2, 5]]
    assert back["big"].tolist() == [1.5, 2.0]


def test_a_bfloat16_tensor_comes_back_as_one(tmp_path):
    tensor = torch.tensor([[1.0, -2.5, 3.140625], [float("inf"), 0.0, 1e-30]], dtype=torch.bfloat16).T
    back = there_and_back(tmp_path, {"x": tensor, "scalar": tensor[0, 0]})
    assert back["x"].dtype == torch.bfloat16
    assert torch.equal(back["x"], tensor)
    assert back["scalar"].shape == ()


def test_tensors_come_back_as_numpy(tmp_path):
    tensor = torch.arange(6.0).reshape(2, 3).T.requires_grad_()
    back = there_and_back(tmp_path, {"x": tensor, "zero": torch.tensor(3)})
    assert isinstance(back["x"], np.ndarray)
    assert back["x"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert back["zero"].shape == ()
    assert back["zero"] == 3
