"""Surefoot: one PPO engine that shows its work. The public names; each is loaded when it is first used."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import surefoot.train as _train
from surefoot._lazy import lazy_names
from surefoot._moved import MovedFinder

if TYPE_CHECKING:
    from surefoot._version import __version__ as __version__
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
    from surefoot.train.interop.sb3_functions import evaluate_policy as evaluate_policy
    from surefoot.train.interop.sb3_functions import make_vec_env as make_vec_env
    from surefoot.train.interop.sb3_names import VecNormalize as VecNormalize
    from surefoot.train.loop import live as live
    from surefoot.train.loop import training_loop as training_loop
    from surefoot.train.spec import RunSpec as RunSpec
    from surefoot.train.training import Training as Training

__getattr__, __dir__ = lazy_names(__name__)

sys.meta_path.append(MovedFinder())


class _CallableTrain(ModuleType):
    """Deprecated: lets `surefoot.train(rollouts, learner)` work for one more release. Use `training_loop`."""

    def __call__(self, rollouts: Any, learner: Any) -> Any:
        """Warn and return `training_loop(rollouts, learner)`."""
        import warnings

        from surefoot.train.loop import training_loop

        warnings.warn(
            "surefoot.train(...) is now surefoot.training_loop(...); the old name will be removed in the next release",
            DeprecationWarning,
            stacklevel=2,
        )
        return training_loop(rollouts, learner)


sys.modules[_train.__name__].__class__ = _CallableTrain
