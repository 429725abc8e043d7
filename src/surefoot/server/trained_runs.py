"""Trained policies that are served as they are: an observation in, an action out; nothing is written or learned."""

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

EPISODES = 10_000
"""Episodes whose recurrent state is kept; the least recently used is dropped first."""


class Runs:
    """The served runs, by name."""

    def __init__(self, directories: Sequence[Path] = ()) -> None:
        self.directories = directories
        self.policies: dict[str, RunPolicy] = {}

    def load(self) -> None:
        """Load all of them."""
        for directory in self.directories:
            name = directory.resolve().name
            self.policies[name] = RunPolicy(name, directory)

    def run(self, name: str) -> RunPolicy:
        """Return a run. Raise `Refused` if there is none of that name."""
        if name not in self.policies:
            known = ", ".join(self.policies) or "none: `surefoot serve RUN` serves one"
            raise Refused("unknown", f"there is no run {name!r}; there are {known}")
        return self.policies[name]


class RunPolicy:
    """One run's policy, with the recurrent state of each episode by its id."""

    def __init__(self, name: str, directory: Path) -> None:
        import torch

        from surefoot.train.facade import PPO

        torch.set_num_threads(1)
        self.name = name
        self.model = PPO.load(directory)
        self.spaces = self.model.spaces
        self.remembers = self.model.policy.sequential
        self._episodes: OrderedDict[str, Any] = OrderedDict()

    def describe(self) -> schema.RunResponse:
        """Return its observation, its action and its origin."""
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
            memory=self.remembers,
        )

    def act(self, wanted: Sequence[schema.NewAct], pointer: str) -> list[schema.Act]:
        """Return an action for each observation; those with the same options go through the network as one batch."""
        seen = [self._observation(new, pointer.format(place)) for place, new in enumerate(wanted)]
        self._check_episodes(wanted, pointer)
        groups: dict[tuple[bool, bool], list[int]] = {}
        for place, new in enumerate(wanted):
            groups.setdefault((new.deterministic, new.mask is UNSET), []).append(place)
        found: dict[int, schema.Act] = {}
        for (deterministic, _), places in groups.items():
            mine = [wanted[place] for place in places]
            answers = self._choose([seen[place] for place in places], mine, deterministic=deterministic)
            found |= dict(zip(places, answers, strict=True))
        return [found[place] for place in range(len(wanted))]

    def _choose(self, seen: Sequence[Any], wanted: Sequence[schema.NewAct], *, deterministic: bool) -> list[schema.Act]:
        import torch

        named = isinstance(seen[0], dict)
        together = {name: np.stack([each[name] for each in seen]) for name in seen[0]} if named else np.stack(seen)
        masks = None if wanted[0].mask is UNSET else np.array([new.mask for new in wanted], bool)
        fresh = [new.start or self._memory(new) is None for new in wanted]
        memory = None
        if self.remembers:
            empty = self.model.policy.initial_context(1)
            kept = [empty if new else self._memory(w) for new, w in zip(fresh, wanted, strict=True)]
            memory = {name: torch.cat([each[name] for each in kept if each is not None]) for name in empty}
        try:
            actions, after = self.model.predict(
                together, memory, np.array(fresh), deterministic=deterministic, action_masks=masks
            )
        except SurefootError as why:
            raise Refused("invalid", str(why), pointer="/") from why
        answers: list[schema.Act] = []
        for row, new in enumerate(wanted):
            if self.remembers and after is not None and new.episode is not UNSET:
                self._episodes[new.episode] = {name: x[row : row + 1] for name, x in after.items()}
                self._episodes.move_to_end(new.episode)
            answers.append(schema.Act(action=plain(_row(actions, row)), began=fresh[row]))
        while len(self._episodes) > EPISODES:
            self._episodes.popitem(last=False)
        return answers

    def _memory(self, new: schema.NewAct) -> Any:
        return None if new.episode is UNSET else self._episodes.get(new.episode)

    def _check_episodes(self, wanted: Sequence[schema.NewAct], pointer: str) -> None:
        named = [new.episode for new in wanted]
        if self.remembers and UNSET in named:
            where = f"{pointer.format(named.index(UNSET))}/episode"
            raise Refused("invalid", "this policy remembers: say which episode it is in", pointer=where)
        given = [name for name in named if name is not UNSET]
        if self.remembers and len(set(given)) < len(given):
            raise Refused(
                "invalid", "one step of an episode at a time: two here have the same episode", pointer="/acts"
            )

    def _parts(self) -> Mapping[str | None, Any]:
        """Return {name: space} of the env's observation; {None: space} for one without names."""
        from gymnasium import spaces

        space = self.spaces.gym_observation
        if not isinstance(space, spaces.Dict):
            return {None: space}
        return {name: part for name, part in space.items() if name in self.spaces.observation}

    def _observation(self, new: schema.NewAct, pointer: str) -> Any:
        parts = self._parts()
        if None in parts:
            if (new.observation is UNSET) == (new.observation_b64 is UNSET):
                raise Refused("invalid", "give one of observation and observation_b64", pointer=pointer or "/")
            where = f"{pointer}/observation" + ("" if new.observation_b64 is UNSET else "_b64")
            return _fit(parts[None], new.observation, new.observation_b64, where)
        listed = {} if new.parts is UNSET else new.parts
        coded = {} if new.parts_b64 is UNSET else new.parts_b64
        if set(listed) | set(coded) != set(parts) or set(listed) & set(coded):
            names = ", ".join(map(str, parts))
            raise Refused("invalid", f"give {names}, each once, in parts or parts_b64", pointer=f"{pointer}/parts")
        return {
            name: _fit(space, listed.get(str(name), UNSET), coded.get(str(name), UNSET), f"{pointer}/parts/{name}")
            for name, space in parts.items()
        }


def _fit(space: Any, numbers: Any, b64: Any, where: str) -> np.ndarray:
    """Return flat numbers in the shape of a space. Raise `Refused` if they do not fit."""
    flat = np.frombuffer(b64, "<f4") if numbers is UNSET and len(b64) % 4 == 0 else numbers
    shape = tuple(space.shape or ())
    if flat is UNSET or len(flat) != math.prod(shape):
        count = "bytes that are no float32" if flat is UNSET else f"{len(flat)} numbers"
        detail = f"{count}; this observation is {list(shape)}, laid flat {math.prod(shape)}"
        raise Refused("invalid", detail, pointer=where)
    row = np.asarray(flat, np.float32)
    if not np.isfinite(row).all():
        raise Refused("invalid", "NaN or infinity", pointer=f"{where}/{int(np.flatnonzero(~np.isfinite(row))[0])}")
    return row.astype(space.dtype).reshape(shape)


def _row(actions: Any, row: int) -> Any:
    """Return one action of a batch, which can be nested in dicts and tuples."""
    if isinstance(actions, Mapping):
        return {str(name): _row(part, row) for name, part in actions.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(actions, tuple):
        return [_row(part, row) for part in actions]  # pyright: ignore[reportUnknownVariableType]
    return actions[row]


def plain(action: Any) -> Any:
    """Return an action as JSON values."""
    match action:
        case dict():
            return {str(name): plain(part) for name, part in action.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case list() | tuple():
            return [plain(part) for part in action]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return np.asarray(action).tolist()
