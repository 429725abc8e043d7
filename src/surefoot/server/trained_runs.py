"""Serve trained policies without learning: an observation in, an action out; nothing is written."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import UNSET

from surefoot.errors import SurefootError
from surefoot.server import schema
from surefoot.server.http.problems import Refused

# Recurrent states kept in memory: 40 MB for 1,024 numbers each. The least recently used is dropped first.
EPISODES = 10_000


class Runs:
    """The served runs by name."""

    def __init__(self, directories: Sequence[Path] = ()) -> None:
        self.directories = directories
        self.policies: dict[str, RunPolicy] = {}

    def load(self) -> None:
        for directory in self.directories:
            name = directory.resolve().name
            self.policies[name] = RunPolicy(name, directory)

    def run(self, name: str) -> RunPolicy:
        """Return a run by name. Raise `Refused` if it is unknown."""
        if name not in self.policies:
            known = ", ".join(self.policies) or "none; start it with `surefoot serve RUN`"
            raise Refused("unknown", f"unknown run {name!r}; the server has {known}")
        return self.policies[name]


class RunPolicy:
    """One run's policy, with the recurrent state of each episode by its id."""

    def __init__(self, name: str, directory: Path) -> None:
        import torch

        from surefoot.train.facade import PPO

        # One row takes microseconds: more threads would only compete.
        torch.set_num_threads(1)
        self.name = name
        self.model = PPO.load(directory)
        self.spaces = self.model.spaces
        self.recurrent = self.model.policy.sequential
        self._episodes: OrderedDict[str, Any] = OrderedDict()

    def describe(self) -> schema.RunResponse:
        """Return its spaces, environment and number of steps."""
        from surefoot.data.spaces import space_to_json

        spec = self.model.spec
        return schema.RunResponse(
            name=self.name,
            env=spec.env,
            steps=self.model.num_timesteps,
            observation={
                part or "obs": schema.PartResponse(shape=list(space.shape or ()), dtype=str(space.dtype))
                for part, space in self._parts().items()
            },
            action=space_to_json(self.spaces.action),
            memory=self.recurrent,
        )

    def act(self, requests: Sequence[schema.NewAct], pointer: str) -> list[schema.Act]:
        """Return one action per request; requests with the same options are evaluated as one batch."""
        observations = [self._observation(new, pointer.format(i)) for i, new in enumerate(requests)]
        self._check_episodes(requests, pointer)
        # A batch has either masks for all rows or none.
        groups: dict[tuple[bool, bool], list[int]] = {}
        for i, new in enumerate(requests):
            groups.setdefault((new.deterministic, new.mask is UNSET), []).append(i)
        acts: dict[int, schema.Act] = {}
        for (deterministic, _), rows in groups.items():
            group = [requests[i] for i in rows]
            chosen = self._choose([observations[i] for i in rows], group, deterministic=deterministic)
            acts |= zip(rows, chosen, strict=True)
        return [acts[i] for i in range(len(requests))]

    def _choose(
        self, rows: Sequence[Any], requests: Sequence[schema.NewAct], *, deterministic: bool
    ) -> list[schema.Act]:
        import torch

        named = isinstance(rows[0], dict)
        batch = {name: np.stack([row[name] for row in rows]) for name in rows[0]} if named else np.stack(rows)
        masks = None if requests[0].mask is UNSET else np.array([new.mask for new in requests], bool)
        starts = [new.start or self._state(new) is None for new in requests]
        states = None
        if self.recurrent:
            empty = self.model.policy.initial_context(1)
            previous = [empty if start else self._state(new) for start, new in zip(starts, requests, strict=True)]
            states = {name: torch.cat([each[name] for each in previous if each is not None]) for name in empty}
        try:
            actions, after = self.model.predict(
                batch, states, np.array(starts), deterministic=deterministic, action_masks=masks
            )
        except SurefootError as error:
            raise Refused("invalid", str(error), pointer="/") from error
        acts: list[schema.Act] = []
        for row, new in enumerate(requests):
            if self.recurrent and after is not None and new.episode is not UNSET:
                self._episodes[new.episode] = {name: x[row : row + 1] for name, x in after.items()}
                self._episodes.move_to_end(new.episode)
            acts.append(schema.Act(action=plain(_row(actions, row)), began=starts[row]))
        while len(self._episodes) > EPISODES:
            self._episodes.popitem(last=False)
        return acts

    def _state(self, new: schema.NewAct) -> Any:
        return None if new.episode is UNSET else self._episodes.get(new.episode)

    def _check_episodes(self, requests: Sequence[schema.NewAct], pointer: str) -> None:
        episodes = [new.episode for new in requests]
        if self.recurrent and UNSET in episodes:
            where = f"{pointer.format(episodes.index(UNSET))}/episode"
            raise Refused("invalid", "this policy is recurrent; name the episode of the step", pointer=where)
        # Two steps of one episode in a batch would both start from the same state.
        if self.recurrent and len(set(episodes)) < len(episodes):
            raise Refused("invalid", "two steps have the same episode; send one step per episode", pointer="/acts")

    def _parts(self) -> Mapping[str | None, Any]:
        """Return {name: space} of the environment's observation; {None: space} if it has no parts."""
        from gymnasium import spaces

        space = self.spaces.gym_observation
        if not isinstance(space, spaces.Dict):
            return {None: space}
        return {name: part for name, part in space.items() if name in self.spaces.observation}

    def _observation(self, new: schema.NewAct, pointer: str) -> Any:
        parts = self._parts()
        if None in parts:
            if (new.observation is UNSET) == (new.observation_b64 is UNSET):
                raise Refused("invalid", "send one of observation and observation_b64", pointer=pointer or "/")
            where = f"{pointer}/observation" + ("" if new.observation_b64 is UNSET else "_b64")
            return _fit(parts[None], new.observation, new.observation_b64, where)
        listed = {} if new.parts is UNSET else new.parts
        coded = {} if new.parts_b64 is UNSET else new.parts_b64
        if set(listed) | set(coded) != set(parts) or set(listed) & set(coded):
            names = ", ".join(map(str, parts))
            raise Refused("invalid", f"send {names}, each once, in parts or parts_b64", pointer=f"{pointer}/parts")
        return {
            name: _fit(space, listed.get(str(name), UNSET), coded.get(str(name), UNSET), f"{pointer}/parts/{name}")
            for name, space in parts.items()
        }


def _fit(space: Any, numbers: Any, b64: Any, where: str) -> np.ndarray:
    """Return flat numbers reshaped to a space. Raise `Refused` if they do not fit."""
    flat = np.frombuffer(b64, "<f4") if numbers is UNSET and len(b64) % 4 == 0 else numbers
    shape = tuple(space.shape or ())
    if flat is UNSET or len(flat) != math.prod(shape):
        count = "the bytes are not float32" if flat is UNSET else f"there are {len(flat)} numbers"
        detail = f"{count}; this observation has the shape {list(shape)}, which is {math.prod(shape)} numbers"
        raise Refused("invalid", detail, pointer=where)
    row = np.asarray(flat, np.float32)
    if not np.isfinite(row).all():
        raise Refused(
            "invalid", "the number is NaN or infinite", pointer=f"{where}/{int(np.flatnonzero(~np.isfinite(row))[0])}"
        )
    # Clients send float32; the environment's dtype may be uint8 or float64.
    return row.astype(space.dtype).reshape(shape)


def _row(actions: Any, row: int) -> Any:
    """Return one action of a batch, which can be nested in dicts and tuples."""
    # Dict and tuple action spaces return nested batches.
    if isinstance(actions, Mapping):
        return {str(name): _row(part, row) for name, part in actions.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(actions, tuple):
        return [_row(part, row) for part in actions]  # pyright: ignore[reportUnknownVariableType]
    return actions[row]


def plain(action: Any) -> Any:
    match action:
        case dict():
            return {str(name): plain(part) for name, part in action.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case list() | tuple():
            return [plain(part) for part in action]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return np.asarray(action).tolist()
