"""Everything that defines a run, as one value that fits into JSON; and how a few words become it. No torch here."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from surefoot.data.spaces import ActionSpace, Box
from surefoot.errors import ConfigError
from surefoot.learn.config import PPOConfig
from surefoot.learn.presets import family_preset, preset
from surefoot.nets.config import NetConfig
from surefoot.train.config import CollectConfig, split_settings

Backend = Literal["auto", "surefoot", "gymnasium", "envpool"]
DEFAULT_TOTAL_STEPS = 500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """What is trained, how, for how long, and how often it is looked at and saved."""

    env: str
    env_kwargs: dict[str, Any] = field(default_factory=dict[str, Any])
    backend: Backend = "auto"
    """Whose implementation of the env."""
    preset: str
    """The set of knobs it started from."""
    total_steps: int
    ppo: PPOConfig
    net: NetConfig
    collect: CollectConfig
    eval_every: int
    """Env steps between evaluations; 0 for none."""
    eval_episodes: int = 10
    checkpoint_every: int
    """Env steps between checkpoints."""
    keep_checkpoints: int = 3
    rollouts: str = "here"
    """Who makes the rollouts: this process, or workers as `surefoot.scale` says."""
    learners: int = 1
    """Processes that learn as one, each from its share of the streams."""
    overlap: bool = False
    """Workers elsewhere walk while the learner learns, with the policy before."""

    def __post_init__(self) -> None:
        for name, least in (("total_steps", 1), ("eval_every", 0), ("eval_episodes", 1), ("checkpoint_every", 1)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least {least}")
        if self.keep_checkpoints < 1:
            raise ConfigError(f"keep_checkpoints is {self.keep_checkpoints}; at least the newest one is kept")

    @property
    def seed(self) -> int:
        """Everything random follows from it."""
        return self.ppo.seed

    @property
    def total_updates(self) -> int:
        """How many updates `total_steps` makes, the last one perhaps a little over."""
        return -(-self.total_steps // self.ppo.batch_size)

    def to_json(self) -> dict[str, Any]:
        """JSON values from which `from_json` makes an equal spec."""
        plain = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return plain | {name: plain[name].to_json() for name in ("ppo", "net", "collect")}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunSpec:
        """What `to_json` wrote."""
        known = {f.name for f in dataclasses.fields(cls)}
        parts: dict[str, Any] = {
            "ppo": PPOConfig.from_json(data["ppo"]),
            "net": NetConfig.from_json(data["net"]),
            "collect": CollectConfig.from_json(data["collect"]),
        }
        return cls(**{name: value for name, value in data.items() if name in known} | parts)


def make_spec(
    env: str,
    action: ActionSpace,
    *,
    preset_name: str | None = None,
    settings: Mapping[str, Any] | None = None,
    total_steps: int | None = None,
    **fixed: Any,
) -> RunSpec:
    """A spec from an env's name, the preset of its family (unless another is named) and any settings by any name.

    `fixed` are fields of RunSpec itself. Evaluations and checkpoints default to ten and twenty a run.
    """
    chosen = preset(preset_name or family_preset(env, continuous=isinstance(action, Box)))
    ppo, net, collect = split_settings(settings or {})
    steps = total_steps if total_steps is not None else chosen.total_steps or DEFAULT_TOTAL_STEPS
    given = {name: value for name, value in fixed.items() if value is not None}
    defaults: dict[str, Any] = {"eval_every": max(1, steps // 10), "checkpoint_every": max(1, steps // 20)}
    return RunSpec(
        env=env,
        preset=chosen.name,
        total_steps=steps,
        ppo=PPOConfig(**chosen.ppo).replace(**ppo),
        net=NetConfig(**chosen.net).replace(**net),
        collect=CollectConfig(**chosen.collect).replace(**collect),
        **(defaults | given),
    )
