"""`ToolAgent`: select a tool for a query with the decision core, run it, and learn from feedback."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from surefoot.decide.core.agent import Agent, AgentConfig
from surefoot.decide.core.chooser_registry import as_ppo
from surefoot.decide.core.explanation import Explanation
from surefoot.decide.encoders.encoder import Encoder, make_encoder
from surefoot.decide.policy.choosers import Chooser
from surefoot.decide.promotion import GateConfig, Judgement, Versions
from surefoot.decide.rewards import Feedback, Reward
from surefoot.decide.tools.answering import Answering, Workshop
from surefoot.decide.tools.cache import QueryCache
from surefoot.decide.tools.depth import Depth, select_depth
from surefoot.decide.tools.memory import TextMemory
from surefoot.decide.tools.protocol import Tool, Toolbox
from surefoot.decide.tools.query_features import ENCODING, SIZE
from surefoot.decide.tools.run import ToolRun
from surefoot.decide.tools.run_log import RunLog
from surefoot.decide.tools.schedule import TrainingSchedule
from surefoot.decide.tools.telemetry import ToolTelemetry
from surefoot.errors import CheckpointIncompatible, ConfigError, DecisionError
from surefoot.learn.report import UpdateReport

T = TypeVar("T")

# Saved policies refer to options by index; fixed indices let one policy serve agents with any of these tools.
SHIPPED = ("answer", "search", "calc", "notion_write", "query")
"""Tools of the toolbox; they have the indices 0 to 4 in every saved policy, others the next free ones."""


class ToolAgent:
    """Answers queries with tools, and learns from feedback which tool to select.

    Args:
        tools: The first tools; `add_tool` and `remove_tool` change them later.
        encoder: An encoder, or its name.
        memory: Texts whose passages are retrieved for each query.
        runs: Log of the runs; default: in `directory`, or in memory without one.
        directory: Holds runs, policy versions and telemetry; an agent opened on it again continues from there.
        learning: Schedule of background learning; None: learn only in `learn`.
        cache: Cache of answers; None: every query runs a tool.
        chooser: replay, ppo, residual, linucb, lints, egreedy or nearest; default: that of the directory's policy, or replay.
        abstain_below: Select no tool if the expected success rate is below this; None: as `AgentConfig` documents.
        grace: Seconds within which later feedback replaces a reward; see `RunLog`.
        seed: Seed of exploration.
        say: Called with one sentence per stage of slow work.
    """

    def __init__(
        self,
        tools: Iterable[Tool] = (),
        *,
        encoder: Encoder | str = "auto",
        memory: TextMemory | None = None,
        runs: RunLog | None = None,
        directory: str | Path | None = None,
        learning: TrainingSchedule | None = None,
        cache: QueryCache | None = None,
        chooser: str | None = None,
        abstain_below: float | None = None,
        grace: float = 0.0,
        seed: int = 0,
        say: Callable[[str], None] | None = None,
    ) -> None:
        base = make_encoder(encoder, say=say) if isinstance(encoder, str) else encoder
        self.directory = None if directory is None else Path(directory)
        # `is None`: an empty log or memory is falsy, but must be used if it was passed.
        self.runs = RunLog(self.directory, grace=grace) if runs is None else runs
        self.versions = None if self.directory is None else Versions(self.directory / "versions")
        chooser = chooser or self._saved_chooser() or AgentConfig().chooser
        config = AgentConfig(chooser=chooser, low=-1.0, high=1.0, abstain_below=abstain_below, extra=SIZE, seed=seed)
        self.agent = Agent(base, config=config, reserved=SHIPPED, store=self.runs.store)
        self.memory = TextMemory(self.agent.encoder) if memory is None else memory
        self.toolbox = Toolbox()
        self.telemetry = ToolTelemetry(self.directory, self.agent, seed)
        self.learning, self.cache = learning, cache
        self.preferred_depth: str | None = None
        self.thresholds: dict[str, float] = {}
        """Minimum calibrated success rate per tool, for it to be selected."""
        self._episodes, self._learned_at, self._learnings = 0, 0, 0
        self._worker: ThreadPoolExecutor | None = None
        self._running: Future[Any] | None = None
        self._lock = threading.Lock()
        for each in tools:
            self.add_tool(each)
        if self.versions is not None and self.versions.live is not None:
            self.load()

    def _saved_chooser(self) -> str | None:
        """Return the kind of the live policy in the directory, so that it is continued; None if there is none."""
        if self.versions is None or self.versions.live is None:
            return None
        return self.versions.load().parts["agent"]["kind"]

    @property
    def chooser(self) -> Chooser:
        """The policy that selects tools."""
        return self.agent.chooser

    @property
    def version(self) -> int:
        """Current version of the policy."""
        return self.agent.version

    def add_tool(self, new: Tool) -> None:
        """Add a tool; until it has outcomes it is selected by its description. Nothing is retrained."""
        self.toolbox.add(new)
        self.agent.options.add(new.name, new.description)

    def remove_tool(self, name: str) -> None:
        """Remove a tool; what was learned about it is kept in case it is added again."""
        self.toolbox.remove(name)
        self.agent.options.remove(name)

    async def answer_async(
        self,
        query: str,
        *,
        depth: str | Depth | None = None,
        allowed: Collection[str] | None = None,
        arguments: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        max_timeout: float | None = None,
        greedy: bool = False,
        bypass_cache: bool = False,
    ) -> ToolRun:
        """Answer a query with one of the allowed tools. Errors are in the run's trace, not raised.

        Args:
            query: The question.
            depth: bare, fast, fused, or a `Depth`; default: by the length of the query.
            allowed: Names of the tools that may be selected; default: all.
            arguments: Arguments for the tool, by the names in its schema.
            metadata: Stored with the run.
            max_timeout: Select the depth by this time limit in seconds.
            greedy: Select the most probable tool, without exploring.
            bypass_cache: Neither read nor write the cache.
        """
        # Without this check, episodes without a choice would fill the log, and learning would fail much later.
        if not len(self.toolbox):
            raise ConfigError("this agent has no tools; pass functions with @tool, or call `add_tool`")
        selected = select_depth(query, preferred=depth or self.preferred_depth, max_timeout=max_timeout)
        names = self.agent.options.allowed(allowed)
        answering = Answering(self._workshop(), query, selected, names)
        # Arguments are not part of the key, so answers that depend on them are not cached.
        if self.cache is None or bypass_cache or arguments:
            return await answering.run(arguments or {}, greedy, metadata or {})
        key = QueryCache.key(query, selected.name, names, self.agent.version)
        if (cached := self.cache.get(key)) is not None:
            cached.id = f"{random.getrandbits(128):032x}"
            # No decision was made this time, so there is nothing to learn from.
            cached.decision = None
            cached.metadata["cached"] = True
            return cached
        run = await answering.run({}, greedy, metadata or {})
        if not run.trace.errors:
            self.cache.put(key, run)
        return run

    def answer(self, query: str, **options: Any) -> ToolRun:
        """Answer a query outside of an event loop; `options` are those of `answer_async`."""
        return run_sync(
            self.answer_async(query, **options), "an event loop is already running; use `await answer_async(…)`"
        )

    def feedback(self, run: ToolRun, feedback: Feedback | None = None, reward: float | None = None) -> Reward:
        """Record a run with its reward and return the reward; it is on disk when this returns. Learning follows the schedule.

        Args:
            run: Result of `answer`.
            feedback: `rating`, `helpful`, `success` and others; None: the reward is computed from the run.
            reward: The reward, instead of feedback.
        """
        known = run.id in self.runs
        computed = self.runs.put(run, feedback, reward)
        if not known:
            self._episodes += 1
            if run.decision is not None and run.decision.encoder == self.agent.encoder.name:
                self.agent.observe(run.decision, computed.unit)
            self._maybe_learn()
        return computed

    def learn(self, force: bool = False) -> UpdateReport | None:
        """Learn from every finished run; return the report of a PPO update, if there was one.

        `force`: with the chooser `ppo`, update even with few new runs.
        """
        with self._lock:
            core, before = self.agent.chooser, self.agent.cursor
            ppo = as_ppo(core)
            if ppo is not None and self.learning is not None:
                lr = self.learning.lr_at(self._episodes)
                if lr is not None:
                    ppo.set_lr(lr)
            report = self.agent.learn(force)
            learned = self.agent.cursor > before
            self._learnings += learned
            if report is not None or (learned and ppo is None):
                recent = self.runs.recent(self.runs.window, decisions=False)
                self.telemetry.update(report, recent, self._episodes, self._learnings)
            plan = self.learning
            if learned and self.versions is not None and plan is not None and self._learnings % plan.save_every == 0:
                self.save()
            return report

    def preview(self, query: str, *, depth: str | Depth | None = None) -> dict[str, float]:
        """Return each tool's probability for a query; nothing is run or recorded."""
        selected = select_depth(query, preferred=depth or self.preferred_depth)
        return Answering(self._workshop(), query, selected, self.agent.options.names).preview()

    def explain(self, run: ToolRun, nearest: int = 3) -> Explanation:
        """Explain a selection: share of the description, of learned outcomes and of exploration, and similar past queries."""
        if run.decision is None:
            raise DecisionError(f"{run.id or 'this run'} has no decision to explain: it failed or came from the cache")
        return self.agent.explain(run.decision, nearest)

    def save(self) -> int:
        """Save the policy as a version, make it live, and return its number."""
        number = self.keep()
        self._versions().promote(number, f"saved after {self._episodes} episodes")
        return number

    def keep(self) -> int:
        """Save the policy as a version without making it live; see `promote`."""
        counts = {"cursor": self.agent.cursor, "episodes": self._episodes, "learnings": self._learnings}
        settings = {"encoding": ENCODING, "thresholds": self.thresholds, "card": self.preferred_depth}
        return self.agent.save(self._versions(), tools=counts | settings)

    def promote(self, number: int, gate: GateConfig | None = None) -> Judgement:
        """Make a saved version live if it is not worse than the live one on this agent's log."""
        return self.agent.promote(self._versions(), number, gate)

    def load(self, number: int | None = None) -> None:
        """Load a saved version, by default the live one; later runs are learned by the next `learn`."""
        encoding = self._versions().load(number).parts["tools"]["encoding"]
        if encoding != ENCODING:
            raise CheckpointIncompatible(f"the policy has feature encoding {encoding}; this version needs {ENCODING}")
        saved = self.agent.load(self._versions(), number)["tools"]
        self.agent.cursor = saved["cursor"]
        self._episodes, self._learnings = saved["episodes"], saved["learnings"]
        self.thresholds, self.preferred_depth = dict(saved["thresholds"]), saved["card"]

    def rollback(self, reason: str = "manual rollback") -> int:
        """Make the previously live version live again; return its number."""
        number = self._versions().rollback(reason)
        self.load(number)
        return number

    def wait(self, seconds: float | None = None) -> None:
        """Wait for the running background learning, at most `seconds`."""
        if self._running is not None:
            self._running.result(seconds)

    def close(self) -> None:
        """Finish background learning, save, and close files. Closing again does nothing."""
        if self._worker is not None:
            self._worker.shutdown(wait=True)
            self._worker = None
        if self.versions is not None and self.agent.version and not self.runs.journal.closed:
            self.save()
        self.telemetry.close()
        self.runs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _workshop(self) -> Workshop:
        return Workshop(self.agent, self.memory, self.toolbox, self.thresholds)

    def _versions(self) -> Versions:
        if self.versions is None:
            raise ConfigError("this agent has no directory to save versions in; pass directory=…")
        return self.versions

    def _maybe_learn(self) -> None:
        """Start background learning if it is due and none is running."""
        plan = self.learning
        if plan is None or self._episodes < max(plan.warmup, plan.min_samples):
            return
        if self._episodes - self._learned_at < plan.interval or (
            self._running is not None and not self._running.done()
        ):
            return
        if self._running is not None and (failure := self._running.exception()) is not None:
            # Raised in the caller: learning must not stop silently.
            raise failure
        self._learned_at = self._episodes
        self._worker = self._worker or ThreadPoolExecutor(max_workers=1, thread_name_prefix="surefoot-learn")
        self._running = self._worker.submit(self.learn)


def run_sync(coroutine: Coroutine[Any, Any, T], otherwise: str) -> T:
    """Run a coroutine outside of an event loop; inside one raise `ConfigError` with the message `otherwise`."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    coroutine.close()
    raise ConfigError(otherwise)
