"""The weaving cycle: query → card → motifs, vector, context → a tool is chosen and really runs → a Spacetime; and it learns."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from surefoot.decide.agent import Agent, AgentConfig, Explanation, make_chooser
from surefoot.decide.encoders.encoder import Encoder, make_encoder
from surefoot.decide.evaluation.log_replay import compare
from surefoot.decide.policy.choosers import Chooser
from surefoot.decide.policy.ppo import PPOChooser
from surefoot.decide.promotion import GateConfig, Judgement, Versions
from surefoot.decide.rewards import Feedback, Reward
from surefoot.decide.tools.cache import QueryCache
from surefoot.decide.tools.cards import PatternCard, select_card
from surefoot.decide.tools.encoding import ENCODING, OBSERVATION_SIZE, TOOL_TO_INDEX
from surefoot.decide.tools.experience import experience_in, explained
from surefoot.decide.tools.memory import Memory
from surefoot.decide.tools.record import LearningRecord
from surefoot.decide.tools.reflection import ReflectionBuffer
from surefoot.decide.tools.schedule import TrainingSchedule as TrainingSchedule
from surefoot.decide.tools.signals import LearningSignal
from surefoot.decide.tools.spacetime import Spacetime
from surefoot.decide.tools.toolbox import Tool, Toolbox
from surefoot.decide.tools.weaving import Loom, Weave
from surefoot.decide.tools.weaving import Query as Query
from surefoot.errors import CheckpointIncompatible, ConfigError
from surefoot.learn.report import UpdateReport

T = TypeVar("T")


class PolicyView:
    """`shuttle.policy`: its core is what chooses, and what a PPOTrainer trains. It outlives every query."""

    def __init__(self, agent: ToolAgent) -> None:
        self._agent = agent

    @property
    def core(self) -> Chooser:
        return self._agent.agent.chooser

    @property
    def version(self) -> int:
        return self._agent.agent.version


class ToolAgent:
    """Tools, a memory, a policy that outlives queries, and a buffer of what came of them. Async; `…_sync` without a loop.

    `directory` keeps episodes, versions of the policy and telemetry; an agent opened on it again goes on from there.
    """

    def __init__(
        self,
        tools: Iterable[Tool] = (),
        *,
        encoder: Encoder | str = "auto",
        memory: Memory | None = None,
        buffer: ReflectionBuffer | None = None,
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
        config = AgentConfig(
            chooser=chooser, low=-1.0, high=1.0, abstain_below=abstain_below, extra=OBSERVATION_SIZE, seed=seed
        )
        self.agent = Agent(base, config=config, reserved=tuple(TOOL_TO_INDEX))
        self.memory = (
            Memory(self.agent.encoder) if memory is None else memory
        )  # an empty one is false, and still theirs
        self.toolbox = Toolbox()
        self.directory = None if directory is None else Path(directory)
        if buffer is None:
            buffer = ReflectionBuffer(capacity=100_000, persist_path=self.directory, grace=grace)
        self.buffer = buffer
        self.versions = None if self.directory is None else Versions(self.directory / "versions")
        self.record = LearningRecord(self.directory, self.agent, seed)
        self.learning, self.cache = learning, cache
        self.policy = PolicyView(self)
        self.preferred_card: str | None = None
        self.thresholds: dict[str, float] = {}
        """Tools that are taken only where their calibrated success rate reaches this."""
        self._cursor, self._episodes, self._learned_at, self._learnings = 0, 0, 0, 0
        self._worker: ThreadPoolExecutor | None = None
        self._running: Future[Any] | None = None
        self._lock = threading.Lock()
        for each in tools:
            self.add_tool(each)
        if self.versions is not None and self.versions.live is not None:
            self.load()

    def add_tool(self, new: Tool) -> None:
        """From now on it can be chosen, by its description at first; nothing is trained anew."""
        self.toolbox.add(new)
        self.agent.options.add(new.name, new.description)

    def remove_tool(self, name: str) -> None:
        """It is not chosen any more; what was learned about it stays, should it come back."""
        self.toolbox.remove(name)
        self.agent.options.remove(name)

    async def weave(
        self,
        query: str | Query,
        *,
        pattern: str | PatternCard | None = None,
        allowed: Collection[str] | None = None,
        arguments: Mapping[str, Any] | None = None,
        max_timeout: float | None = None,
        greedy: bool = False,
        bypass_cache: bool = False,
    ) -> Spacetime:
        """Answer a query with one of the allowed tools. What goes wrong is in the trace, not raised."""
        asked = query if isinstance(query, Query) else Query(query)
        card = select_card(asked.text, preferred=pattern or self.preferred_card, max_timeout=max_timeout)
        names = self.agent.options.allowed(allowed)
        key = QueryCache.key(asked.text, card.name, names, self.agent.version)
        # Arguments are not part of the key, so an answer that had some is not kept.
        cache = None if bypass_cache or arguments else self.cache
        if cache is not None and (kept := cache.get(key)) is not None:
            kept.id = f"{random.getrandbits(128):032x}"
            kept.decision = None  # nobody chose this time, so there is nothing to learn from it
            kept.metadata["cached"] = True
            return kept
        loom = Loom(self.agent, self.memory, self.toolbox, self.thresholds)
        woven = await Weave(loom, asked, card, names).run(arguments or {}, greedy)
        if cache is not None and not woven.trace.errors:
            cache.put(key, woven)
        return woven

    async def reflect(
        self, spacetime: Spacetime, feedback: Feedback | None = None, reward: float | None = None
    ) -> Reward:
        """What came of it, said by people or worked out; on the disk when this returns. Learning follows its schedule."""
        return await asyncio.to_thread(self.reflect_now, spacetime, feedback, reward)

    def reflect_now(
        self, spacetime: Spacetime, feedback: Feedback | None = None, reward: float | None = None
    ) -> Reward:
        known = bool(spacetime.id) and self.buffer.journal.has("episode", spacetime.id)
        kept = self.buffer.store_now(spacetime, feedback, reward)
        if not known:
            self._episodes += 1
            experience = experience_in(spacetime, kept.unit, self.agent.encoder.name)
            if experience is not None:
                self.agent.saw(experience, spacetime.query_text, spacetime.tool_used)
            self._maybe_learn()
        return kept

    async def learn(self, force: bool = False) -> UpdateReport | None:
        """Learn from every finished episode now; with `force` a PPO update is made even if few are new."""
        return await asyncio.to_thread(self.learn_now, force)

    def learn_now(self, force: bool = False) -> UpdateReport | None:
        with self._lock:
            entries = list(self.buffer.since(self._cursor))
            pairs = [(Spacetime.from_dict(e.body["spacetime"]), float(e.body["reward"])) for e in entries]
            experiences = [x for s, r in pairs if (x := experience_in(s, r, self.agent.encoder.name)) is not None]
            core = self.agent.chooser
            if isinstance(core, PPOChooser) and self.learning is not None:
                lr = self.learning.lr_at(self._episodes)
                if lr is not None:
                    core.set_lr(lr)
            report = self.agent.absorb(experiences)
            if report is None and force and isinstance(core, PPOChooser):
                report = core.update()
            self._cursor = entries[-1].seq if entries else self._cursor
            self._learnings += bool(entries)
            if report is not None:
                self.record.update(report, self.buffer.get_recent_episodes(self.buffer.learning_window), self._episodes)
            saving = self.versions is not None and self.learning is not None and bool(entries)
            if saving and self.learning is not None and self._learnings % self.learning.save_every == 0:
                self.save()
            return report

    async def weave_and_reflect(
        self, query: str | Query, feedback: Feedback | None = None, **options: Any
    ) -> tuple[Spacetime, Reward]:
        """One whole cycle."""
        woven = await self.weave(query, **options)
        return woven, await self.reflect(woven, feedback)

    def weave_sync(self, query: str | Query, **options: Any) -> Spacetime:
        return _run(self.weave(query, **options))

    def reflect_sync(
        self, spacetime: Spacetime, feedback: Feedback | None = None, reward: float | None = None
    ) -> Reward:
        return self.reflect_now(spacetime, feedback, reward)

    def learn_sync(self, force: bool = False) -> UpdateReport | None:
        return self.learn_now(force)

    def preview(self, query: str, *, pattern: str | PatternCard | None = None) -> dict[str, float]:
        """How likely each tool would be for a query now; nothing runs, nothing waits for an outcome."""
        card = select_card(query, preferred=pattern or self.preferred_card)
        loom = Loom(self.agent, self.memory, self.toolbox, self.thresholds)
        return Weave(loom, Query(query), card, self.agent.options.names).look()

    def explain(self, spacetime: Spacetime, nearest: int = 3) -> Explanation:
        """Why this tool: what descriptions said, what outcomes taught, how much was chance, the nearest past cases."""
        return explained(spacetime, self.agent, nearest)

    def apply_learning_signals(self, signals: Iterable[LearningSignal]) -> list[str]:
        """Act on suggestions; a sentence for each thing that was changed."""
        done = list[str]()
        for signal in signals:
            core = self.agent.chooser
            if signal.signal_type == "pattern_preference" and signal.pattern and signal.pattern != self.preferred_card:
                self.preferred_card = signal.pattern
                done.append(f"queries without a card of their own get {signal.pattern}")
            elif signal.signal_type == "threshold_adjustment" and signal.tool and signal.confidence_threshold:
                self.thresholds[signal.tool] = signal.confidence_threshold
                done.append(f"{signal.tool} is taken only from {signal.confidence_threshold:.0%} expected success on")
            elif signal.signal_type == "threshold_adjustment" and isinstance(core, PPOChooser):
                core.config = replace(core.config, sharpness=max(20.0, 0.8 * core.config.sharpness))
                done.append(f"exploration goes up: sharpness is now {core.config.sharpness:.0f}")
            elif (
                signal.signal_type == "bandit_update"
                and signal.tool in self.thresholds
                and (signal.reward or 0.0) >= 0.5
            ):
                del self.thresholds[signal.tool]
                done.append(f"{signal.tool} does well again and is taken freely")
        return done

    async def analyze_and_learn(self, force: bool = False) -> list[str]:
        """Look back, act on what it suggests, and learn; what was changed."""
        signals = await self.buffer.analyze_and_learn(force)
        done = self.apply_learning_signals(signals)
        await self.learn()
        return done

    def save(self) -> int:
        """Keep this policy as a version, which is live from now on; its number."""
        number = self.keep()
        self._versions().promote(number, f"saved after {self._episodes} episodes")
        return number

    def keep(self) -> int:
        """Keep this policy as a version without making it live; `promote` asks the gate for that."""
        versions = self._versions()
        number = max([0, *versions.numbers]) + 1
        mine = {"cursor": self._cursor, "episodes": self._episodes, "encoding": ENCODING, "learnings": self._learnings}
        mine |= {"thresholds": self.thresholds, "card": self.preferred_card}
        state = self.agent.state()
        weights = state["chooser"].pop("weights", {})
        versions.save(number, {"weights": weights, **state, "tools": mine})
        return number

    def promote(self, number: int, gate: GateConfig | None = None) -> Judgement:
        """Make a kept version live if the log of this agent says that it is not worse than the live one."""
        versions, core = self._versions(), self.agent.chooser
        if not isinstance(core, PPOChooser):
            raise ConfigError("only the ppo chooser logs probabilities that a version could be judged by")
        live, new = (self._core_of(which) for which in (None, number))
        targets = {"live": live.probabilities, "new": new.probabilities}
        judged = compare(core, core.log.latest(len(core.log)), targets, gate).judgement
        versions.record(judged, number)
        if judged.verdict == "promote":
            versions.promote(number, judged.reason)
        return judged

    def _core_of(self, number: int | None) -> PPOChooser:
        """The chooser of a version, beside the one that answers."""
        parts = self._versions().load(number).parts
        made = make_chooser("ppo", self.agent.encoder, self.agent.config.extra)
        assert isinstance(made, PPOChooser)
        made.set_state({**parts["chooser"], "weights": parts["weights"]})
        return made

    def _versions(self) -> Versions:
        if self.versions is None:
            raise ConfigError("this agent has no directory; give it one to keep versions in")
        return self.versions

    def load(self, number: int | None = None) -> None:
        """Take over a saved version, by default the live one; episodes after it are learned by the next `learn`."""
        parts = self._versions().load(number).parts
        mine = parts["tools"]
        if mine["encoding"] != ENCODING:
            raise CheckpointIncompatible(
                f"this policy has observation encoding {mine['encoding']}, here it is {ENCODING}"
            )
        chooser = {**parts["chooser"], "weights": parts["weights"]} if parts["weights"] else parts["chooser"]
        self.agent.set_state({"agent": parts["agent"], "chooser": chooser})
        self._cursor, self._episodes, self._learnings = mine["cursor"], mine["episodes"], mine["learnings"]
        self.thresholds, self.preferred_card = dict(mine["thresholds"]), mine["card"]

    def rollback(self, reason: str = "by hand") -> int:
        """Back to the version that was live before."""
        number = self._versions().rollback(reason)
        self.load(number)
        return number

    def wait(self, seconds: float | None = None) -> None:
        """Until the learning that is under way is done."""
        if self._running is not None:
            self._running.result(seconds)

    def close(self) -> None:
        """Finish the learning under way, save, and let go of files. A second close does nothing."""
        if self._worker is not None:
            self._worker.shutdown(wait=True)
            self._worker = None
        if self.versions is not None and self.agent.version and not self.buffer.journal.closed:
            self.save()
        self.record.close()
        self.buffer.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _maybe_learn(self) -> None:
        """Start learning on the side if the schedule says so and none is under way."""
        plan = self.learning
        if plan is None or self._episodes < max(plan.warmup, plan.min_samples):
            return
        if self._episodes - self._learned_at < plan.interval or (
            self._running is not None and not self._running.done()
        ):
            return
        if self._running is not None and (failure := self._running.exception()) is not None:
            raise failure  # learning must not stop without a word
        self._learned_at = self._episodes
        self._worker = self._worker or ThreadPoolExecutor(max_workers=1, thread_name_prefix="surefoot-learn")
        self._running = self._worker.submit(self.learn_now)


WeavingShuttle = ToolAgent
"""The name the first system had for it."""


def _run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine where no event loop runs; inside one, the caller must await instead."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    coroutine.close()
    raise ConfigError("an event loop is running here; use `await agent.weave(…)` instead of weave_sync")
