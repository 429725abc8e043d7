"""Tools for queries: a policy chooses, the tool really runs, and what comes of it makes the next choice better."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surefoot.decide.rewards import RewardConfig as RewardConfig
    from surefoot.decide.tools.agent import ToolAgent as ToolAgent
    from surefoot.decide.tools.agent import WeavingShuttle as WeavingShuttle
    from surefoot.decide.tools.cache import QueryCache as QueryCache
    from surefoot.decide.tools.encoding import decode_action as decode_action
    from surefoot.decide.tools.encoding import encode_action as encode_action
    from surefoot.decide.tools.encoding import encode_observation as encode_observation
    from surefoot.decide.tools.extract import RewardExtractor as RewardExtractor
    from surefoot.decide.tools.memory import Memory as Memory
    from surefoot.decide.tools.reflection import ReflectionBuffer as ReflectionBuffer
    from surefoot.decide.tools.schedule import TrainingSchedule as TrainingSchedule
    from surefoot.decide.tools.spacetime import FabricCollection as FabricCollection
    from surefoot.decide.tools.spacetime import Spacetime as Spacetime
    from surefoot.decide.tools.toolbox import ToolResult as ToolResult
    from surefoot.decide.tools.toolbox import tool as tool
    from surefoot.decide.tools.trainer import PPOConfig as PPOConfig
    from surefoot.decide.tools.trainer import PPOTrainer as PPOTrainer
    from surefoot.decide.tools.weaving import Query as Query

_HOME = {
    "FabricCollection": "tools.spacetime",
    "Memory": "tools.memory",
    "PPOConfig": "tools.trainer",
    "PPOTrainer": "tools.trainer",
    "Query": "tools.weaving",
    "QueryCache": "tools.cache",
    "ReflectionBuffer": "tools.reflection",
    "RewardConfig": "rewards",
    "RewardExtractor": "tools.extract",
    "Spacetime": "tools.spacetime",
    "ToolAgent": "tools.agent",
    "ToolResult": "tools.toolbox",
    "TrainingSchedule": "tools.schedule",
    "WeavingShuttle": "tools.agent",
    "decode_action": "tools.encoding",
    "encode_action": "tools.encoding",
    "encode_observation": "tools.encoding",
    "tool": "tools.toolbox",
}

__all__ = [
    "FabricCollection",
    "Memory",
    "PPOConfig",
    "PPOTrainer",
    "Query",
    "QueryCache",
    "ReflectionBuffer",
    "RewardConfig",
    "RewardExtractor",
    "Spacetime",
    "ToolAgent",
    "ToolResult",
    "TrainingSchedule",
    "WeavingShuttle",
    "decode_action",
    "encode_action",
    "encode_observation",
    "tool",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'surefoot.decide.tools' has no attribute {name!r}")
    value = getattr(import_module(f"surefoot.decide.{_HOME[name]}"), name)
    globals()[name] = value
    return value
