"""Searching the settings of an env: what a trial trains, and how it is judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from surefoot.data.spaces import ActionSpace, Box
from surefoot.envs.api import World
from surefoot.errors import ConfigError
from surefoot.learn.aliases import PPO_NAMES
from surefoot.learn.config import PPOConfig
from surefoot.learn.schedule import Cosine, Linear, StepDecay
from surefoot.learn.search_ranges import MOVING, SEARCH, SEARCH_CONTINUOUS, Choice, Range, Space, changed
from surefoot.nets.config import NetConfig
from surefoot.train.config import CollectConfig, split_settings
from surefoot.train.evaluate import EVAL_SEED_OFFSET, play
from surefoot.train.spec import RunSpec, make_spec
from surefoot.train.training import Training, WorldMaker

EVAL_STREAMS = 10


class EnvTask:
    """An env with a base of settings, some of which are searched."""

    def __init__(
        self,
        base: RunSpec,
        make: WorldMaker,
        action: ActionSpace,
        *,
        held: Mapping[str, Any] | None = None,
        space: Mapping[str, Any] | None = None,
    ) -> None:
        self.name, self.spec, self.make, self.action = base.env, base, make, action
        # `held` are settings the user insists on: part of `base`, and not searched unless `space` names them.
        self.space, self.base = _space(base, action, held or {}, space or {})
        self.moving = MOVING & set(self.space)

    def contest(self, params: dict[str, Any], seeds: Sequence[int]) -> EnvContest:
        return EnvContest([self.spec_of(params, seed) for seed in seeds], self.make)

    def settings(self, params: dict[str, Any]) -> dict[str, Any]:
        chosen, plain = (
            self.spec_of(params, self.spec.seed),
            make_spec(self.name, self.action, preset_name=self.spec.preset),
        )
        settings: dict[str, Any] = {}
        for part in ("ppo", "net", "collect"):
            defaults, usual = chosen.to_json()[part], plain.to_json()[part]
            settings |= {name: value for name, value in defaults.items() if name in params or value != usual[name]}
        for name in ("seed", "workers"):
            settings.pop(name, None)
        return {"preset": self.spec.preset, "total_steps": self.spec.total_steps, **settings}

    def spec_of(self, params: dict[str, Any], seed: int) -> RunSpec:
        """The base with `params`; a number stands for the start of a schedule, if the base has one."""
        parts: dict[str, dict[str, Any]] = {"ppo": {"seed": seed}, "net": {}, "collect": {"workers": 0}}
        for name, value in params.items():
            owner = _owner(self.spec, name)
            part = "ppo" if owner is self.spec.ppo else "net" if owner is self.spec.net else "collect"
            parts[part][name] = along(getattr(owner, name), value)
        return replace(
            self.spec,
            ppo=self.spec.ppo.replace(**parts["ppo"]),
            net=self.spec.net.replace(**parts["net"]),
            collect=self.spec.collect.replace(**parts["collect"]),
        )


class EnvContest:
    """Trainings of one setting, one a seed, taken forward together."""

    def __init__(self, specs: Sequence[RunSpec], make: WorldMaker) -> None:
        self.trainings = [Training(spec, make=make) for spec in specs]
        self._judge: World | None = None

    def advance(self, share: float, stop: Callable[[], bool]) -> list[float] | None:
        for training in self.trainings:
            until = share * training.spec.total_steps
            while training.env_steps < until and not training.finished:
                if stop():
                    return None
                training.update()
        scores = [self._score(training, stop) for training in self.trainings]
        return None if stop() else scores

    def state(self) -> dict[str, Any]:
        return {f"seed {training.spec.seed}": training.state() for training in self.trainings}

    def set_state(self, parts: dict[str, Any]) -> None:
        for training in self.trainings:
            training.set_state(parts[f"seed {training.spec.seed}"])

    def close(self) -> None:
        for training in self.trainings:
            training.close()
        if self._judge is not None:
            self._judge.close()

    def _score(self, training: Training, stop: Callable[[], bool]) -> float:
        episodes = training.spec.eval_episodes
        if self._judge is None:
            self._judge = training.make(min(episodes, EVAL_STREAMS))
        seed = training.spec.seed + EVAL_SEED_OFFSET
        played = play(training.policy, self._judge, episodes, seed=seed, device=training.device, stop=stop)
        return played.mean if played.returns else float("nan")


def _space(
    base: RunSpec, action: ActionSpace, held: Mapping[str, Any], requested: Mapping[str, Any]
) -> tuple[Space, dict[str, Any]]:
    """What is searched, wide enough for the base, and the base's values."""
    defaults = {**SEARCH, **(SEARCH_CONTINUOUS if isinstance(action, Box) and not base.net.beta else {})}
    fixed = {name for part in split_settings(held) for name in part}
    changes = {PPO_NAMES.current(name): range_ for name, range_ in requested.items()}
    space = changed({name: dim for name, dim in defaults.items() if name not in fixed}, changes)
    if not space:
        raise ConfigError("there is nothing to search: every setting of the space is fixed")
    widened: Space = {}
    values: dict[str, Any] = {}
    for name, dim in space.items():
        now = getattr(_owner(base, name), name)
        value = start_of(now)
        if isinstance(dim, Range) and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise ConfigError(
                f"{name} is {value!r} before the search and its range is of numbers; give a list of values"
            )
        if isinstance(dim, Range) and dim.log and value <= 0:
            value = dim.low  # an entropy bonus of 0 is as good as one of 1e-8
        widened[name], values[name] = dim.with_value(value), value
        for other in dim.values if isinstance(dim, Choice) else (dim.low, dim.high):
            _owner(base, name).replace(**{name: other})  # a value that cannot be is said before the first trial
    return widened, values


def _owner(spec: RunSpec, name: str) -> PPOConfig | NetConfig | CollectConfig:
    for config in (spec.ppo, spec.net, spec.collect):
        if name in {knob.name for knob in fields(config)}:
            return config
    raise ConfigError(f"{name} is no setting that can be searched; `surefoot knobs` lists them, by their own names")


def start_of(now: Any) -> Any:
    """The number that a search moves: a schedule's start, or the value itself."""
    return now.start if isinstance(now, Linear | Cosine | StepDecay) else now


def along(now: Any, value: Any) -> Any:
    """`value` in the place of `now`: of a schedule, its start, and its end in proportion."""
    if not isinstance(now, Linear | Cosine | StepDecay) or not isinstance(value, int | float):
        return value
    if isinstance(now, StepDecay):
        return replace(now, start=float(value))
    return replace(now, start=float(value), end=now.end * value / now.start)
