"""Layers and flattening: orthogonality by its definition, rows by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from surefoot.data.spaces import Box
from surefoot.errors import SpaceError
from surefoot.nets.images import Parts
from surefoot.nets.torsos import ACTIVATIONS, Flatten, layer, mlp


@pytest.mark.parametrize(("inputs", "outputs"), [(5, 3), (3, 5), (4, 4)])
@pytest.mark.parametrize("gain", [0.01, 1.0, math.sqrt(2)])
def test_an_orthogonal_layer_has_orthogonal_rows_or_columns_of_its_gain(inputs, outputs, gain):
    w = layer(inputs, outputs, gain=gain, ortho_init=True).weight.detach()
    square = w @ w.T if outputs <= inputs else w.T @ w
    assert torch.allclose(square, gain**2 * torch.eye(len(square)), atol=1e-5)


def test_orthogonal_layers_begin_without_bias():
    assert torch.equal(layer(4, 3, gain=1.0, ortho_init=True).bias.detach(), torch.zeros(3))


def test_without_it_layers_are_torchs_own():
    torch.manual_seed(3)
    ours = layer(4, 3, gain=1.0, ortho_init=False)
    torch.manual_seed(3)
    assert torch.equal(ours.weight, torch.nn.Linear(4, 3).weight)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_hidden_layers_have_gain_root_two_and_the_activation_asked_for(name):
    net = mlp(8, (6, 4), activation=name, ortho_init=True)
    assert [type(m) for m in net] == [torch.nn.Linear, ACTIVATIONS[name]] * 2
    for linear in (net[0], net[2]):
        square = linear.weight.detach() @ linear.weight.detach().T
        assert torch.allclose(square, 2 * torch.eye(len(square)), atol=1e-5)


PARTS = {"b": Box((2,)), "a": Box((2, 2)), "c": Box((), 0, 255, "uint8")}


def test_parts_stand_side_by_side_in_the_order_of_their_names():
    flat = Flatten(PARTS, normalize=False, clip=10.0)
    a, b, c = (
        torch.tensor([[[1.0, 2.0], [3.0, 4.0]]]),
        torch.tensor([[5.0, 6.0]]),
        torch.tensor([51], dtype=torch.uint8),
    )
    expected = torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 0.2]])
    assert torch.allclose(flat({"c": c, "a": a, "b": b}), expected)
    assert torch.allclose(flat({"b": b, "c": c, "a": a}), expected)
    assert flat.size == 7


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.float64, torch.float16, torch.bool])
def test_any_number_becomes_float32(dtype):
    x = torch.tensor([[1, 0]]).to(dtype)
    out = Flatten({"obs": Box((2,))}, normalize=False, clip=10.0)({"obs": x})
    assert out.dtype == torch.float32
    assert out[0].tolist() == pytest.approx([1 / 255 if dtype == torch.uint8 else 1.0, 0.0])


def test_the_normaliser_sees_bytes_as_the_layers_do():
    flat = Flatten({"obs": Box((1,), 0, 255, "uint8")}, normalize=True, clip=10.0)
    flat.absorb({"obs": np.array([[0], [255]], np.uint8)})
    assert flat.normalizer is not None
    assert (flat.normalizer.mean.item(), flat.normalizer.var.item()) == (0.5, 0.25)
    out = flat({"obs": torch.tensor([[255]], dtype=torch.uint8)})
    assert out.item() == pytest.approx(1.0, abs=1e-6)


def test_an_observation_without_parts_is_refused():
    with pytest.raises(SpaceError, match="no parts"):
        Flatten({}, normalize=False, clip=10.0)


def picture(*shape: int) -> Box:
    return Box(shape, 0, 255, "uint8")


MIXED = {"row": Box((3,)), "eye": picture(9, 9, 1), "map": picture(2, 12, 12), "b": Box((2,))}


def parts(**changes) -> Parts:
    given = {"cnn": "auto", "features": 5, "ortho_init": True, "normalize": False, "clip": 10.0, **changes}
    return Parts(MIXED, **given)
