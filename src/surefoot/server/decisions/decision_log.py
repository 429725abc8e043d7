"""The log of a policy's decisions: listed, exported, and counted by action."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from itertools import islice

import msgspec
import numpy as np
from msgspec import UNSET

from surefoot.data.journal import Entry
from surefoot.decide.evaluation.offpolicy import interval
from surefoot.server import schema
from surefoot.server.decisions.outcomes import RewardRecord, final_reward
from surefoot.server.decisions.served_policy import ServedPolicy
from surefoot.server.decisions.service import Service

# Entries read at a time: a filter that matches little must not read everything into memory.
CHUNK = 1000


def list_decisions(service: Service, serving: ServedPolicy, query: schema.DecisionQuery) -> schema.DecisionLog:
    """Return decisions that match, newest first, and where the next page begins."""
    rows = list[schema.LoggedDecision]()
    for row in _matching(service, serving, query):
        if len(rows) == query.limit:
            return schema.DecisionLog(decisions=rows, before=rows[-1].number)
        rows.append(row)
    return schema.DecisionLog(decisions=rows)


def as_ndjson(service: Service, serving: ServedPolicy, query: schema.ExportQuery) -> bytes:
    """Return matching decisions as one JSON object per line, newest first."""
    rows = islice(_matching(service, serving, query), query.limit)
    return b"".join(msgspec.json.encode(row) + b"\n" for row in rows)


def as_csv(service: Service, serving: ServedPolicy, query: schema.ExportQuery) -> bytes:
    """Return matching decisions as CSV with a header line, newest first."""
    text, fields = io.StringIO(), schema.LoggedDecision.__struct_fields__
    writer = csv.writer(text)
    writer.writerow(fields)
    for row in islice(_matching(service, serving, query), query.limit):
        values = [getattr(row, name) for name in fields]
        # A spreadsheet would run a cell that begins like a formula, and names come from clients.
        writer.writerow([f"'{x}" if isinstance(x, str) and x[:1] in tuple("=+-@\t\r") else x for x in values])
    return text.getvalue().encode()


def _matching(
    service: Service, serving: ServedPolicy, query: schema.DecisionQuery | schema.ExportQuery
) -> Iterator[schema.LoggedDecision]:
    before = None if query.before is UNSET else query.before
    while entries := service.store.reader.latest("decision", CHUNK, tag=serving.key, before=before):
        for entry in reversed(entries):
            if query.since is not UNSET and entry.t < query.since:
                return
            row = _row(service, serving, entry)
            if _matches(row, query):
                yield row
        before = entries[0].seq


def _matches(row: schema.LoggedDecision, query: schema.DecisionQuery | schema.ExportQuery) -> bool:
    return (
        (query.name is UNSET or row.name == query.name)
        and (query.version is UNSET or row.policy_version == query.version)
        and (query.until is UNSET or row.time < query.until)
        and (query.abstained is UNSET or row.abstained == query.abstained)
        and (query.rewarded is UNSET or (row.reward is not None) == query.rewarded)
    )


def _row(service: Service, serving: ServedPolicy, entry: Entry) -> schema.LoggedDecision:
    answer = msgspec.convert(entry.body["answer"], schema.DecisionResponse)
    return schema.LoggedDecision(
        number=entry.seq,
        time=entry.t,
        decision_id=answer.decision_id,
        name=answer.name,
        probability=answer.probability,
        confidence=answer.confidence,
        abstained=answer.abstained,
        mode=answer.mode,
        policy_version=answer.policy_version,
        reward=_reward(service, serving, answer.decision_id),
    )


def _reward(service: Service, serving: ServedPolicy, id: str) -> float | None:
    """Return the reward that was reported for a decision; None without any."""
    rewards = list[RewardRecord]()
    while (entry := service.store.reader.get("reward", f"{id}#{len(rewards)}")) is not None:
        rewards.append(RewardRecord(**entry.body))
    return final_reward(rewards, serving.config) if rewards else None


def statistics(serving: ServedPolicy) -> schema.PolicyStatistics:
    """Return how often each action was chosen and how well it did, and how well success is predicted."""
    log, (low, high) = serving.learner.log, serving.config.reward_range
    latest, calibration = log.latest(len(log)), serving.agent.calibration
    taken = latest.option[np.arange(len(latest)), latest.at] if len(latest) else np.zeros(0, np.int64)
    names = serving.config.actions or serving.agent.candidates.ids
    actions = list[schema.ActionStatistics]()
    for index in np.unique(taken):
        mean = interval(latest.reward[taken == index], 0.95)
        few = not np.isfinite(mean.low)
        actions.append(
            schema.ActionStatistics(
                name=names[index] if index < len(names) else "others",
                outcomes=int((taken == index).sum()),
                share=float((taken == index).mean()),
                reward=low + mean.value * (high - low),
                low=None if few else low + max(0.0, mean.low) * (high - low),
                high=None if few else low + min(1.0, mean.high) * (high - low),
            )
        )
    known = calibration.count > 0
    rates = zip(
        calibration.predicted[known] / calibration.count[known],
        calibration.observed[known] / calibration.count[known],
        calibration.count[known],
        strict=True,
    )
    return schema.PolicyStatistics(
        policy=serving.config.name,
        outcomes=len(latest),
        actions=sorted(actions, key=lambda each: -each.outcomes)[:100],
        calibration=[schema.CalibrationBin(expected=float(p), observed=float(o), weight=float(n)) for p, o, n in rates],
    )
