"""Concurrent requests share one commit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from msgspec import UNSET

from surefoot.data.journal import Row
from surefoot.server import schema
from surefoot.server.decisions.outcomes import TrackedDecision
from surefoot.server.decisions.requests import (
    DecisionRequest,
    decide,
    learns_from,
    rounded,
    spread_over,
    stored,
)
from surefoot.server.decisions.served_policy import ServedPolicy

if TYPE_CHECKING:
    from surefoot.server.decisions.service import Service

Slot = tuple[ServedPolicy, DecisionRequest, TrackedDecision]

# How long a request waits for others under load: adds at most 1 ms of latency, saves most commits.
GATHER_SECONDS = 0.001
# Wait for more requests if the last batch had at least this many.
BUSY = 4


class DecisionBatcher:
    """The requests that wait for the next batch. Everything happens in one event loop."""

    def __init__(self, service: Service, rng: np.random.Generator) -> None:
        self._service, self._rng = service, rng
        self._slots: list[Slot] = []
        self._last, self._at = 0, 0.0

    def take(self, slots: Sequence[Slot]) -> None:
        """Queue these for the next batch; their waiters are called after the commit."""
        if not self._slots:
            loop = asyncio.get_running_loop()
            # An old batch is no sign of load now: a single request must not wait for others that do not come.
            if self._last >= BUSY and loop.time() - self._at < 10 * GATHER_SECONDS:
                loop.call_later(GATHER_SECONDS, self._turn)
            else:
                loop.call_soon(self._turn)
        self._slots += slots

    def _turn(self) -> None:
        slots, self._slots = self._slots, []
        self._last, self._at = len(slots), asyncio.get_running_loop().time()

        def then(error: Exception | None) -> None:
            for serving, asked, waiting in slots:
                waiters, waiting.waiters = waiting.waiters, None
                if error is None:
                    self._service.count_in(serving, waiting)
                else:  # nothing was acknowledged: a retry makes a new decision
                    self._service.decisions.pop(asked.id, None)
                for waiter in waiters or ():
                    waiter(error)

        try:
            now, t = self._service.clock(), time.time()
            rows = [self._decide(slot, now, t) for slot in slots]
            self._service.store.submit(rows, then)
        except Exception as why:
            # The callers wait for `then`: without it their requests would never be answered.
            then(why)

    def _decide(self, slot: Slot, now: float, t: float) -> Row:
        """Decide one request: set its answer and its record, return its row for the store."""
        serving, asked, waiting = slot
        config, new, version, chooser = serving.config, asked.new, serving.version, serving.pinned
        # A generator apart from the policy's: a canary must not change what the others draw.
        if serving.canary is not None and self._rng.random() < serving.canary[1]:
            version, _, chooser = serving.canary
        record = decide(serving, asked, chooser)
        choice = record.choice
        if new.mode == "apprentice" and new.action is not UNSET:
            record = record.imitated(asked.places.index(new.action))
        abstained = record.name is None
        chances = spread_over(choice.probabilities, asked.places, len(asked.names)) if new.distribution else None
        waiting.answer = schema.DecisionResponse(
            decision_id=asked.id,
            policy=config.name,
            action=None if abstained else asked.places[record.choice.at],
            name=record.name,
            probability=record.choice.probability,
            policy_version=version,
            expires_at=now + config.wait_seconds,
            confidence=min(1.0, max(0.0, record.confidence)),
            abstained=abstained,
            mode=new.mode,
            distribution=UNSET if chances is None else rounded(chances, self._service.digits),
        )
        waiting.record = replace(record, text="")
        waiting.episode = "" if new.episode is UNSET else new.episode
        waiting.deferred, waiting.learns = new.defer, learns_from(new, record)
        body, raw = stored(serving, asked, record, waiting.answer)
        return "decision", asked.id, serving.key, None, t, body, raw
