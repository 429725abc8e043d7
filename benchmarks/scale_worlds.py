"""A world that waits: CartPole whose every step takes two milliseconds in which no core is used.

So does a simulator on another machine, a robot, a browser. With it many workers can be measured on few cores.
"""

from __future__ import annotations

import time
from typing import Any

from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from gymnasium.wrappers import TimeLimit

from surefoot.envs.make import make_world

WAIT = 0.002


class Waiting(CartPoleEnv):
    def step(self, action: Any) -> Any:
        time.sleep(WAIT)
        return super().step(action)


def waiting(spec: Any) -> Any:
    """What makes its worlds, for `Placement.worlds`."""
    return lambda streams, workers=0, /: make_world(lambda: TimeLimit(Waiting(), 500), streams)
