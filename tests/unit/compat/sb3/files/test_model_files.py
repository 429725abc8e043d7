import numpy as np
import pytest
import torch
from gymnasium import spaces

from surefoot.compat.sb3.files import model_files as m
from surefoot.compat.sb3.functions import LinearSchedule


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-np.inf, np.inf, (2, 3)),
        spaces.Box(0, 255, (4, 4, 3), np.uint8),
        spaces.Discrete(3),
        spaces.MultiDiscrete([2, 3]),
        spaces.MultiBinary(4),
        spaces.Dict({"b": spaces.Discrete(2), "a": spaces.Box(-1, 1, (1,))}),
    ],
)
def test_a_space_comes_back_equal(space, tmp_path):
    m.write_zip(tmp_path / "m", m.space_to_tree(space))
    assert m.space_from_tree(m.read_zip(tmp_path / "m")) == space


def test_settings_come_back_and_code_does_not():
    line = m.from_json("lr", m.to_json("lr", LinearSchedule(1.0, 0.0, 0.5)))
    assert line(0.75) == pytest.approx(0.5)
    assert m.from_json("f", m.to_json("f", {"a": torch.nn.ReLU})) == {"a": torch.nn.ReLU}
    with pytest.raises(ValueError, match="custom_objects"):
        m.from_json("f", m.to_json("f", print))
    with pytest.raises((ValueError, KeyError)):
        m.from_json("f", {"class": "os.system"})


def test_another_zip_is_refused(tmp_path):
    (tmp_path / "x.zip").write_bytes(b"no zip")
    with pytest.raises(ValueError, match="not a zip"):
        m.read_zip(tmp_path / "x.zip")
    with pytest.raises(FileNotFoundError):
        m.read_zip(tmp_path / "y")
