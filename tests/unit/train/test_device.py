import subprocess
import sys

import pytest

from surefoot.data.spaces import Box, Discrete
from surefoot.nets.actor_critic import ActorCritic
from surefoot.train.device import keep_large_blocks

TOLD = """
from surefoot.data.spaces import Box, Discrete
from surefoot.nets.actor_critic import ActorCritic
from surefoot.train.device import keep_large_blocks

assert keep_large_blocks(ActorCritic({"obs": Box((12, 12, 1), 0.0, 255.0, "uint8")}, Discrete(2)))
"""


def test_policies_without_images_leave_malloc_alone():
    assert not keep_large_blocks(ActorCritic({"obs": Box((4,))}, Discrete(2)))
    assert not keep_large_blocks(object())


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's malloc")
def test_malloc_takes_what_it_is_told_for_a_policy_with_images():
    """In a process of its own: what malloc was told cannot be taken back."""
    subprocess.run([sys.executable, "-c", TOLD], check=True)
