"""Tool selection: a policy selects a tool for a query, runs it, and learns from outcomes and feedback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surefoot._lazy import lazy_names
from surefoot._moved import moved_names

if TYPE_CHECKING:
    from surefoot.decide.rewards import RewardConfig as RewardConfig
    from surefoot.decide.tools.agent import ToolAgent as ToolAgent
    from surefoot.decide.tools.cache import QueryCache as QueryCache
    from surefoot.decide.tools.memory import TextMemory as TextMemory
    from surefoot.decide.tools.protocol import ToolResult as ToolResult
    from surefoot.decide.tools.protocol import tool as tool
    from surefoot.decide.tools.run import ToolRun as ToolRun
    from surefoot.decide.tools.run_log import RunLog as RunLog
    from surefoot.decide.tools.schedule import TrainingSchedule as TrainingSchedule

_load, __dir__ = lazy_names(__name__)
_load_moved = moved_names(__name__)


def __getattr__(name: str) -> Any:
    return _load(name) if name in __dir__() else _load_moved(name)
