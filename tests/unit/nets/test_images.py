"""Convolutional layers: one picture in both layouts, the layers of the paper, the sides that fit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from surefoot.data.spaces import Box
from surefoot.errors import ConfigError
from surefoot.nets.images import Images, Parts, image_kind


def pixels(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))


def picture(*shape: int) -> Box:
    return Box(shape, 0, 255, "uint8")


@pytest.mark.parametrize(("kind", "side"), [("nature", 40), ("small", 10)])
def test_a_picture_has_the_same_features_whichever_way_round_its_channels_are(kind, side):
    last = Images(picture(side, side, 3), kind, 16, ortho_init=True)
    first = Images(picture(3, side, side), kind, 16, ortho_init=True)
    first.load_state_dict(last.state_dict())
    x = pixels(5, side, side, 3)
    seen = last(x)
    assert seen.shape == (5, 16)
    assert torch.equal(first(x.permute(0, 3, 1, 2)), seen)
    assert not torch.allclose(last(x.flip(1)), seen, atol=1e-3)


def test_height_and_width_may_differ():
    wide = Images(picture(12, 20, 3), "small", 16, ortho_init=True)
    tall = Images(picture(3, 20, 12), "small", 16, ortho_init=True)
    assert wide(pixels(2, 12, 20, 3)).shape == tall(pixels(2, 3, 20, 12)).shape == (2, 16)
    narrow = wide.layers[0](torch.zeros(1, 3, 12, 20))
    assert narrow.shape == (1, 32, 6, 10)


def test_a_picture_without_channels_is_one_with_a_single_channel():
    flat, deep = (Images(picture(*shape), "small", 16, ortho_init=True) for shape in ((9, 9), (1, 9, 9)))
    deep.load_state_dict(flat.state_dict())
    x = pixels(4, 9, 9)
    assert torch.equal(flat(x), deep(x.unsqueeze(1)))


def test_bytes_of_a_picture_are_divided_by_255_and_floats_are_not():
    images = Images(picture(8, 8, 1), "small", 16, ortho_init=True)
    x = pixels(4, 8, 8, 1)
    assert torch.allclose(images(x), images(x.float() / 255.0), atol=1e-6)
    assert not torch.allclose(images(x), images(x.float()), atol=1.0)


def test_the_layers_of_nature_are_those_of_mnih_et_al():
    images = Images(picture(4, 84, 84), "nature", None, ortho_init=True)
    convolutions = [m for m in images.layers if isinstance(m, torch.nn.Conv2d)]
    shapes = [(m.in_channels, m.out_channels, m.kernel_size[0], m.stride[0]) for m in convolutions]
    assert shapes == [(4, 32, 8, 4), (32, 64, 4, 2), (64, 64, 3, 1)]
    linear = images.layers[-2]
    assert isinstance(linear, torch.nn.Linear)
    assert (linear.in_features, linear.out_features, images.size) == (64 * 7 * 7, 512, 512)


def test_convolutions_begin_orthogonal_with_gain_root_two_and_no_bias():
    for module in Images(picture(4, 36, 36), "nature", 8, ortho_init=True).layers:
        if isinstance(module, torch.nn.Conv2d | torch.nn.Linear):
            w = module.weight.detach().flatten(1)
            square = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
            assert torch.allclose(square, 2 * torch.eye(len(square)), atol=1e-4)
            assert (module.bias == 0).all()


@pytest.mark.parametrize(
    ("box", "kind"),
    [
        (picture(36, 36, 3), "nature"),
        (picture(4, 84, 84), "nature"),
        (picture(35, 99, 3), "small"),
        (picture(8, 8), "small"),
        (Box((3, 8, 8)), "small"),  # an image of floats
        (picture(7, 99, 3), None),
        (Box((8, 8)), None),  # a matrix of floats is no image
        (Box((99,)), None),
        (picture(9, 9, 9, 9), None),
    ],
)
def test_auto_takes_the_first_layers_that_fit(box, kind):
    assert image_kind(box, "auto", "obs") == kind
    assert image_kind(box, "off", "obs") is None


@pytest.mark.parametrize(("kind", "side"), [("nature", 36), ("small", 8)])
def test_the_shortest_side_that_fits_is_the_shortest_that_works(kind, side):
    assert image_kind(picture(side, side, 1), kind, "obs") == kind
    images = Images(picture(side, side, 1), kind, 4, ortho_init=True)
    assert images(pixels(2, side, side, 1)).shape == (2, 4)


@pytest.mark.parametrize(
    ("kind", "shape", "needs", "instead"),
    [("nature", (35, 40, 3), 36, "small"), ("nature", (7, 7, 3), 36, "off"), ("small", (7, 9), 8, "off")],
)
def test_layers_that_do_not_fit_are_refused_by_part_with_what_does(kind, shape, needs, instead):
    with pytest.raises(ConfigError) as caught:
        image_kind(picture(*shape), kind, "camera")
    said = str(caught.value)
    assert said.startswith(f"cnn is '{kind}' but the observation part 'camera' is {list(shape)}")
    assert f"{needs} or more" in said
    assert said.endswith(f"set cnn to '{instead}'")


MIXED = {"row": Box((3,)), "eye": picture(9, 9, 1), "map": picture(2, 12, 12), "b": Box((2,))}


def parts(**changes) -> Parts:
    given = {"cnn": "auto", "features": 5, "ortho_init": True, "normalize": False, "clip": 10.0, **changes}
    return Parts(MIXED, **given)


def mixed(n: int) -> dict[str, torch.Tensor]:
    row = torch.randn(n, 3, generator=torch.Generator().manual_seed(3))
    return {"row": row, "eye": pixels(n, 9, 9, 1), "map": pixels(n, 2, 12, 12, seed=1), "b": 10.0 + row[:, :2]}


def test_every_picture_has_layers_of_its_own_and_rows_stand_behind_them():
    torso, x = parts(), mixed(4)
    assert torso.names == ["eye", "map"]
    assert torso.size == 5 + 5 + 5
    out = torso(x)
    assert out.shape == (4, torso.size)
    assert torch.equal(out[:, :5], torso.images[0](x["eye"]))
    assert torch.equal(out[:, 5:10], torso.images[1](x["map"]))
    assert torch.equal(out[:, 10:], torch.cat([x["b"], x["row"]], dim=-1))
    assert torch.equal(torso(dict(reversed(x.items()))), out)


@pytest.mark.parametrize(("features", "size"), [(5, 5), (None, 128), (77, 77)])
def test_the_width_of_a_pictures_features_is_as_asked(features, size):
    torso = parts(features=features)
    assert torso.size == 2 * size + 5
    assert torso(mixed(2)).shape == (2, torso.size)


def test_a_picture_alone_needs_no_row():
    torso = Parts({"obs": picture(9, 9)}, cnn="auto", features=6, ortho_init=True, normalize=True, clip=10.0)
    assert torso.flatten is None
    torso.absorb({"obs": np.zeros((3, 9, 9), np.uint8)})
    assert torso({"obs": pixels(2, 9, 9)}).shape == (2, 6)


def test_the_normaliser_touches_only_the_rows():
    torso, plain, x = parts(normalize=True), parts(), mixed(500)
    plain.load_state_dict({name: w for name, w in torso.state_dict().items() if "normalizer" not in name})
    torso.absorb({name: part.numpy() for name, part in x.items()})
    out, raw = torso(x), plain(x)
    assert torch.equal(out[:, :10], raw[:, :10])
    assert torch.allclose(out[:, 10:].mean(0), torch.zeros(5), atol=1e-4)
    assert torch.allclose(out[:, 10:].std(0, correction=0), torch.ones(5), atol=1e-3)
    assert raw[:, 10].mean() > 9
