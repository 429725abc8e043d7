"""Everything that defines a run, as one value that fits into JSON. No torch here."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from surefoot.data.spaces import ActionSpace, Box
from surefoot.errors import ConfigError
from surefoot.learn.config import PPOConfig
from surefoot.learn.presets import family_preset, preset
from surefoot.nets.config import NetConfig
from surefoot.train.config import CollectConfig, split_settings

Backend = Literal["auto", "surefoot", "gymnasium", "envpool"]
# Length of a run whose preset has none. Longer would cost time in easy envs, shorter would end before hard ones are learned.
DEFAULT_TOTAL_STEPS = 500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """Everything that defines a run, as one value that can be written as JSON. `make_spec` fills it from a preset.

    Args:
        env: Id of the environment, or module:function.
        env_kwargs: Arguments of the environment's constructor.
        backend: Implementation of the environment.
        preset: Name of the preset that the settings started from.
        total_steps: Env steps to train for.
        ppo: Settings of the learner.
        net: Settings of the network.
        collect: Settings of collection: scaling, curiosity, worker processes.
        eval_every: Env steps between evaluations; 0 for none.
        eval_episodes: Episodes per evaluation.
        checkpoint_every: Env steps between checkpoints.
        keep_checkpoints: Number of recent checkpoints that are kept, besides the best.
        rollouts: Where rollouts are collected: "here" (this process), "local:N" or "ray:N@ADDRESS".
        learners: Processes that learn together, each from its share of the streams.
        overlap: Whether remote workers collect with the previous policy while the learner learns.
    """

    env: str
    env_kwargs: dict[str, Any] = field(default_factory=dict[str, Any])
    backend: Backend = "auto"
    preset: str
    total_steps: int
    ppo: PPOConfig
    net: NetConfig
    collect: CollectConfig
    eval_every: int
    eval_episodes: int = 10
    checkpoint_every: int
    keep_checkpoints: int = 3
    rollouts: str = "here"
    learners: int = 1
    overlap: bool = False

    def __post_init__(self) -> None:
        for name, least in (("total_steps", 1), ("eval_every", 0), ("eval_episodes", 1), ("checkpoint_every", 1)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least {least}")
        if self.keep_checkpoints < 1:
            raise ConfigError(f"keep_checkpoints is {self.keep_checkpoints}; it must be at least 1")

    @property
    def seed(self) -> int:
        """Seed of everything random."""
        return self.ppo.seed

    @property
    def total_updates(self) -> int:
        """Number of updates in `total_steps`, rounded up."""
        return -(-self.total_steps // self.ppo.batch_size)

    def to_json(self) -> dict[str, Any]:
        """Return JSON values from which `from_json` builds an equal spec."""
        plain = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return plain | {name: plain[name].to_json() for name in ("ppo", "net", "collect")}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunSpec:
        """Return the spec that `to_json` wrote; unknown fields are ignored."""
        try:
            plain = msgspec.to_builtins(msgspec.convert(data, _Plain))
        except msgspec.ValidationError as error:
            raise ConfigError(f"the spec of the run has a bad value: {error}") from None
        parts: dict[str, Any] = {
            "ppo": PPOConfig.from_json(data["ppo"]),
            "net": NetConfig.from_json(data["net"]),
            "collect": CollectConfig.from_json(data["collect"]),
        }
        known = {f.name for f in dataclasses.fields(cls)} & data.keys()
        return cls(**{name: value for name, value in plain.items() if name in known} | parts)


class _Plain(msgspec.Struct):
    """The fields of a spec in a file, by type; the ranges are those of `RunSpec`."""

    env: str
    preset: str
    total_steps: int
    ppo: dict[str, Any]
    net: dict[str, Any]
    collect: dict[str, Any]
    eval_every: int
    checkpoint_every: int
    env_kwargs: dict[str, Any] = {}
    backend: Backend = "auto"
    eval_episodes: int = 10
    keep_checkpoints: int = 3
    rollouts: str = "here"
    learners: int = 1
    overlap: bool = False


def make_spec(
    env: str,
    action: ActionSpace,
    *,
    preset_name: str | None = None,
    settings: Mapping[str, Any] | None = None,
    total_steps: int | None = None,
    **fixed: Any,
) -> RunSpec:
    """Return a spec for an env: the preset of its family, or `preset_name`, with `settings` by any of their names.

    `fixed` are fields of `RunSpec`. By default a run has 10 evaluations and 20 checkpoints.
    """
    chosen = preset(preset_name or family_preset(env, continuous=isinstance(action, Box)))
    ppo, net, collect = split_settings(settings or {})
    steps = total_steps if total_steps is not None else chosen.total_steps or DEFAULT_TOTAL_STEPS
    explicit = {name: value for name, value in fixed.items() if value is not None}
    defaults: dict[str, Any] = {"eval_every": max(1, steps // 10), "checkpoint_every": max(1, steps // 20)}
    return RunSpec(
        env=env,
        preset=chosen.name,
        total_steps=steps,
        ppo=PPOConfig(**chosen.ppo).replace(**ppo),
        net=NetConfig(**chosen.net).replace(**net),
        collect=CollectConfig(**chosen.collect).replace(**collect),
        **(defaults | explicit),
    )
