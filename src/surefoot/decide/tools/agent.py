"""Tools for queries: a tool is chosen by the decision core and really runs; feedback makes the next choice better."""

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
from surefoot.decide.core.explanation import Explanation
from surefoot.decide.encoders.encoder import Encoder, make_encoder
from surefoot.decide.policy.choosers import Chooser
from surefoot.decide.policy.ppo import PPOChooser
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

SHIPPED = ("answer", "search", "calc", "notion_write", "query")
"""The shipped tools have the indices 0 to 4 in every saved policy; others get the next ones, and keep them."""


class ToolAgent:
    """Answers queries with tools, and learns from feedback which tool answers what.

    Args:
        tools: What can be chosen; `add_tool` and `remove_tool` change it later.
        encoder: An encoder, or the name of one.
        memory: Texts whose passages are retrieved for each query.
        runs: Where runs are kept; by default in `directory`, or in memory without one.
        directory: Keeps runs, versions of the policy and telemetry; an agent opened on it again continues from there.
        learning: When to learn without being asked; None learns only in `learn`.
        cache: Answers that may be given again without running a tool.
        chooser: ppo, residual, linucb, lints, egreedy or nearest.
        abstain_below: Answer with no tool where the expected success rate is below this.
        grace: Seconds in which later feedback replaces a reward; see `RunLog`.
        seed: Seed of exploration.
        say: Called with sentences about work that takes long.
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
        chooser: str = "ppo",
        abstain_below: float = 0.0,
        grace: float = 0.0,
        seed: int = 0,
        say: Callable[[str], None] | None = None,
    ) -> None:
        base = make_encoder(encoder, say=say) if isinstance(encoder, str) else encoder
        self.directory = None if directory is None else Path(directory)
        # `is None`: an empty log or memory is false, and still the one that was given.
        self.runs = RunLog(self.directory, grace=grace) if runs is None else runs
        config = AgentConfig(chooser=chooser, low=-1.0, high=1.0, abstain_below=abstain_below, extra=SIZE, seed=seed)
        self.agent = Agent(base, config=config, reserved=SHIPPED, store=self.runs.store)
        self.memory = TextMemory(self.agent.encoder) if memory is None else memory
        self.toolbox = Toolbox()
        self.versions = None if self.directory is None else Versions(self.directory / "versions")
        self.telemetry = ToolTelemetry(self.directory, self.agent, seed)
        self.learning, self.cache = learning, cache
        self.preferred_depth: str | None = None
        self.thresholds: dict[str, float] = {}
        """Tools that are taken only where their calibrated success rate reaches this."""
        self._episodes, self._learned_at, self._learnings = 0, 0, 0
        self._worker: ThreadPoolExecutor | None = None
        self._running: Future[Any] | None = None
        self._lock = threading.Lock()
        for each in tools:
            self.add_tool(each)
        if self.versions is not None and self.versions.live is not None:
            self.load()

    @property
    def chooser(self) -> Chooser:
        """The policy; it outlives every query."""
        return self.agent.chooser

    @property
    def version(self) -> int:
        """Version of the policy that answers."""
        return self.agent.version

    def add_tool(self, new: Tool) -> None:
        """Add a tool; until it has outcomes it is chosen by its description, and nothing is trained again."""
        self.toolbox.add(new)
        self.agent.options.add(new.name, new.description)

    def remove_tool(self, name: str) -> None:
        """Remove a tool; what was learned about it stays, should it come back."""
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
            depth: How much work it is worth: bare, fast, fused, or a `Depth`; by default it follows from the query.
            allowed: Names of the tools that may be chosen; all by default.
            arguments: Arguments of the tool that are known already, by the names of its schema.
            metadata: Kept with the run.
            max_timeout: Choose the depth by this many seconds.
            greedy: Take the likeliest tool, without exploring.
            bypass_cache: Neither take the answer from the cache nor keep it there.
        """
        selected = select_depth(query, preferred=depth or self.preferred_depth, max_timeout=max_timeout)
        names = self.agent.options.allowed(allowed)
        key = QueryCache.key(query, selected.name, names, self.agent.version)
        # Arguments are not part of the key, so an answer that had some is not kept.
        cache = None if bypass_cache or arguments else self.cache
        if cache is not None and (cached := cache.get(key)) is not None:
            cached.id = f"{random.getrandbits(128):032x}"
            cached.decision = None  # nothing was chosen this time, so there is nothing to learn from it
            cached.metadata["cached"] = True
            return cached
        answering = Answering(self._workshop(), query, selected, names)
        run = await answering.run(arguments or {}, greedy, metadata or {})
        if cache is not None and not run.trace.errors:
            cache.put(key, run)
        return run

    def answer(self, query: str, **options: Any) -> ToolRun:
        """Answer a query where no event loop runs; `options` are those of `answer_async`."""
        return run_sync(
            self.answer_async(query, **options), "an event loop is running here; use `await answer_async(…)`"
        )

    def feedback(self, run: ToolRun, feedback: Feedback | None = None, reward: float | None = None) -> Reward:
        """Keep a run with its reward; it is on disk when this returns. Learning follows the schedule.

        Args:
            run: What `answer` returned.
            feedback: `rating`, `helpful`, `success` and others; without any, the reward is computed from the run.
            reward: The reward itself, instead.
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
        """Learn from every finished run; with `force` a PPO update is made even if few are new."""
        with self._lock:
            core, before = self.agent.chooser, self.agent.cursor
            if isinstance(core, PPOChooser) and self.learning is not None:
                lr = self.learning.lr_at(self._episodes)
                if lr is not None:
                    core.set_lr(lr)
            report = self.agent.learn(force)
            learned = self.agent.cursor > before
            self._learnings += learned
            if report is not None:
                self.telemetry.update(report, self.runs.recent(self.runs.window, decisions=False), self._episodes)
            plan = self.learning
            if learned and self.versions is not None and plan is not None and self._learnings % plan.save_every == 0:
                self.save()
            return report

    def preview(self, query: str, *, depth: str | Depth | None = None) -> dict[str, float]:
        """Return how likely each tool would be for a query now; nothing runs, nothing waits for an outcome."""
        selected = select_depth(query, preferred=depth or self.preferred_depth)
        return Answering(self._workshop(), query, selected, self.agent.options.names).preview()

    def explain(self, run: ToolRun, nearest: int = 3) -> Explanation:
        """Return why this tool: what descriptions said, what outcomes taught, how much was chance, similar cases."""
        if run.decision is None:
            raise DecisionError(f"nothing was chosen in {run.id or 'this run'}: it failed, or came from the cache")
        return self.agent.explain(run.decision, nearest)

    def save(self) -> int:
        """Save this policy as a version, which is live from now on; return its number."""
        number = self.keep()
        self._versions().promote(number, f"saved after {self._episodes} episodes")
        return number

    def keep(self) -> int:
        """Save this policy as a version without making it live; `promote` asks the gate for that."""
        counts = {"cursor": self.agent.cursor, "episodes": self._episodes, "learnings": self._learnings}
        settings = {"encoding": ENCODING, "thresholds": self.thresholds, "card": self.preferred_depth}
        return self.agent.save(self._versions(), tools=counts | settings)

    def promote(self, number: int, gate: GateConfig | None = None) -> Judgement:
        """Make a kept version live if the log of this agent says that it is not worse than the live one."""
        return self.agent.promote(self._versions(), number, gate)

    def load(self, number: int | None = None) -> None:
        """Take over a saved version, by default the live one; runs after it are learned by the next `learn`."""
        encoding = self._versions().load(number).parts["tools"]["encoding"]
        if encoding != ENCODING:
            raise CheckpointIncompatible(f"this policy has observation encoding {encoding}, here it is {ENCODING}")
        saved = self.agent.load(self._versions(), number)["tools"]
        self.agent.cursor = saved["cursor"]
        self._episodes, self._learnings = saved["episodes"], saved["learnings"]
        self.thresholds, self.preferred_depth = dict(saved["thresholds"]), saved["card"]

    def rollback(self, reason: str = "by hand") -> int:
        """Go back to the version that was live before; return its number."""
        number = self._versions().rollback(reason)
        self.load(number)
        return number

    def wait(self, seconds: float | None = None) -> None:
        """Wait until the learning that is under way is done."""
        if self._running is not None:
            self._running.result(seconds)

    def close(self) -> None:
        """Finish the learning under way, save, and close files. A second close does nothing."""
        if self._worker is not None:
            self._worker.shutdown(wait=True)
            self._worker = None
        if self.versions is not None and self.agent.version and not self.runs.journal.closed:
            self.save()
        self.telemetry.close()
        self.runs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _workshop(self) -> Workshop:
        return Workshop(self.agent, self.memory, self.toolbox, self.thresholds)

    def _versions(self) -> Versions:
        if self.versions is None:
            raise ConfigError("this agent has no directory; give it one to keep versions in")
        return self.versions

    def _maybe_learn(self) -> None:
        """Start learning in the background if the schedule says so and none is under way."""
        plan = self.learning
        if plan is None or self._episodes < max(plan.warmup, plan.min_samples):
            return
        if self._episodes - self._learned_at < plan.interval or (
            self._running is not None and not self._running.done()
        ):
            return
        if self._running is not None and (failure := self._running.exception()) is not None:
            raise failure  # learning must not stop silently
        self._learned_at = self._episodes
        self._worker = self._worker or ThreadPoolExecutor(max_workers=1, thread_name_prefix="surefoot-learn")
        self._running = self._worker.submit(self.learn)


def run_sync(coroutine: Coroutine[Any, Any, T], otherwise: str) -> T:
    """Run a coroutine where no event loop runs; inside one raise `ConfigError` with the sentence `otherwise`."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    coroutine.close()
    raise ConfigError(otherwise)
