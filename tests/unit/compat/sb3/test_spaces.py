import numpy as np
import pytest
import torch
from gymnasium import spaces

from surefoot.compat.sb3 import spaces as s

IMAGE = spaces.Box(0, 255, (8, 9, 3), np.uint8)


def test_an_image_has_three_axes_and_bytes():
    assert s.is_image_space(IMAGE)
    assert not s.is_image_space_channels_first(IMAGE)
    assert not s.is_image_space(spaces.Box(0, 1, (8, 9, 3)))


def test_choices_are_one_hot_and_images_divided():
    row = s.preprocess_obs(torch.tensor([[1, 0]]), spaces.MultiDiscrete([2, 3]))
    assert row.tolist() == [[0, 1, 1, 0, 0]]
    assert float(s.preprocess_obs(torch.full((1, 8, 9, 3), 255, dtype=torch.uint8), IMAGE).max()) == 1.0


def test_a_batch_has_one_axis_more():
    box = spaces.Box(0, 1, (2,))
    assert s.is_vectorized_observation(np.zeros((5, 2)), box)
    assert not s.is_vectorized_observation(np.zeros(2), box)
    with pytest.raises(ValueError, match="is needed"):
        s.is_vectorized_observation(np.zeros(3), box)


def test_nested_spaces_are_refused():
    with pytest.raises(NotImplementedError, match="nested"):
        s.check_for_nested_spaces(spaces.Dict({"a": spaces.Dict({"b": IMAGE})}))
