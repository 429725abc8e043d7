"""Stages of answering one query: features, retrieval, decision, tool, record."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.decide.core.agent import Agent
from surefoot.decide.core.record import DecisionRecord
from surefoot.decide.tools.depth import Depth
from surefoot.decide.tools.memory import TextMemory
from surefoot.decide.tools.protocol import Toolbox, ToolRequest, ToolResult
from surefoot.decide.tools.query_features import detect_cues, encode_features, weighted
from surefoot.decide.tools.run import RunTrace, ToolRun, now
from surefoot.errors import SurefootError


@dataclass(frozen=True, slots=True)
class Workshop:
    """The parts of an agent that answer queries."""

    agent: Agent
    memory: TextMemory
    toolbox: Toolbox
    thresholds: Mapping[str, float]
    """Minimum calibrated success rate per tool, for it to be selected."""


# Encoders compare words: "12 * 7" has none that the description of a calculator has. Without - and /, which dates have too.
_EXPRESSION, _IN_WORDS = re.compile(r"\d\s*(?:\*\*|[+*^×÷])\s*\(?\s*\d"), "calculate arithmetic"


class Answering:
    """One query and the trace of its stages."""

    def __init__(self, workshop: Workshop, query: str, depth: Depth, names: list[str]) -> None:
        self.workshop, self.query, self.depth, self.names = workshop, query, depth, names
        self.trace = RunTrace(retrieval=depth.retrieval, scales=list(depth.scales))
        self.begin = time.perf_counter()

    async def run(self, arguments: Mapping[str, Any], greedy: bool, metadata: Mapping[str, Any]) -> ToolRun:
        """Answer the query. Errors are in the trace, not raised."""
        trace, context = self.trace, list[tuple[str, str]]()
        decision, result = None, None
        stage = "feature_extraction"
        try:
            with self._stage(stage):
                trace.cues = detect_cues(self.query)
                vector = self.workshop.agent.encoder.encode([self.query])[0]
            stage = "retrieval"
            with self._stage(stage):
                context = self._retrieve(vector)
            stage = "convergence"
            with self._stage(stage):
                decision = self._decide(vector, greedy)
            stage = "tool_execution"
            with self._stage(stage):
                result = await self._execute(decision, context, arguments)
        except Exception as error:
            if not isinstance(error, SurefootError):
                trace.warnings.append(f"{stage} raised {type(error).__name__}, which is not a SurefootError")
            trace.errors.append({"stage": stage, "type": type(error).__name__, "error": str(error)})
        return self._record(decision, result, metadata)

    def preview(self) -> dict[str, float]:
        """Return each tool's probability, without running one."""
        self.trace.cues = detect_cues(self.query)
        vector = self.workshop.agent.encoder.encode([self.query])[0]
        self._retrieve(vector)
        return self._decide(vector, greedy=False).probabilities

    @contextmanager
    def _stage(self, name: str) -> Generator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.trace.stage_ms[name] = 1000.0 * (time.perf_counter() - begin)

    def _retrieve(self, vector: np.ndarray) -> list[tuple[str, str]]:
        hits = self.workshop.memory.search(self.query, vector, self.depth)
        self.trace.context_ids = [hit.passage.id for hit in hits]
        return [(hit.passage.id, hit.passage.text) for hit in hits]

    def _decide(self, vector: np.ndarray, greedy: bool) -> DecisionRecord:
        agent, trace, thresholds = self.workshop.agent, self.trace, self.workshop.thresholds
        if _EXPRESSION.search(self.query):
            vector = agent.encoder.encode([f"{self.query} {_IN_WORDS}"])[0]
        count = len(trace.context_ids)
        features = encode_features(
            trace.cues, context=count, scales=len(trace.scales), activated=count, retrieval=trace.retrieval
        )
        extra, names = weighted(features), self.names
        if thresholds:
            # Filtered before sampling: rejecting a sample would make its logged probability wrong.
            best = agent.choose(self.query, vector=vector, extra=extra, allowed=names, greedy=True)
            rates = [agent.calibration(float(value)) for value in best.choice.worth]
            likely = [name for name, rate in zip(best.names, rates, strict=True) if rate >= thresholds.get(name, 0.0)]
            names = likely or names
        return agent.choose(self.query, vector=vector, extra=extra, allowed=names, greedy=greedy)

    async def _execute(
        self, decision: DecisionRecord, context: list[tuple[str, str]], arguments: Mapping[str, Any]
    ) -> ToolResult | None:
        if decision.name is None:
            return None
        remaining = self.depth.timeout - (time.perf_counter() - self.begin)
        # At least 50 ms: a slow encoder must not make every tool fail.
        request = ToolRequest(text=self.query, context=context, arguments=arguments)
        result = await self.workshop.toolbox.run(decision.name, request, seconds=max(0.05, remaining))
        self.trace.warnings += result.warnings
        return result

    def _record(
        self, decision: DecisionRecord | None, result: ToolResult | None, metadata: Mapping[str, Any]
    ) -> ToolRun:
        trace = self.trace
        trace.chooser = self.workshop.agent.config.chooser
        if decision is not None:
            trace.version = decision.version
            trace.tool_confidence = decision.confidence
            trace.probabilities = decision.probabilities
        trace.ended_at = now()
        trace.duration_ms = 1000.0 * (time.perf_counter() - self.begin)
        failed = bool(trace.errors)
        response = trace.errors[0]["error"] if failed else "no tool fits the query" if result is None else result.text
        return ToolRun(
            id=uuid.uuid4().hex if decision is None else decision.id,
            query=self.query,
            response=response,
            tool="error" if decision is None else decision.name or "none",
            confidence=0.0 if failed or decision is None else decision.confidence,
            trace=trace,
            decision=None if decision is None or decision.name is None else decision,
            metadata={
                "depth": self.depth.name,
                "duration_ms": trace.duration_ms,
                **({"status": "error", "error_type": trace.errors[0]["type"]} if failed else {}),
                **({"tool_quality": result.quality} if result is not None and result.quality is not None else {}),
                **metadata,
            },
            sources=[] if result is None else list(result.sources),
        )
