"""The choosers by name."""

from __future__ import annotations

import subprocess
import sys

import pytest

from surefoot.decide.core.chooser_registry import CHOOSERS, as_ppo, make_chooser
from surefoot.decide.encoders.encoder import HashingEncoder


@pytest.mark.parametrize("name", CHOOSERS)
def test_every_name_makes_a_chooser_and_only_one_of_them_is_ppo(name):
    assert (as_ppo(make_chooser(name, HashingEncoder(8))) is not None) == (name == "ppo")


def test_a_service_that_decides_loads_no_torch():
    code = "import sys, surefoot.server.main; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
