"""HoloLoom's names over `surefoot.decide.tools`: its usage examples run with only their import lines changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surefoot._lazy import lazy_names

if TYPE_CHECKING:
    from surefoot.compat.hololoom.buffer import ReflectionBuffer as ReflectionBuffer
    from surefoot.compat.hololoom.buffer import ReflectionMetrics as ReflectionMetrics
    from surefoot.compat.hololoom.buffer import RewardConfig as RewardConfig
    from surefoot.compat.hololoom.buffer import RewardExtractor as RewardExtractor
    from surefoot.compat.hololoom.shuttle import Memory as Memory
    from surefoot.compat.hololoom.shuttle import PatternCard as PatternCard
    from surefoot.compat.hololoom.shuttle import Query as Query
    from surefoot.compat.hololoom.shuttle import QueryCache as QueryCache
    from surefoot.compat.hololoom.shuttle import ToolResult as ToolResult
    from surefoot.compat.hololoom.shuttle import TrainingSchedule as TrainingSchedule
    from surefoot.compat.hololoom.shuttle import WeavingShuttle as WeavingShuttle
    from surefoot.compat.hololoom.shuttle import decode_action as decode_action
    from surefoot.compat.hololoom.shuttle import encode_action as encode_action
    from surefoot.compat.hololoom.shuttle import encode_observation as encode_observation
    from surefoot.compat.hololoom.shuttle import tool as tool
    from surefoot.compat.hololoom.signals import LearningSignal as LearningSignal
    from surefoot.compat.hololoom.spacetime import FabricCollection as FabricCollection
    from surefoot.compat.hololoom.spacetime import Spacetime as Spacetime
    from surefoot.compat.hololoom.spacetime import WeavingTrace as WeavingTrace
    from surefoot.compat.hololoom.trainer import PPOConfig as PPOConfig
    from surefoot.compat.hololoom.trainer import PPOTrainer as PPOTrainer

__getattr__, __dir__ = lazy_names(__name__)
