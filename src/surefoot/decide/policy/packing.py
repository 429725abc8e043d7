"""Episodes of any length over any number of candidates, as a few long arrays and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surefoot.decide.policy.choosers import Episode, Experience, OptionChoice
from surefoot.decide.policy.outcome_model import Scene

_ARRAYS = ("probabilities", "worth", "prior", "learned", "base", "plausible")


def pack(episodes: Sequence[Episode]) -> dict[str, Any]:
    """Ragged rows as a few long arrays: lengths, and everything end to end."""
    steps = [step for episode in episodes for step in episode]
    if not steps:
        return {}
    packed: dict[str, Any] = {
        "episodes": np.array([len(e) for e in episodes], np.int64),
        "candidates": np.array([len(s.scene) for s in steps], np.int64),
        "x": np.stack([s.scene.x for s in steps]),
        "option": np.concatenate([s.scene.option for s in steps]),
        "cosine": np.concatenate([s.scene.cosine for s in steps]),
        "numbers": np.array([[s.choice.at, s.choice.probability, s.choice.value, s.reward, s.weight] for s in steps]),
        "versions": np.array([s.choice.version for s in steps], np.int64),
        "ids": [s.id for s in steps],
    }
    return packed | {name: np.concatenate([getattr(s.choice, name) for s in steps]) for name in _ARRAYS}


def unpack(packed: dict[str, Any]) -> list[Episode]:
    if not packed:
        return []
    ends = np.cumsum(packed["candidates"])
    steps = list[Experience]()
    for i, end in enumerate(ends):
        span = slice(int(end - packed["candidates"][i]), int(end))
        at, probability, value, reward, weight = (float(n) for n in packed["numbers"][i])
        parts = {name: np.array(packed[name][span]) for name in _ARRAYS}
        steps.append(
            Experience(
                scene=Scene(
                    x=np.array(packed["x"][i]),
                    option=np.array(packed["option"][span]),
                    cosine=np.array(packed["cosine"][span]),
                ),
                choice=OptionChoice(
                    at=int(at), probability=probability, value=value, version=int(packed["versions"][i]), **parts
                ),
                reward=reward,
                weight=weight,
                id=packed["ids"][i],
            )
        )
    made, begin = list[Episode](), 0
    for length in packed["episodes"]:
        made.append(steps[begin : begin + int(length)])
        begin += int(length)
    return made
