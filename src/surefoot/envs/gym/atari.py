"""Atari games with PPO's usual preprocessing, on the bare emulator.

The order is that of OpenAI's baselines, from the emulator outwards: no-ops (A1), frame skip and maximum (A2), episodic
life (A3), fire on reset (A4), 84 x 84 greyscale (A5), frame stack (A7). Rewards stay raw: clipping to the sign (A6) is the
preset's `reward_range`. The numbers are those of docs/explain/details.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from surefoot.errors import ConfigError, EnvError

# The numbers of the DQN paper (Mnih et al., 2015), which PPO took over.
NOOPS = 30
SKIP = 4
SIZE = 84
STACK = 4
# 108,000 frames, half an hour of play: Gymnasium's time limit for ALE/…-v5.
STEPS = 27_000
WHOLE = "whole_return"
"""Key of the info at the end of an episode: the raw return of the whole game, NaN if the game continues."""

_IDS = re.compile(r"(ALE/\w+-v5|\w+NoFrameskip-v[04])")
_NEEDS = 'needs Atari, which is not installed; pip install "surefoot[atari]"'


def is_atari(name: str) -> bool:
    """Return whether `name` is an id that this module implements: ALE/Pong-v5, PongNoFrameskip-v4."""
    return _IDS.fullmatch(name) is not None


def register_games(name: str) -> None:
    """Register the games with Gymnasium; `name` is the id for the error message."""
    try:
        import ale_py
    except ImportError as error:
        raise EnvError(f"{name} {_NEEDS}") from error
    gym.register_envs(ale_py)


@dataclass(frozen=True, slots=True)
class GameBuilder:
    """Build one game of a registered id. It can be pickled, for workers."""

    name: str
    options: Mapping[str, Any]
    """Arguments of `AtariGame`, from the id and from the user."""

    def __call__(self) -> AtariGame:
        try:
            return AtariGame(**self.options)
        except ImportError as error:
            raise EnvError(f"{self.name} {_NEEDS}") from error


def game_of(spec: Any, kwargs: Mapping[str, Any], max_episode_steps: int | None) -> GameBuilder:
    """Return a builder of the game of a Gymnasium spec, with the sticky actions and the action set of its id."""
    unknown = set(kwargs) - {"repeat_action_probability", "full_action_space", "mode", "difficulty", "episodic_life"}
    if unknown:
        raise ConfigError(
            f"the built-in {spec.id} takes no {', '.join(sorted(unknown))}; backend='gymnasium' makes the bare game, which does"
        )
    defaults = {key: spec.kwargs[key] for key in ("game", "repeat_action_probability", "full_action_space")}
    limit = STEPS if max_episode_steps is None else max_episode_steps
    return GameBuilder(spec.id, {**defaults, "max_steps": limit, **kwargs})


class AtariGame(gym.Env[Any, Any]):
    """One game; an observation is the last four frames, [4, 84, 84] uint8, the oldest first.

    A lost life ends the episode but not the game: the next `reset` continues with the next life, unless it has a seed.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 60 // SKIP}  # noqa: RUF012  Gymnasium's own annotation

    def __init__(
        self,
        game: str,
        *,
        repeat_action_probability: float = 0.0,
        full_action_space: bool = False,
        mode: int | None = None,
        difficulty: int | None = None,
        episodic_life: bool = True,
        max_steps: int = STEPS,
    ) -> None:
        from ale_py import ALEInterface, LoggerMode, roms

        ALEInterface.setLoggerMode(LoggerMode.Error)
        self.ale: Any = ALEInterface()
        self.ale.setFloat("repeat_action_probability", repeat_action_probability)
        self._rom = roms.get_rom_path(game)
        if self._rom is None:
            raise EnvError(f"there is no game {game!r}; use the name of its ROM file: ms_pacman, not MsPacman")
        self._mode, self._difficulty = mode, difficulty
        self._episodic, self._limit = episodic_life, max_steps
        self._load(0)
        legal = self.ale.getLegalActionSet() if full_action_space else self.ale.getMinimalActionSet()
        self.meanings = [str(action.name) for action in legal]
        self._actions = [int(action.value) for action in legal]
        self.render_mode = "rgb_array"
        self.observation_space = spaces.Box(0, 255, (STACK, SIZE, SIZE), np.uint8)
        self.action_space = spaces.Discrete(len(self._actions))
        self._screens = np.zeros((2, *self.ale.getScreenDims()), np.uint8)
        self._shrink = Shrink(*self.ale.getScreenDims())
        self._stack = np.zeros((STACK, SIZE, SIZE), np.uint8)
        self._lives, self._steps, self._total, self._continues = 0, 0, 0.0, False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self._load(seed)
        if self._continues and seed is None:
            self._skip(0)
        else:
            self._new_game()
        if self.meanings[1:2] == ["FIRE"]:
            # Like baselines: some games start only with the next button too.
            for button in self._actions[1:3]:
                self._skip(button)
        self._lives, self._continues = int(self.ale.lives()), False
        self._stack[:] = self._picture()
        return self._stack.copy(), {"lives": self._lives}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        reward = self._skip(self._actions[action])
        lives, over = int(self.ale.lives()), bool(self.ale.game_over())
        self._steps += 1
        late = self._steps >= self._limit
        # lives > 0: some games have no life left for a few frames before they are over.
        lost = self._episodic and 0 < lives < self._lives
        self._lives, self._continues = lives, lost and not over and not late
        self._stack[:-1] = self._stack[1:]
        self._stack[-1] = self._picture()
        terminated = over or lost
        info: dict[str, Any] = {"lives": lives}
        if terminated or late:
            info[WHOLE] = float("nan") if self._continues else self._total
        return self._stack.copy(), reward, terminated, late and not terminated, info

    def render(self) -> np.ndarray:
        return self.ale.getScreenRGB()

    def get_state(self) -> dict[str, Any]:
        emulator = np.frombuffer(self.ale.cloneState(include_rng=True).serialize(), np.uint8)
        return {
            "emulator": emulator.copy(),
            "stack": self._stack.copy(),
            "lives": self._lives,
            "steps": self._steps,
            "total": self._total,
            "goes_on": self._continues,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        from ale_py import ALEState

        self.ale.restoreState(ALEState(np.asarray(state["emulator"], np.uint8).tobytes()))
        self._stack[:] = state["stack"]
        self._lives, self._steps = int(state["lives"]), int(state["steps"])
        self._total, self._continues = float(state["total"]), bool(state["goes_on"])

    def _load(self, seed: int) -> None:
        """Load the game; the emulator reads its seed only then."""
        self.ale.setInt("random_seed", seed % 2**31)
        self.ale.loadROM(self._rom)
        if self._mode is not None:
            self.ale.setMode(self._mode)
        if self._difficulty is not None:
            self.ale.setDifficulty(self._difficulty)

    def _new_game(self) -> None:
        self.ale.reset_game()
        self._steps, self._total = 0, 0.0
        for _ in range(int(self.np_random.integers(1, NOOPS + 1))):
            self._total += self.ale.act(0)
            if self.ale.game_over():
                self.ale.reset_game()
                self._total = 0.0
        self._read_screen(0)
        self._screens[1] = 0

    def _skip(self, button: int) -> float:
        """Hold a button for four frames, or until the game is over; return the reward."""
        reward, ale = 0.0, self.ale
        for frame in range(SKIP):
            reward += ale.act(button)
            if ale.game_over():
                # The previous frame was not read in the middle of a skip; an older one would show objects that are gone.
                self._read_screen(0)
                self._screens[1] = 0
                break
            if frame >= SKIP - 2:
                self._read_screen(frame - SKIP + 2)
        self._total += reward
        return reward

    def _read_screen(self, which: int) -> None:
        self.ale.getScreenGrayscale(self._screens[which])

    def _picture(self) -> np.ndarray:
        return self._shrink(np.maximum(self._screens[0], self._screens[1]))


class Shrink:
    """Resize [H, W] to [84, 84] by the mean over each area, rounded; all sums are of integers, hence exact."""

    def __init__(self, height: int, width: int) -> None:
        rows, columns = _overlaps(height), _overlaps(width)
        self._rows, self._columns = _taps(rows, np.uint16), _taps(columns, np.float32)
        self._area = np.float32(rows[0].sum() * columns[0].sum())

    def __call__(self, picture: np.ndarray) -> np.ndarray:
        # Rows are faster to select than columns. No matrix product: BLAS would start threads.
        sums = _weighted_rows(np.ascontiguousarray(_weighted_rows(picture, self._rows).T), self._columns)
        return np.rint(sums / self._area).astype(np.uint8).T


Taps = list[tuple[np.ndarray, np.ndarray]]


def _weighted_rows(picture: np.ndarray, taps: Taps) -> np.ndarray:
    """Return 84 weighted sums of rows of `picture`."""
    (rows, weight), *more = taps
    out = picture[rows] * weight
    for rows, weight in more:
        out += picture[rows] * weight
    return out


def _taps(overlaps: np.ndarray, kind: Any) -> Taps:
    """Return the indices [84] and weights [84, 1] of the old rows in each new one: first the first of each, and so on."""
    count = int((overlaps > 0).sum(1).max())
    first = np.minimum((overlaps > 0).argmax(1), overlaps.shape[1] - count)
    return [(first + k, overlaps[np.arange(SIZE), first + k, None].astype(kind)) for k in range(count)]


def _overlaps(length: int) -> np.ndarray:
    """Return how much of each old pixel is in a new one, [84, length], in the largest unit that divides both."""
    unit = np.gcd(length, SIZE)
    old, new = SIZE // unit, length // unit
    starts, begins = np.arange(length) * old, np.arange(SIZE)[:, None] * new
    return np.clip(np.minimum(starts + old, begins + new) - np.maximum(starts, begins), 0, None)
