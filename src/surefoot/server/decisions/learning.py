"""Learning beside the answers: a little per turn of the event loop, or in a thread for large policies."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from surefoot.data.journal import Entry
from surefoot.decide.core.record import DecisionRecord
from surefoot.errors import NonFiniteValue
from surefoot.server import schema
from surefoot.server.decisions.outcomes import TrackedDecision, ends, final_reward, outcomes_of
from surefoot.server.decisions.served_policy import ServedPolicy
from surefoot.server.decisions.snapshots import snapshot
from surefoot.telemetry.schema import Episodes
from surefoot.telemetry.writer import Recorder

if TYPE_CHECKING:
    from surefoot.server.decisions.service import Service

log = logging.getLogger("surefoot.server")
# Seconds of learning per turn of the loop; all requests that have arrived meanwhile are answered in between.
TURN_SECONDS = 0.002
# Outcomes per call of `learn`: about 0.2 ms each at 10 choices and 384 numbers.
BATCH = 4
# Most outcomes between two versions: what a restart learns again, at most.
LARGEST_GAP = 5000
# Episodes of a policy that are not over; the oldest is dropped.
OPEN_EPISODES = 10_000
# Actions whose share is in the record: each is a metric of every line, and a policy may have many more.
SHARES = 32


async def learn_forever(service: Service, serving: ServedPolicy) -> None:
    """Learn from what `learn_now` left, save versions, and finish the jobs that ask for one."""
    serving.pending.batch = BATCH
    while True:
        await serving.wake.wait()
        serving.wake.clear()
        job = serving.job
        try:
            if serving.config.training.automatic or job is not None:
                await _learn(service, serving)
            if job is not None:
                await save_version(service, serving, job)
        except Exception as why:
            log.exception("policy %s could not learn", serving.config.name)
            if job is not None:
                job.state, job.message = "failed", f"{type(why).__name__}: {why}"
        finally:
            if job is not None and serving.job is job:
                serving.job = None
                service.job_done(job)


def learn_now(service: Service, serving: ServedPolicy) -> None:
    """Learn from an outcome before its reward is acknowledged, if there is time in this turn of the loop.

    The next decision of a client that waits for its acknowledgement is then made with it, as in a loop in one process.
    """
    if not serving.config.training.automatic or not serving.inline or len(serving.pending) > BATCH:
        serving.wake.set()
        return
    if not service.learning_seconds:
        asyncio.get_running_loop().call_soon(service.begin_turn)
    if service.learning_seconds > TURN_SECONDS:
        serving.wake.set()
        return
    began = time.perf_counter()
    try:
        _step(serving)
    except Exception:
        # The reward is stored: its acknowledgement does not depend on what is learned from it.
        log.exception("policy %s could not learn", serving.config.name)
    service.learning_seconds += time.perf_counter() - began
    if serving.since >= gap(serving) or len(serving.pending):
        serving.wake.set()


def _step(serving: ServedPolicy) -> None:
    """Learn from the next outcomes."""
    before = serving.agent.cursor
    try:
        serving.agent.learn()
        require_finite(serving)
    finally:
        _count(serving, before)


def _count(serving: ServedPolicy, before: int) -> None:
    serving.since += max(0, serving.agent.cursor - before)
    # Learned outcomes are dropped from the queue only when the next ones are taken.
    serving.pending.finished(serving.agent.cursor)


async def _learn(service: Service, serving: ServedPolicy) -> None:
    """Learn from everything that waits; save a version when one is due."""
    loop, began = asyncio.get_running_loop(), time.perf_counter()
    while len(serving.pending):
        if serving.inline:
            _step(serving)
        else:
            await loop.run_in_executor(service.workers, _step, serving)
        if serving.config.training.automatic and serving.since >= gap(serving):
            await save_version(service, serving)
        if time.perf_counter() - began > TURN_SECONDS:
            await asyncio.sleep(0)
            began = time.perf_counter()
    if serving.config.training.automatic and serving.since >= gap(serving):
        await save_version(service, serving)


def learn_later(serving: ServedPolicy, order: int, steps: Sequence[tuple[DecisionRecord, float]]) -> None:
    """Queue an outcome for learning, and count it in the calibration."""
    for record, reward in outcomes_of(steps):
        serving.pending.put(order, record, reward)
        if order > serving.observed:
            serving.agent.observe(record, reward)
    serving.observed = max(serving.observed, order)


def close_decision(serving: ServedPolicy, waiting: TrackedDecision) -> list[tuple[DecisionRecord, float]]:
    """Set the final reward of a decision; return the steps of its episode with their rewards (0 … 1) if that is over."""
    record, waiting.record = waiting.record, None
    waiting.final = final_reward(waiting.rewards, serving.config)
    if record is None or not waiting.learns:
        return []
    low, high = serving.config.reward_range
    step = record, (waiting.final - low) / (high - low)
    if not waiting.episode:
        return [step]
    steps = serving.episodes.setdefault(waiting.episode, [])
    steps.append(step)
    if not ends(waiting, waiting.rewards):
        while len(serving.episodes) > OPEN_EPISODES:
            serving.episodes.pop(next(iter(serving.episodes)))
        return []
    return serving.episodes.pop(waiting.episode)


def gap(serving: ServedPolicy) -> int:
    """Return the outcomes until the next version: `every` at first, then a tenth of all."""
    return min(LARGEST_GAP, max(serving.config.training.every, serving.learner.outcomes // 10))


def require_finite(serving: ServedPolicy) -> None:
    """Raise if the policy holds NaN or infinity, after it went back to its newest version."""
    learner = serving.learner
    # A weight that is not finite makes every success rate of a decision so.
    if not len(learner.log) or np.isfinite(learner.predict(learner.log.latest(1))).all():
        return
    parts = serving.versions.load(serving.newest).parts
    usable = np.ones(max(64, len(learner.log)), bool)
    weights = {"table": parts["weights"]["table"], "log": learner.log.state(), "usable": usable}
    learner.set_state({**parts["chooser"], **weights})
    raise NonFiniteValue(
        f"the weights held NaN or infinity; {serving.config.name!r} is back at version {serving.newest}"
    )


async def save_version(service: Service, serving: ServedPolicy, job: schema.JobResponse | None = None) -> int:
    """Save what a policy has learned as its next version; it decides unless another version was promoted."""
    number, samples, left_out = serving.newest + 1, serving.since, serving.left_out
    metrics = metrics_of(serving)
    parts = snapshot(serving)
    serving.since = serving.left_out = 0

    def write() -> None:
        serving.versions.save(number, parts, {"metrics": metrics})
        # A full disk must not stop the learning for the sake of its record.
        with contextlib.suppress(OSError):
            record_version(serving, number, metrics)

    await asyncio.get_running_loop().run_in_executor(service.workers, write)
    body = {"version": number, "metrics": metrics, "samples": samples}
    await service.store.write(Entry(kind="version", id=f"{serving.key}/{number}", tag=serving.key, body=body))
    serving.newest = number
    if serving.pinned is None:
        if serving.versions.live != number:
            serving.versions.promote(number, "learned")
        serving.version = number
    if job is not None:
        job.result = {"version": number, "samples": samples, "left_out": left_out, **metrics}
        job.state = "done"
    return number


def metrics_of(serving: ServedPolicy) -> dict[str, float | None]:
    """Return the statistics of the last outcomes."""
    latest = serving.learner.log.latest(1000)
    low, high = serving.config.reward_range
    mean = float(latest.reward.mean()) if len(latest) else None
    error = serving.agent.calibration.error()
    return {
        "outcomes": float(serving.learner.outcomes),
        "reward_mean": None if mean is None else low + mean * (high - low),
        "success_rate": float((latest.reward > 0.5).mean()) if len(latest) else None,
        "calibration_error": None if np.isnan(error) else error,
        "changes_detected": float(serving.learner.forgotten),
    }


def record_version(serving: ServedPolicy, number: int, metrics: Mapping[str, float | None]) -> None:
    """Append a version's statistics to the record in the policy's folder, which `watch`, `summary` and `doctor` read."""
    config, learner = serving.config, serving.learner
    latest = learner.log.latest(1000)
    taken = latest.option[np.arange(len(latest)), latest.at] if len(latest) else np.zeros(0, np.int64)
    shares = {
        f"action_share_{name}": float((taken == index).mean())
        for index, name in enumerate(config.actions[:SHARES])
        if len(taken)
    }
    sizes = {"actions": len(config.actions), "embedding_size": config.embedding_size}
    # No rate limit: at the default one, versions that follow each other quickly would share a line.
    with contextlib.closing(Recorder(serving.versions.root, config.name, updates_per_second=1e9)) as recorder:
        recorder.header(env=f"decisions of {config.name}", seed=config.seed, config={**serving.agent.settings, **sizes})
        recorder.update(
            env_steps=learner.outcomes,
            updates=number,
            m={**{name: value for name, value in metrics.items() if value is not None}, **shares},
            episodes=Episodes.of(latest.reward.tolist(), [1] * len(latest)),
        )
