"""Surefoot: one PPO engine that shows its work. The public names; each is loaded when it is first used."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surefoot.data.check import check_store as check_store
    from surefoot.data.rollout import Rollout as Rollout
    from surefoot.envs.check import check_env as check_env
    from surefoot.envs.make import make_world as make_world
    from surefoot.errors import SurefootError as SurefootError
    from surefoot.learn.config import PPOConfig as PPOConfig
    from surefoot.learn.learner import Learner as Learner
    from surefoot.learn.report import UpdateReport as UpdateReport
    from surefoot.nets.actor_critic import ActorCritic as ActorCritic
    from surefoot.nets.config import NetConfig as NetConfig
    from surefoot.train.collect.collector import Collector as Collector
    from surefoot.train.config import CollectConfig as CollectConfig
    from surefoot.train.facade import PPO as PPO
    from surefoot.train.facade import evaluate_policy as evaluate_policy
    from surefoot.train.facade import make_vec_env as make_vec_env
    from surefoot.train.interop.sb3_names import Monitor as Monitor
    from surefoot.train.interop.sb3_names import VecNormalize as VecNormalize
    from surefoot.train.loop import live as live
    from surefoot.train.loop import train as train
    from surefoot.train.spec import RunSpec as RunSpec
    from surefoot.train.training import Training as Training

    __version__: str

_HOME = {
    "ActorCritic": "nets.actor_critic",
    "CollectConfig": "train.config",
    "Collector": "train.collect",
    "Learner": "learn.learner",
    "Monitor": "train.compat",
    "NetConfig": "nets.config",
    "PPO": "train.facade",
    "PPOConfig": "learn.config",
    "Rollout": "data.rollout",
    "RunSpec": "train.spec",
    "SurefootError": "errors",
    "Training": "train.training",
    "UpdateReport": "learn.report",
    "VecNormalize": "train.compat",
    "check_env": "envs.check",
    "check_store": "data.check",
    "evaluate_policy": "train.facade",
    "live": "train.loop",
    "make_vec_env": "train.facade",
    "make_world": "envs.make",
}

__all__ = [
    "PPO",
    "ActorCritic",
    "CollectConfig",
    "Collector",
    "Learner",
    "Monitor",
    "NetConfig",
    "PPOConfig",
    "Rollout",
    "RunSpec",
    "SurefootError",
    "Training",
    "UpdateReport",
    "VecNormalize",
    "__version__",
    "check_env",
    "check_store",
    "evaluate_policy",
    "live",
    "make_vec_env",
    "make_world",
    "train",
]


class _TrainRoom(ModuleType):
    """The room `surefoot.train`, which can be called as well: the loop has the room's name, and an attribute of a
    package that is also a submodule can only be the submodule."""

    def __call__(self, rollouts: Any, learner: Any) -> Any:
        """Learn from each rollout as it comes; a report per update."""
        from surefoot.train.loop import train

        return train(rollouts, learner)


import_module("surefoot.train").__class__ = _TrainRoom


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("surefoot")
    if name not in _HOME:
        raise AttributeError(f"module 'surefoot' has no attribute {name!r}")
    value = getattr(import_module(f"surefoot.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
