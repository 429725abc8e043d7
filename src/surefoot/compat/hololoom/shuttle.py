"""WeavingShuttle: a `ToolAgent` under HoloLoom's names."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from surefoot.compat.hololoom.buffer import ReflectionBuffer
from surefoot.compat.hololoom.signals import LearningSignal
from surefoot.compat.hololoom.spacetime import Spacetime
from surefoot.decide.core.explanation import Explanation
from surefoot.decide.policy.choosers import Chooser
from surefoot.decide.policy.ppo import PPOChooser
from surefoot.decide.rewards import Feedback, Reward
from surefoot.decide.tools.agent import SHIPPED, ToolAgent, run_sync
from surefoot.decide.tools.cache import QueryCache as QueryCache
from surefoot.decide.tools.depth import Depth
from surefoot.decide.tools.memory import TextMemory
from surefoot.decide.tools.protocol import Tool
from surefoot.decide.tools.protocol import ToolResult as ToolResult
from surefoot.decide.tools.protocol import tool as tool
from surefoot.decide.tools.query_features import encode_features
from surefoot.decide.tools.schedule import TrainingSchedule as TrainingSchedule
from surefoot.errors import UnknownOption
from surefoot.learn.report import UpdateReport

Memory, PatternCard = TextMemory, Depth
TOOL_TO_INDEX = {name: index for index, name in enumerate(SHIPPED)}


@dataclass(frozen=True, slots=True)
class Query:
    """A question, and metadata to store with it."""

    text: str
    metadata: Mapping[str, Any] | None = None


class PolicyView:
    """`shuttle.policy`: its core chooses tools and is trained by a PPOTrainer; it stays the same over all queries."""

    def __init__(self, agent: ToolAgent) -> None:
        self._agent = agent

    @property
    def core(self) -> Chooser:
        return self._agent.chooser

    @property
    def version(self) -> int:
        return self._agent.version


class WeavingShuttle:
    """Answer queries, store their rewards and learn. Async; `…_sync` and `…_now` need no event loop.

    `shuttle.agent` is the `ToolAgent`; its other attributes are available on the shuttle too.
    """

    def __init__(self, tools: Iterable[Tool] = (), *, buffer: ReflectionBuffer | None = None, **options: Any) -> None:
        # Its trainer is PPO; `ToolAgent` itself learns with another policy by default.
        options.setdefault("chooser", "ppo")
        self.agent = ToolAgent(tools, runs=None if buffer is None else buffer.runs, **options)
        self.buffer = ReflectionBuffer(runs=self.agent.runs) if buffer is None else buffer
        self.policy = PolicyView(self.agent)

    def __getattr__(self, name: str) -> Any:
        if name == "agent":  # before __init__ has set it
            raise AttributeError(name)
        return getattr(self.agent, name)

    @property
    def preferred_card(self) -> str | None:
        return self.agent.preferred_depth

    async def weave(self, query: str | Query, *, pattern: str | Depth | None = None, **options: Any) -> Spacetime:
        """Answer a query; `options` are those of `ToolAgent.answer_async`."""
        query = query if isinstance(query, Query) else Query(query)
        run = await self.agent.answer_async(query.text, depth=pattern, metadata=query.metadata, **options)
        return Spacetime.of(run)

    def weave_sync(self, query: str | Query, **options: Any) -> Spacetime:
        message = "an event loop is running; use `await agent.weave(…)` instead of weave_sync"
        return run_sync(self.weave(query, **options), message)

    async def reflect(
        self, spacetime: Spacetime, feedback: Feedback | None = None, reward: float | None = None
    ) -> Reward:
        """Store an answered query with its reward; it is on disk when this returns."""
        return await asyncio.to_thread(self.reflect_sync, spacetime, feedback, reward)

    def reflect_sync(
        self, spacetime: Spacetime, feedback: Feedback | None = None, reward: float | None = None
    ) -> Reward:
        return self.agent.feedback(spacetime.run(), feedback, reward)

    async def learn(self, force: bool = False) -> UpdateReport | None:
        """Learn from every finished episode."""
        return await asyncio.to_thread(self.agent.learn, force)

    def learn_sync(self, force: bool = False) -> UpdateReport | None:
        return self.agent.learn(force)

    reflect_now, learn_now = reflect_sync, learn_sync

    def preview(self, query: str, *, pattern: str | Depth | None = None) -> dict[str, float]:
        return self.agent.preview(query, depth=pattern)

    def explain(self, spacetime: Spacetime, nearest: int = 3) -> Explanation:
        return self.agent.explain(spacetime.run(), nearest)

    def apply_learning_signals(self, signals: Iterable[LearningSignal]) -> list[str]:
        """Apply suggestions; return one sentence per change."""
        changes, thresholds, core = list[str](), self.agent.thresholds, self.agent.chooser
        for signal in signals:
            tool, kind = signal.tool, signal.signal_type
            if kind == "pattern_preference" and signal.pattern and signal.pattern != self.preferred_card:
                self.agent.preferred_depth = signal.pattern
                changes.append(f"queries without a card use {signal.pattern}")
            elif kind == "threshold_adjustment" and tool and signal.confidence_threshold:
                thresholds[tool] = signal.confidence_threshold
                changes.append(f"{tool} is used only above {signal.confidence_threshold:.0%} expected success")
            elif kind == "threshold_adjustment" and isinstance(core, PPOChooser):
                core.config = replace(core.config, sharpness=max(20.0, 0.8 * core.config.sharpness))
                changes.append(f"exploration increased: sharpness is now {core.config.sharpness:.0f}")
            elif kind == "bandit_update" and tool in thresholds and (signal.reward or 0.0) >= 0.5:
                del thresholds[tool]
                changes.append(f"{tool} succeeds again and is used without a threshold")
        return changes

    async def analyze_and_learn(self, force: bool = False) -> list[str]:
        """Analyse the buffer, apply the suggestions and learn; return the changes."""
        changes = self.apply_learning_signals(await self.buffer.analyze_and_learn(force))
        await self.learn()
        return changes

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.agent.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.agent.close()


def encode_observation(observation: Mapping[str, Any]) -> np.ndarray:
    """Return [25] float32: motifs as 0 or 1, then context, scales, threads and the retrieval mode."""
    return encode_features(
        observation.get("motifs_detected", ()),
        context=observation.get("context_shards_count", 0),
        scales=len(observation.get("embedding_scales_used", ())),
        activated=observation.get("threads_activated_count", 0),
        retrieval=observation.get("retrieval_mode", ""),
    )


def encode_action(tool: str, names: Mapping[str, int] = TOOL_TO_INDEX) -> int:
    """Return the index of a tool."""
    if tool not in names:
        raise UnknownOption(f"no tool {tool!r}; there are {', '.join(names)}")
    return names[tool]


def decode_action(index: int, names: Mapping[str, int] = TOOL_TO_INDEX) -> str:
    """Return the tool with that index."""
    for name, position in names.items():
        if position == index:
            return name
    raise UnknownOption(f"no tool has index {index}; there are {len(names)}")
