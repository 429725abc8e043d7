"""What nodes do when they fire: thin callables over the library. Exported programs import their names from here."""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOME = {
    "ActionProcessor": "worlds",
    "Batch": "merge",
    "CheckpointNode": "look",
    "Condition": "values",
    "ConflictStats": "town",
    "Environment": "worlds",
    "Evaluation": "look",
    "FlagConstant": "values",
    "FloatConstant": "values",
    "HighLevelPPO": "hierarchy",
    "IntConstant": "values",
    "KLPenalty": "language",
    "LMSampler": "language",
    "LMTrainer": "language",
    "LowLevelPPO": "hierarchy",
    "Math": "values",
    "Normalize": "worlds",
    "ObservationNormalizer": "worlds",
    "Or": "merge",
    "PPOAgent": "agent",
    "PPOTrainer": "trainer",
    "Pick": "values",
    "Plot": "look",
    "Print": "look",
    "PromptSource": "language",
    "QueryEncoder": "tools",
    "QuerySource": "tools",
    "RNDCuriosity": "extras",
    "Recorder": "look",
    "RewardModel": "language",
    "RewardShaping": "worlds",
    "Rollouts": "fused",
    "Scenario": "town",
    "ScheduleNode": "extras",
    "Split": "merge",
    "Step": "worlds",
    "StringConstant": "values",
    "SubGoal": "hierarchy",
    "ToolBox": "tools",
    "ToolExam": "tools",
    "ToolPolicy": "tools",
    "ToolReward": "tools",
    "ToolRunner": "tools",
    "ToolTrainer": "tools",
    "TownStep": "town",
    "node_seed": "clock",
    "ticks_for": "clock",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'surefoot.graph.nodes' has no attribute {name!r}")
    value = getattr(import_module(f"surefoot.graph.nodes.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_HOME)
