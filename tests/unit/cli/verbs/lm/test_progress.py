"""What the training verbs of `surefoot lm` share."""

from __future__ import annotations

import pytest
import torch

from surefoot.cli.usage import Usage
from surefoot.cli.verbs.lm.progress import pick_device


def test_auto_takes_what_there_is() -> None:
    assert pick_device("auto") == ("cuda" if torch.cuda.is_available() else "cpu")
    assert pick_device("cpu") == "cpu"


@pytest.mark.parametrize("name", ["gpu", "cuda:99", "xpu"])
def test_a_device_that_is_not_here_is_one_sentence(name: str) -> None:
    with pytest.raises(Usage, match=f"device={name} does not work here; there is cpu"):
        pick_device(name)
