"""Concurrent requests share one forward pass and one commit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec import UNSET

from surefoot.data.experience import Decision
from surefoot.data.journal import Row
from surefoot.server import schema
from surefoot.server.decisions.numpy_network import Net, draw, log
from surefoot.server.decisions.served_policy import (
    DecisionRequest,
    ServedPolicy,
    StoredDecision,
    TrackedDecision,
    application_action,
    rounded_chances,
)

if TYPE_CHECKING:
    from surefoot.server.decisions.service import Service

Slot = tuple[ServedPolicy, DecisionRequest, TrackedDecision]

# How long a request waits for others under load: adds at most 1 ms of latency, saves most forward passes.
GATHER_SECONDS = 0.001
# Wait for more requests if the last batch had at least this many.
BUSY = 4

encode = msgspec.json.Encoder().encode


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
                    # Retries are compared with the journal from now on: 20,000 embeddings of 1,536 numbers would take 120 MB.
                    waiting.raw = b""
                    self._service.count_in(serving, waiting)
                else:  # nothing was acknowledged: a retry makes a new decision
                    self._service.decisions.pop(asked.id, None)
                for waiter in waiters or ():
                    waiter(error)

        try:
            self._service.store.submit(self._decided(slots), then)
        except Exception as why:
            # The callers wait for `then`: without it their requests would never be answered.
            then(why)

    def _decided(self, slots: Sequence[Slot]) -> list[Row]:
        """Decide all requests and return them as rows of the store; a canary share uses the canary's network."""
        rows: list[Row] = []
        # By network, not by policy: the canary of a policy has another one, and each needs a separate forward pass.
        by_net: dict[int, tuple[Net, int, list[Slot]]] = {}
        for slot in slots:
            serving = slot[0]
            version, net = serving.version, serving.network
            if serving.canary is not None and self._rng.random() < serving.canary[1]:
                version, _, net = serving.canary
            by_net.setdefault(id(net), (net, version, []))[2].append(slot)
        now, t = self._service.clock(), time.time()
        for net, version, group in by_net.values():
            for slot, chances, action in self._drawn(net, group):
                rows.append(_decide(slot, chances, action, version, now, t, self._service.digits))
        return rows

    def _drawn(self, net: Net, slots: Sequence[Slot]) -> Sequence[tuple[Slot, np.ndarray, int]]:
        logits = net.answer([asked.obs for _, asked, _ in slots])
        numbers, masks = self._rng.random(len(slots)), [asked.mask for _, asked, _ in slots]
        # Requests with candidates may each have a different number of them; those rows cannot form one array.
        if len({len(row) for row in logits}) == 1:
            return list(zip(slots, *draw(np.array(logits), masks, numbers), strict=True))
        drawn: list[tuple[Slot, np.ndarray, int]] = []
        for slot, row, mask, number in zip(slots, logits, masks, numbers, strict=True):
            chances, actions = draw(row[None], [mask], np.array([number]))
            drawn.append((slot, chances[0], actions[0]))
        return drawn


def _decide(
    slot: Slot, chances: np.ndarray, action: int, version: int, now: float, t: float, digits: int | None
) -> Row:
    """Decide one request: set its answer and its experience, return its row for the store."""
    serving, asked, waiting = slot
    config, new = serving.config, asked.new
    if new.mode == "apprentice":
        action = application_action(new, asked.mask, len(asked.names), "")
    elif new.deterministic:
        action = int(chances.argmax())
    # The policy's probability also for an action of the application, which is what PPO's ratio starts from.
    chance = float(chances[action])
    waiting.answer = schema.DecisionResponse(
        decision_id=asked.id,
        policy=config.name,
        action=action,
        name=asked.names[action],
        probability=chance,
        policy_version=version,
        expires_at=now + config.wait_seconds,
        mode=new.mode,
        distribution=rounded_chances(chances, digits) if new.distribution else UNSET,
    )
    brought = new.candidates is not UNSET
    everything = np.ones(len(asked.names), bool) if brought else serving.everything
    waiting.decision = Decision(
        id=asked.id,
        episode=asked.id if new.episode is UNSET else new.episode,
        obs=asked.obs,
        action=action,
        log_prob=log(chance),
        # The critic runs when the policy learns (`with_values`); a response needs no value.
        value=0.0,
        policy_version=version,
        action_mask=everything if asked.mask is None else asked.mask,
    )
    waiting.deferred = new.defer
    # A shadow was not acted on; the likeliest action was not drawn with its probability.
    waiting.learns = new.mode != "shadow" and not new.deterministic
    stored = StoredDecision(
        answer=msgspec.Raw(encode(waiting.answer)),
        log_prob=waiting.decision.log_prob,
        episode=waiting.decision.episode,
        asked=asked.manner,
        deferred=new.defer,
        learns=waiting.learns,
        mask=None if asked.mask is None else asked.mask.tolist(),
        subject="" if new.subject is UNSET else new.subject,
        candidates=list(asked.names) if brought else None,
    )
    return "decision", asked.id, config.name, None, t, encode(stored), asked.raw
