"""One query on its way through the stages: features, context, choice, tool, record."""

from __future__ import annotations

import time
import uuid
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from surefoot.decide.agent import Agent, Decided
from surefoot.decide.tools.cards import PatternCard
from surefoot.decide.tools.encoding import encode_observation, weighted
from surefoot.decide.tools.experience import decision_of
from surefoot.decide.tools.memory import Memory
from surefoot.decide.tools.motifs import detect
from surefoot.decide.tools.spacetime import Spacetime, WeavingTrace
from surefoot.decide.tools.toolbox import Request, Toolbox, ToolResult
from surefoot.errors import SurefootError


@dataclass(frozen=True, slots=True)
class Query:
    """A question, and whatever its asker wants to have kept with it."""

    text: str
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Loom:
    """What every query is woven on."""

    agent: Agent
    memory: Memory
    toolbox: Toolbox
    thresholds: Mapping[str, float]
    """Tools that are taken only where their calibrated success rate reaches this."""


class Weave:
    """One query on its way through the stages."""

    def __init__(self, loom: Loom, query: Query, card: PatternCard, names: list[str]) -> None:
        self.loom, self.query, self.card, self.names = loom, query, card, names
        self.trace = WeavingTrace(retrieval_mode=card.retrieval_mode, embedding_scales_used=list(card.scales))
        self.begin = time.perf_counter()

    async def run(self, arguments: Mapping[str, Any], greedy: bool) -> Spacetime:
        loom, trace, text = self.loom, self.trace, self.query.text
        context, decided, result = list[tuple[str, str]](), None, None
        stage = "feature_extraction"
        try:
            with self._stage("feature_extraction"):
                trace.motifs_detected = detect(text)
                vector = loom.agent.encoder.encode([text])[0]
            stage = "retrieval"
            with self._stage("retrieval"):
                context = self._retrieve(vector)
            stage = "convergence"
            with self._stage("convergence"):
                decided = self._decide(vector, greedy)
            stage = "tool_execution"
            with self._stage("tool_execution"):
                result = await self._execute(decided, context, arguments)
        except Exception as error:
            if not isinstance(error, SurefootError):
                trace.warnings.append(f"{stage} raised {type(error).__name__}, which is none of our own errors")
            trace.errors.append({"stage": stage, "type": type(error).__name__, "error": str(error)})
        return self._assemble(decided, result)

    def look(self) -> dict[str, float]:
        """How likely each tool is, without running any."""
        self.trace.motifs_detected = detect(self.query.text)
        vector = self.loom.agent.encoder.encode([self.query.text])[0]
        self._retrieve(vector)
        return self._decide(vector, greedy=False).probabilities

    @contextmanager
    def _stage(self, name: str) -> Generator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.trace.stage_durations[name] = 1000.0 * (time.perf_counter() - begin)

    def _retrieve(self, vector: np.ndarray) -> list[tuple[str, str]]:
        hits = self.loom.memory.search(self.query.text, vector, self.card)
        self.trace.threads_activated = [hit.shard.id for hit in hits]
        self.trace.context_shards_count = len(hits)
        return [(hit.shard.id, hit.shard.text) for hit in hits]

    def _decide(self, vector: np.ndarray, greedy: bool) -> Decided:
        loom, trace = self.loom, self.trace
        observation = {
            "motifs_detected": trace.motifs_detected,
            "embedding_scales_used": trace.embedding_scales_used,
            "context_shards_count": trace.context_shards_count,
            "retrieval_mode": trace.retrieval_mode,
            "threads_activated_count": len(trace.threads_activated),
        }
        extra = weighted(encode_observation(observation))
        names = self._likely_enough(vector, extra) if loom.thresholds else self.names
        return loom.agent.decide(
            self.query.text, vector=vector, extra=extra, allowed=names, greedy=greedy, mode="shadow"
        )

    def _likely_enough(self, vector: np.ndarray, extra: np.ndarray) -> list[str]:
        """The tools that reach their thresholds here; all of them if none does.

        Settled before the draw: a draw that is thrown away would make the logged probability a wrong one.
        """
        agent = self.loom.agent
        seen = agent.decide(self.query.text, vector=vector, extra=extra, allowed=self.names, greedy=True, mode="shadow")
        worth = seen.choice.worth
        kept = [
            name
            for k, name in enumerate(seen.names)
            if agent.calibration(float(worth[k])) >= self.loom.thresholds.get(name, 0.0)
        ]
        return kept or self.names

    async def _execute(
        self, decided: Decided, context: list[tuple[str, str]], arguments: Mapping[str, Any]
    ) -> ToolResult | None:
        if decided.name is None:
            return None
        left = self.card.timeout - (time.perf_counter() - self.begin)
        request = Request(text=self.query.text, context=context, arguments=arguments)
        result = await self.loom.toolbox.run(decided.name, request, seconds=max(0.05, left))
        self.trace.warnings += result.warnings
        return result

    def _assemble(self, decided: Decided | None, result: ToolResult | None) -> Spacetime:
        trace, agent = self.trace, self.loom.agent
        trace.policy_adapter = agent.config.chooser
        if decided is not None:
            trace.policy_version = decided.version
            trace.tool_selected = decided.name or "none"
            trace.tool_confidence = decided.confidence
            trace.tool_probabilities = decided.probabilities
        trace.end_time = datetime.now().astimezone()
        trace.duration_ms = 1000.0 * (time.perf_counter() - self.begin)
        failed = bool(trace.errors)
        response = trace.errors[0]["error"] if failed else "none of the tools fits" if result is None else result.text
        metadata: dict[str, Any] = {
            "pattern_card": self.card.name,
            "duration_ms": trace.duration_ms,
            **({"status": "error", "error_type": trace.errors[0]["type"]} if failed else {}),
            **({"tool_quality": result.quality} if result is not None and result.quality is not None else {}),
            **(dict(self.query.metadata) if self.query.metadata else {}),
        }
        return Spacetime(
            id=uuid.uuid4().hex,
            query_text=self.query.text,
            response=response,
            tool_used="error" if decided is None else trace.tool_selected,
            confidence=0.0 if failed or decided is None else decided.confidence,
            trace=trace,
            decision=None if decided is None or decided.name is None else decision_of(decided, agent),
            metadata=metadata,
            context_summary=f"{trace.context_shards_count} shards",
            sources_used=[] if result is None else list(result.sources),
        )
