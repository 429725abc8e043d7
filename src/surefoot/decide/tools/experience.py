"""A choice inside a Spacetime as JSON, and back again as something to learn from or to explain."""

from __future__ import annotations

from typing import Any

import numpy as np

from surefoot.decide.agent import Agent, Decided, Explanation
from surefoot.decide.policy.choosers import Choice, Experience
from surefoot.decide.policy.outcome_model import Scene
from surefoot.decide.tools.spacetime import Spacetime
from surefoot.errors import DecisionError

_ARRAYS = ("probabilities", "worth", "prior", "learned", "base")


def decision_of(decided: Decided, agent: Agent) -> dict[str, Any]:
    """JSON values; numbers come back exactly."""
    choice = decided.choice
    return {
        "encoder": agent.encoder.name,
        "names": list(decided.names),
        "option": decided.scene.option.tolist(),
        "x": decided.scene.x.tolist(),
        "cosine": decided.scene.cosine.tolist(),
        "at": choice.at,
        "probability": choice.probability,
        "value": choice.value,
        "version": choice.version,
        "plausible": [bool(each) for each in choice.plausible],
        **{name: np.asarray(getattr(choice, name)).tolist() for name in _ARRAYS},
    }


def experience_in(spacetime: Spacetime, reward: float, encoder: str | None = None) -> Experience | None:
    """What there is to learn; None if nobody chose, or if it was chosen by vectors of another encoder."""
    said = spacetime.decision
    if said is None or (encoder is not None and said["encoder"] != encoder):
        return None
    return Experience(scene=_scene(said), choice=_choice(said), reward=reward, id=spacetime.id)


def explained(spacetime: Spacetime, agent: Agent, nearest: int) -> Explanation:
    """The explanation of a choice that may have been made long ago."""
    said = spacetime.decision
    if said is None:
        raise DecisionError(f"nobody chose in {spacetime.id or 'this Spacetime'}: it failed, or came from the cache")
    decided = Decided(
        id=spacetime.id,
        name=spacetime.tool_used,
        probability=float(said["probability"]),
        names=list(said["names"]),
        scene=_scene(said),
        choice=_choice(said),
        confidence=spacetime.trace.tool_confidence,
        version=int(said["version"]),
        text=spacetime.query_text,
    )
    return agent.explain(decided, nearest)


def _scene(said: dict[str, Any]) -> Scene:
    return Scene(
        x=np.array(said["x"], np.float32),
        option=np.array(said["option"], np.int64),
        cosine=np.array(said["cosine"], np.float32),
    )


def _choice(said: dict[str, Any]) -> Choice:
    return Choice(
        at=int(said["at"]),
        probability=float(said["probability"]),
        value=float(said["value"]),
        version=int(said["version"]),
        plausible=np.array(said["plausible"], bool),
        **{name: np.array(said[name], np.float64 if name == "probabilities" else np.float32) for name in _ARRAYS},
    )
