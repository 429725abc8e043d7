"""Hyperparameter search for an environment: training and evaluation of a trial."""

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
from surefoot.train.spec_worlds import WorldMaker
from surefoot.train.training import Training

# Environments that play the evaluation episodes of a trial in parallel. More use more memory for each trial.
EVAL_STREAMS = 10


class EnvTask:
    """An environment with base settings, some of which are searched.

    Args:
        base: The settings before the search.
        make: Makes the environments.
        action: The action space.
        held: Settings that the user has fixed; they are part of `base` and are searched only if `space` names them.
        space: Ranges that replace or extend the default ones; None as a range removes the setting.
    """

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
        self.space, self.base = _space(base, action, held or {}, space or {})
        self.moving = MOVING & set(self.space)

    def trial_run(self, params: dict[str, Any], seeds: Sequence[int]) -> EnvTrialRun:
        return EnvTrialRun([self.spec_of(params, seed) for seed in seeds], self.make)

    def settings(self, params: dict[str, Any]) -> dict[str, Any]:
        # Only differences from the preset are written, so that best.yaml stays short.
        best = self.spec_of(params, self.spec.seed).to_json()
        preset = make_spec(self.name, self.action, preset_name=self.spec.preset).to_json()
        settings: dict[str, Any] = {}
        for part in ("ppo", "net", "collect"):
            settings |= {name: x for name, x in best[part].items() if name in params or x != preset[part][name]}
        # They belong to a run, not to the settings that were found.
        for name in ("seed", "workers"):
            settings.pop(name, None)
        return {"preset": self.spec.preset, "total_steps": self.spec.total_steps, **settings}

    def spec_of(self, params: dict[str, Any], seed: int) -> RunSpec:
        """Return the base with `params` and `seed`. If the base has a schedule, a number replaces its start."""
        # Parallelism is across trials (--jobs, Ray), so the environments of a trial have no workers.
        parts: dict[str, dict[str, Any]] = {"ppo": {"seed": seed}, "net": {}, "collect": {"workers": 0}}
        for name, value in params.items():
            owner = _owner(self.spec, name)
            part = "ppo" if owner is self.spec.ppo else "net" if owner is self.spec.net else "collect"
            parts[part][name] = replace_start(getattr(owner, name), value)
        return replace(
            self.spec,
            ppo=self.spec.ppo.replace(**parts["ppo"]),
            net=self.spec.net.replace(**parts["net"]),
            collect=self.spec.collect.replace(**parts["collect"]),
        )


class EnvTrialRun:
    """Trainings of one setting, one per seed, advanced together."""

    def __init__(self, specs: Sequence[RunSpec], make: WorldMaker) -> None:
        self.trainings = [Training(spec, make=make) for spec in specs]
        self._eval_world: World | None = None

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
        if self._eval_world is not None:
            self._eval_world.close()

    def _score(self, training: Training, stop: Callable[[], bool]) -> float:
        episodes = training.spec.eval_episodes
        if self._eval_world is None:
            self._eval_world = training.make(min(episodes, EVAL_STREAMS))
        seed = training.spec.seed + EVAL_SEED_OFFSET
        result = play(training.policy, self._eval_world, episodes, seed=seed, device=training.device, stop=stop)
        # `stop` may have ended the evaluation before the first episode did.
        return result.mean if result.returns else float("nan")


def _space(
    base: RunSpec, action: ActionSpace, held: Mapping[str, Any], requested: Mapping[str, Any]
) -> tuple[Space, dict[str, Any]]:
    """Return the searched ranges, widened to contain the base, and the values of the base."""
    defaults = {**SEARCH, **(SEARCH_CONTINUOUS if isinstance(action, Box) and not base.net.beta else {})}
    fixed = {name for part in split_settings(held) for name in part}
    changes = {PPO_NAMES.current(name): range_ for name, range_ in requested.items()}
    space = changed({name: dim for name, dim in defaults.items() if name not in fixed}, changes)
    if not space:
        raise ConfigError("there is nothing to search: every setting of the space is fixed. Free one of them")
    widened: Space = {}
    values: dict[str, Any] = {}
    for name, dim in space.items():
        value = start_of(getattr(_owner(base, name), name))
        if isinstance(dim, Range) and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise ConfigError(
                f"{name} is {value!r} before the search but its range is numeric; pass a list of values instead"
            )
        if isinstance(dim, Range) and dim.log and value <= 0:
            # A log scale has no 0; its lower end (1e-8 for ent_coef) has the same effect.
            value = dim.low
        widened[name], values[name] = dim.with_value(value), value
        # Construct a config with every value, so that an invalid one is reported before the first trial.
        for other in dim.values if isinstance(dim, Choice) else (dim.low, dim.high):
            _owner(base, name).replace(**{name: other})
    return widened, values


def _owner(spec: RunSpec, name: str) -> PPOConfig | NetConfig | CollectConfig:
    for config in (spec.ppo, spec.net, spec.collect):
        if name in {field.name for field in fields(config)}:
            return config
    raise ConfigError(f"{name} is not a setting that can be searched; `surefoot knobs` lists the names")


def start_of(setting: Any) -> Any:
    """Return the value that a search changes: the start of a schedule, or the value itself."""
    return setting.start if isinstance(setting, Linear | Cosine | StepDecay) else setting


def replace_start(setting: Any, value: Any) -> Any:
    """Return `value`, or the schedule `setting` with `value` as its start and its end scaled in proportion."""
    if not isinstance(setting, Linear | Cosine | StepDecay) or not isinstance(value, int | float):
        return value
    # A StepDecay has no end: it multiplies the start.
    if isinstance(setting, StepDecay):
        return replace(setting, start=float(value))
    return replace(setting, start=float(value), end=setting.end * value / setting.start)
