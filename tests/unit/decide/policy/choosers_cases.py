"""What the tests that were split from test_choosers.py share."""

from __future__ import annotations

import numpy as np

from surefoot.decide.encoders.encoder import Likeness
from surefoot.decide.policy.outcome_model import Scene
from surefoot.decide.policy.ppo import ChooserConfig, PPOChooser

LIKE = Likeness(sharpness=10.0, slope=8.0, middle=0.3)


DIM = 6


def scene(seed: int = 0, options: int = 4, cosine: list[float] | None = None) -> Scene:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=DIM)
    near = rng.uniform(-0.2, 0.8, options) if cosine is None else np.array(cosine)
    return Scene(
        x=(x / np.linalg.norm(x)).astype(np.float32), option=np.arange(options), cosine=near.astype(np.float32)
    )


def ppo(**config) -> PPOChooser:
    return PPOChooser(DIM, LIKE, options=4, config=ChooserConfig(**config))
