"""One policy in memory: its decisions, what came of them, and how both are written down."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import os
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import UNSET

from surefoot.data.experience import Decision as Made
from surefoot.data.journal import Entry
from surefoot.data.ledger import Ledger
from surefoot.decide.encoders import Cached, Encoder, HashingEncoder
from surefoot.decide.promotion import Versions
from surefoot.server import schema
from surefoot.server.network import Network
from surefoot.server.problems import Refused

RECENT = 1000
"""Rewards that a mean is told of."""


class Told(NamedTuple):
    """A reward as it was told."""

    value: float
    parts: dict[str, float]
    terminated: bool
    truncated: bool
    id: str = ""


@dataclass(slots=True, kw_only=True)
class Waiting:
    """A decision and what has come of it so far."""

    policy: str
    asked: str
    """A hash of what was asked, so that another question under the same id is told from a retry."""
    stored: asyncio.Future[None]
    """Done when the disk has all that was answered so far: whoever asks again waits for it too."""
    answer: schema.Decision | None = None
    """None while it is being made."""
    made: Made | None = None
    """What learning needs; let go of once it is closed."""
    deferred: bool = False
    learns: bool = True
    """False: it is answered and counted only."""
    rewards: list[Told] = field(default_factory=list[Told])
    final: float | None = None
    """The reward it was closed with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question that can be answered."""

    id: str
    new: schema.NewDecision
    row: np.ndarray
    mask: np.ndarray | None
    hash: str


class Drawn(NamedTuple):
    """What the network made of a question."""

    chances: np.ndarray
    """[actions]"""
    action: int


@dataclass(slots=True, kw_only=True)
class Serving:
    """One policy in memory."""

    config: schema.NewPolicy
    versions: Versions
    network: Network
    version: int
    canary: tuple[int, float, Network] | None = None
    ledger: Ledger = field(default_factory=Ledger)
    recent: deque[float] = field(default_factory=lambda: deque[float](maxlen=RECENT))
    due: deque[tuple[float, str]] = field(default_factory=deque[tuple[float, str]])
    """(when, which): decisions that wait for a reward, by the time their wait is over."""
    made: int = 0
    rewarded: int = 0
    learning: str | None = None
    """The job that runs."""
    unlearned: list[str] = field(default_factory=list[str])
    encoder: Encoder | None = None
    queue: list[tuple[Asked, Network, asyncio.Future[Drawn]]] = field(default_factory=list[Any])
    """Questions that wait for the next pass through the network."""


def ask(new: schema.NewDecision, config: schema.NewPolicy, encoder: Encoder | None, pointer: str) -> Asked:
    """The question, looked at: what it sees, what is allowed, and a hash of both and of how it is asked."""
    row = _row(new, config, encoder, pointer)
    mask = mask_of(new, len(config.actions), pointer)
    if new.mode == "apprentice":
        taken_of(new, mask, len(config.actions), pointer)
    digest = hashlib.blake2b(row.data, digest_size=16)
    if mask is not None:
        digest.update(mask.data)
    how = (new.mode, new.action, new.deterministic, new.defer, new.distribution, new.episode, new.subject)
    digest.update(repr(how).encode())
    id = ordered_id() if new.decision_id is UNSET else new.decision_id
    return Asked(id=id, new=new, row=row, mask=mask, hash=digest.hexdigest())


def ordered_id() -> str:
    """A UUID of version 7: those made later sort later, so that the store's index grows at its end."""
    t, r = f"{time.time_ns() // 1_000_000:012x}", os.urandom(10).hex()
    return f"{t[:8]}-{t[8:]}-7{r[:3]}-{'89ab'[int(r[3], 16) & 3]}{r[4:7]}-{r[7:19]}"


def _row(new: schema.NewDecision, config: schema.NewPolicy, encoder: Encoder | None, pointer: str) -> np.ndarray:
    """[size] float32, however it was sent."""
    given = [x for x in (new.embedding, new.embedding_b64, new.text) if x is not UNSET]
    if len(given) != 1:
        raise Refused("invalid", "give one of embedding, embedding_b64 and text", pointer=pointer or "/")
    if new.text is not UNSET:
        if encoder is None:
            raise Refused("invalid", "this policy has no encoder; send an embedding", pointer=f"{pointer}/text")
        return encoder.encode([new.text])[0]
    if new.embedding is not UNSET:
        row, where = np.array(new.embedding, np.float32), f"{pointer}/embedding"
    else:
        where = f"{pointer}/embedding_b64"
        try:
            raw = base64.b64decode(new.embedding_b64, validate=True)  # pyright: ignore[reportArgumentType]
            row = np.frombuffer(raw, "<f4").astype(np.float32)
        except (binascii.Error, ValueError) as why:
            raise Refused("invalid", f"it is not base64 of float32: {why}", pointer=where) from why
    if row.shape != (config.embedding_size,):
        raise Refused("invalid", f"{len(row)} numbers; this policy sees {config.embedding_size}", pointer=where)
    if not np.isfinite(row).all():
        raise Refused("invalid", "NaN or infinity", pointer=f"{where}/{int(np.flatnonzero(~np.isfinite(row))[0])}")
    return row


def mask_of(new: schema.NewDecision, actions: int, pointer: str) -> np.ndarray | None:
    """[actions] bool, or None where everything is allowed."""
    if new.mask is UNSET:
        return None
    if len(new.mask) != actions or not any(new.mask):
        raise Refused(
            "invalid", f"the mask has {actions} entries, at least one of them true", pointer=f"{pointer}/mask"
        )
    return np.array(new.mask, bool)


def taken_of(new: schema.NewDecision, mask: np.ndarray | None, actions: int, pointer: str) -> int:
    if new.action is UNSET or new.action >= actions or (mask is not None and not mask[new.action]):
        raise Refused("invalid", "an apprentice is told an action that is allowed", pointer=f"{pointer}/action")
    return int(new.action)


def value_of(told: schema.NewReward, bounds: tuple[float, float]) -> float:
    """One number, within what the policy declared."""
    if told.value is UNSET and told.parts is UNSET:
        raise Refused("invalid", "give value, or parts", pointer="/value")
    value = sum(told.parts.values()) if told.value is UNSET and told.parts is not UNSET else told.value
    number = float(value)  # pyright: ignore[reportArgumentType]
    if not bounds[0] <= number <= bounds[1]:
        raise Refused("invalid", f"{number:g} lies outside of {bounds[0]:g} … {bounds[1]:g}", pointer="/value")
    return number


def body_of(asked: Asked, made: Made, answer: schema.Decision, *, learns: bool) -> dict[str, Any]:
    """A decision as the store keeps it."""
    new = asked.new
    return {
        "mask": None if asked.mask is None else asked.mask.tolist(),
        "log_prob": made.log_prob,
        "episode": made.episode,
        "answer": answer,
        "asked": asked.hash,
        "deferred": new.defer,
        "learns": learns,
        "subject": "" if new.subject is UNSET else new.subject,
    }


def made_of(entry: Entry, actions: int) -> tuple[Made, schema.Decision]:
    """What `body_of` kept, and the row beside it."""
    body: dict[str, Any] = entry.body
    answer = msgspec.convert(body["answer"], schema.Decision)
    mask = np.ones(actions, bool) if body["mask"] is None else np.array(body["mask"], bool)
    made = Made(
        id=answer.decision_id,
        episode=body["episode"],
        obs={"obs": np.frombuffer(entry.raw or b"", np.float32)},
        action=answer.action,
        log_prob=float(body["log_prob"]),
        value=0.0,
        policy_version=answer.policy_version,
        action_mask=mask,
    )
    return made, answer


def encoder_of(config: schema.NewPolicy) -> Encoder | None:
    """What turns text into numbers for this policy."""
    return Cached(HashingEncoder(config.embedding_size)) if config.encoder == "hashing" else None
