"""One small world in every shape: a cue to be answered, seen as numbers, as a picture or both, at once or from memory.

The best return is 1 in each of them, so that whatever a policy is made of can be held to the same known answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.data.spaces import ActionSpace, Box, Discrete, Hybrid, MultiDiscrete, ObservationSpace
from surefoot.envs.api import Arrays, Step, View
from surefoot.envs.builtin.streams import Actions, checked_streams
from surefoot.errors import ConfigError, IllegalAction, ShapeError

SEEN = ("flat", "image", "dict")
DONE = ("discrete", "multi", "box", "hybrid")
_CUES, _STEPS, _SIDE = 4, 3, 12


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallShape:
    """Which of its shapes the world has."""

    see: str = "flat"
    """flat: four numbers; image: a bright corner of a 12x12 picture of bytes; dict: half of the cue in each."""
    act: str = "discrete"
    """discrete: one of four; multi: two bits; box: two numbers; hybrid: a bit and a number."""
    masked: bool = False
    """Half of the choices or more are forbidden, and refused if they are made all the same."""
    hidden: bool = False
    """The cue is shown at the first step only."""
    agents: int = 1
    """Streams that share a copy of the world; the second one leaves a step before the end, every time."""
    central: bool = False
    """A part "state" shows the cues of all agents at all times, for a critic."""

    def __post_init__(self) -> None:
        if self.see not in SEEN or self.act not in DONE:
            raise ConfigError(f"see is {self.see!r} and act {self.act!r}; they are one of {SEEN} and {DONE}")
        if self.masked and self.act == "box":
            raise ConfigError("masked=True needs choices; act='box' has none")
        if self.agents not in (1, 2):
            raise ConfigError(f"agents is {self.agents}; it is 1 or 2")


class Recall:
    """N streams, `shape.agents` to a copy. Every step pays for how well the action answers the cue; an episode has three.

    A second agent takes two steps, is then absent for one (`valid` False), and joins again when its copy begins anew.
    """

    inexact: str | None = None

    def __init__(self, num_envs: int, shape: RecallShape | None = None) -> None:
        self.shape = shape or RecallShape()
        if num_envs < 1 or num_envs % self.shape.agents:
            raise ConfigError(f"num_envs is {num_envs}; it must be a multiple of {self.shape.agents} agents")
        self.name, self.num_envs = "surefoot/Recall-v0", num_envs
        self.observation: ObservationSpace = _observation(self.shape)
        self.action: ActionSpace = _action(self.shape)
        self._actions = Actions(self.name, self.action, num_envs)
        self._leaves = np.arange(num_envs) % self.shape.agents == 1
        self._best = np.where(self._leaves, _STEPS - 1, _STEPS)
        self.reset(0)

    def reset(self, seed: int) -> View:
        """Start every copy anew."""
        self._rng = np.random.Generator(np.random.PCG64(seed))
        self._cue = self._rng.integers(_CUES, size=self.num_envs)
        self._clock = np.zeros(self.num_envs, np.int64)
        return self._view()

    def step(self, action: np.ndarray) -> Step:
        """Answer the cues."""
        action = self._actions.checked(action)
        valid = ~(self._leaves & (self._clock == _STEPS - 1))
        self._refuse_forbidden(action, valid)
        reward = np.where(valid, self._score(action) / self._best, 0.0)
        self._clock += 1
        terminated = valid & (self._clock == self._best)
        final = self._view().obs if terminated.any() else None
        self._begin(self._clock == _STEPS)
        return Step(
            view=self._view(),
            reward=reward,
            terminated=terminated,
            truncated=np.zeros(self.num_envs, bool),
            valid=valid,
            final_obs=final,
        )

    def reset_streams(self, streams: np.ndarray) -> View:
        """Begin a new episode in every copy that one of `streams` ([N] bool) belongs to."""
        agents = self.shape.agents
        copies = checked_streams(streams, self).reshape(-1, agents).any(axis=1)
        self._begin(np.repeat(copies, agents))
        return self._view()

    def state(self) -> dict[str, Any]:
        """Cues, clocks and the generator."""
        return {"cue": self._cue.copy(), "clock": self._clock.copy(), "rng": dict(self._rng.bit_generator.state)}

    def set_state(self, state: dict[str, Any]) -> View:
        """Go on from where `state` was taken."""
        cue, clock = np.array(state["cue"], np.int64), np.array(state["clock"], np.int64)
        if cue.shape != (self.num_envs,) or clock.shape != cue.shape:
            raise ShapeError(f"state holds {list(cue.shape)} cues; {self.name} here has {self.num_envs} streams")
        self._cue, self._clock = cue, clock
        self._rng.bit_generator.state = state["rng"]
        return self._view()

    def render(self) -> np.ndarray | None:
        """Nothing to see."""
        return None

    def close(self) -> None:
        """Nothing is held."""

    def _begin(self, streams: np.ndarray) -> None:
        if streams.any():
            self._cue = np.where(streams, self._rng.integers(_CUES, size=self.num_envs), self._cue)
            self._clock = np.where(streams, 0, self._clock)

    def _view(self) -> View:
        shown = (self._clock == 0) | (not self.shape.hidden)
        absent = self._leaves & (self._clock == _STEPS - 1)
        obs = _seen(self.shape.see, self._cue, shown & ~absent)
        if self.shape.central:
            agents = self.shape.agents
            cues = (self._cue[:, None] == np.arange(_CUES)).astype(np.float32).reshape(-1, agents * _CUES)
            obs["state"] = np.repeat(cues, agents, axis=0)
        return View(obs=obs, action_mask=self._mask())

    def _mask(self) -> np.ndarray | None:
        if not self.shape.masked:
            return None
        match self.shape.act:
            case "discrete":  # the answer and the one after it: what is allowed tells half of the cue
                offset = (np.arange(_CUES) - self._cue[:, None]) % _CUES
                return offset < 2
            case "multi":
                return np.tile(np.arange(4) < 2, (self.num_envs, 2))
            case _:
                return np.tile(np.arange(4) < 2, (self.num_envs, 1))

    def _refuse_forbidden(self, action: np.ndarray, valid: np.ndarray) -> None:
        mask = self._mask()
        if mask is None:
            return
        chosen = action.reshape(self.num_envs, -1)[:, : mask.shape[1] // 4].astype(np.int64)
        allowed = np.take_along_axis(mask.reshape(self.num_envs, -1, 4), chosen[..., None], axis=2)[..., 0].all(axis=1)
        if not (allowed | ~valid).all():
            stream = int(np.flatnonzero(~allowed & valid)[0])
            raise IllegalAction(f"action {action[stream]} of stream {stream} is forbidden by the mask it was shown")

    def _score(self, action: np.ndarray) -> np.ndarray:
        """[N], 1 for the right answer."""
        low, high = self._cue % 2, self._cue // 2
        match self.shape.act:
            case "discrete":
                return (action == self._cue).astype(np.float64)
            case "multi":
                return ((action[:, 0] == low) * 0.5 + (action[:, 1] == high) * 0.5).astype(np.float64)
            case "box":
                wanted = np.stack([low, high], axis=1) - 0.5
                return 1.0 - np.square(action - wanted).mean(axis=1)
            case _:
                return 0.5 * (action[:, 0] == low) + 0.5 * (1.0 - np.square(action[:, 1] - (high - 0.5)))


def _seen(see: str, cue: np.ndarray, shown: np.ndarray) -> Arrays:
    if see == "flat":
        return {"obs": ((cue[:, None] == np.arange(_CUES)) & shown[:, None]).astype(np.float32)}
    image = np.zeros((len(cue), _SIDE, _SIDE, 1), np.uint8)
    half, high = _SIDE // 2, (cue // 2).astype(bool)
    right = (cue % 2).astype(bool) if see == "image" else np.zeros(len(cue), bool)
    for bottom in (False, True):
        for side in (False, True):
            chosen = shown & (high == bottom) & (right == side)
            image[chosen, half * bottom : half * (bottom + 1), half * side : half * (side + 1)] = 255
    if see == "image":
        return {"obs": image}
    row = ((cue[:, None] % 2 == np.arange(2)) & shown[:, None]).astype(np.float32)
    return {"picture": image, "row": row}


def _observation(shape: RecallShape) -> ObservationSpace:
    picture, row = Box((_SIDE, _SIDE, 1), 0.0, 255.0, "uint8"), Box((_CUES,), 0.0, 1.0)
    parts: ObservationSpace = {
        "flat": {"obs": row},
        "image": {"obs": picture},
        "dict": {"picture": picture, "row": Box((2,), 0.0, 1.0)},
    }[shape.see]
    return {**parts, "state": Box((shape.agents * _CUES,), 0.0, 1.0)} if shape.central else parts


def _action(shape: RecallShape) -> ActionSpace:
    options = 4 if shape.masked else 2
    match shape.act:
        case "discrete":
            return Discrete(_CUES)
        case "multi":
            return MultiDiscrete((options, options))
        case "box":
            return Box((2,), -1.0, 1.0)
        case _:
            return Hybrid((options,), Box((1,), -1.0, 1.0))
