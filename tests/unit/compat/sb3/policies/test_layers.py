import numpy as np
import torch
from gymnasium import spaces

from surefoot.compat.sb3.policies import layers


def test_an_mlp_ends_where_it_should():
    assert len(layers.create_mlp(3, -1, [])) == 0
    net = layers.create_mlp(3, 2, [4], squash_output=True)
    assert [type(x).__name__ for x in net] == ["Linear", "ReLU", "Linear", "Tanh"]


def test_images_and_vectors_are_put_side_by_side():
    space = spaces.Dict({"image": spaces.Box(0, 255, (3, 36, 36), np.uint8), "x": spaces.Box(0, 1, (2,))})
    extractor = layers.CombinedExtractor(space, cnn_output_dim=7)
    assert extractor.features_dim == 9
    assert extractor({"image": torch.zeros(4, 3, 36, 36), "x": torch.zeros(4, 2)}).shape == (4, 9)
