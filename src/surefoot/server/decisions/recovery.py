"""What a service knows after a restart: its policies, their decisions, and what they have learned, to the last outcome."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING, Any

import msgspec

from surefoot.data.journal import Entry
from surefoot.decide.core.record import DecisionRecord
from surefoot.decide.policy.experience_log import Log
from surefoot.decide.promotion import Versions
from surefoot.errors import ConfigError
from surefoot.server import schema
from surefoot.server.decisions.learning import close_decision, learn_later
from surefoot.server.decisions.outcomes import RewardRecord, TrackedDecision, outcomes_of
from surefoot.server.decisions.requests import read_decision
from surefoot.server.decisions.served_policy import PAST, ServedPolicy, make_policy
from surefoot.server.decisions.snapshots import restore, version_chooser

if TYPE_CHECKING:
    from surefoot.server.decisions.service import Service

FORMAT = 2
"""Of policies in the store: 1 was another learner, whose decisions cannot be learned from."""


def policy_entry(serving: ServedPolicy) -> Entry:
    body = {
        "format": FORMAT,
        "config": msgspec.to_builtins(serving.config),
        "frozen": serving.frozen,
        "retired": serving.retired,
    }
    return Entry(kind="policy", id=serving.key, body=body)


def read_policy(entry: Entry, directory: Any) -> ServedPolicy:
    """Return a stored policy that has learned nothing yet. Raise `ConfigError` if an earlier version made it."""
    if entry.body.get("format") != FORMAT:
        raise ConfigError(
            f"policy {entry.id!r} in {directory} was made by an earlier version of surefoot, which learned in another way; "
            "pass another --data-dir, and create the policy there"
        )
    config = msgspec.convert(entry.body["config"], schema.NewPolicy)
    state = {"frozen": entry.body["frozen"], "retired": entry.body["retired"]}
    return make_policy(entry.id, config, Versions(directory / "policies" / entry.id), **state)


async def recall(service: Service) -> None:
    """Load every policy with its decisions; what came after its newest version is learned again, in the same order."""
    loop = asyncio.get_running_loop()
    counts = service.store.reader.tallies("decision")
    rewards = service.store.reader.tallies("reward")
    for entry in service.store.reader.scan("deleted"):
        await service.erase(entry.id)
        shutil.rmtree(service.directory / "policies" / entry.id, ignore_errors=True)
    for entry in service.store.reader.scan("policy"):
        serving = read_policy(entry, service.directory)
        await loop.run_in_executor(None, _recall_policy, service, serving)
        serving.decision_count = counts.get(serving.key, (0, 0.0, 0))[0]
        serving.rewarded = rewards.get(serving.key, (0, 0.0, 0))[0]
        service.serve(serving)
        serving.wake.set()
    service.forgot = sum(count for count, _, _ in counts.values()) > len(service.decisions)


def _recall_policy(service: Service, serving: ServedPolicy) -> None:
    numbers = serving.versions.numbers
    # The first version is written before a policy is: there is always one.
    parts: dict[str, Any] = serving.versions.load(numbers[-1]).parts
    capacity = serving.learner.config.log
    reader, most = service.store.reader, max(service.in_memory, capacity)
    activated = {e.id: float(e.body) for e in reader.latest("activated", most, tag=serving.key)}
    tracked = {e.id: _tracked(e, serving, activated) for e in reader.latest("decision", most, tag=serving.key)}
    closing = list[tuple[int, str, int]]()
    for entry in reader.latest("reward", 2 * most, tag=serving.key):
        id = entry.id.rpartition("#")[0]
        if (waiting := tracked.get(id)) is not None:
            waiting.rewards.append(RewardRecord(**entry.body))
            if serving.config.aggregation == "first":
                closing.append((entry.seq, id, int(entry.body["order"])))
    closing += [(e.seq, e.id, int(e.body["order"])) for e in reader.latest("closed", most, tag=serving.key)]
    cursor = int(parts["service"]["cursor"]) if "service" in parts else 0
    before, after = list[tuple[DecisionRecord, float]](), list[tuple[int, Any]]()
    for _, id, order in sorted(closing):
        waiting = tracked.get(id)
        if waiting is None or waiting.final is not None:
            continue
        steps = close_decision(serving, waiting)
        serving.recent.append(waiting.final or 0.0)
        if order > cursor:
            after.append((order, steps))
        elif order:
            before += outcomes_of(steps)
    log = Log(serving.learner.dim, capacity)
    for record, reward in before[-capacity:]:
        log.append(record.scene, record.choice.at, record.choice.probability, reward)
    restore(serving, parts, log)
    for record, reward in before[-PAST:]:
        serving.agent.remember(record, reward)
    for order, steps in after:
        serving.order = max(serving.order, order)
        learn_later(serving, order, steps)
    _continue(serving, tracked, service)
    serving.newest = numbers[-1]
    if serving.versions.live != serving.newest and not serving.versions.held:
        # The service stopped between writing its newest version and promoting it.
        serving.versions.promote(serving.newest, "learned")
    live = serving.versions.live
    serving.version = serving.newest if live is None else live
    if serving.version != serving.newest:
        serving.pinned = version_chooser(serving, serving.version)
    for id, waiting in list(tracked.items()):
        if waiting.final is None and not waiting.deferred:
            service.open_for_reward(serving, waiting)
        service.decisions[id] = waiting


def _tracked(entry: Entry, serving: ServedPolicy, activated: dict[str, float]) -> TrackedDecision:
    record, answer = read_decision(entry, serving)
    waiting = TrackedDecision(
        policy=serving.key,
        asked=entry.body["asked"],
        answer=answer,
        record=record,
        episode=entry.body["episode"],
        deferred=entry.body["deferred"],
        learns=entry.body["learns"],
    )
    if answer.abstained:
        waiting.record, waiting.final = None, 0.0
    if entry.id in activated:
        waiting.deferred, answer.expires_at = False, activated[entry.id]
    return waiting


def _continue(serving: ServedPolicy, tracked: dict[str, TrackedDecision], service: Service) -> None:
    """Take over what decisions after the newest version have observed and drawn."""
    newest = drawn = serving.agent.draws
    for entry in service.store.reader.latest("decision", len(tracked), tag=serving.key):
        body = entry.body
        if body["draw"] <= newest:
            continue
        drawn = max(drawn, body["draw"])
        serving.inputs.add_features(body["features"] or {})
        if body["candidates"] is not None:
            serving.agent.candidates.register(body["candidates"])
        if body["scales"] is not None:
            serving.set_scales(body["scales"])
    serving.agent.skip_draws(drawn - newest)
