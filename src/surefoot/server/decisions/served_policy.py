"""One policy in memory: its decisions, what came of them, and how both are written down."""

from __future__ import annotations

import asyncio
import hashlib
import math
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec import UNSET

from surefoot.data.experience import Decision as Made
from surefoot.data.journal import Entry
from surefoot.data.ledger import Ledger
from surefoot.decide.encoders.encoder import Cached, Encoder, HashingEncoder
from surefoot.decide.promotion import Versions
from surefoot.server import schema
from surefoot.server.decisions.numpy_network import Net, net_of, probabilities
from surefoot.server.http.problems import Refused

RECENT = 1000
"""Rewards that a mean is told of."""
MOST_NUMBERS = 1 << 20
"""Of all candidates of a decision together."""


class RewardRecord(NamedTuple):
    """A reward as it was told."""

    value: float
    parts: dict[str, float]
    terminated: bool
    truncated: bool
    id: str = ""
    client: str = ""
    """Whose it is, in a few letters."""

    def same(self, other: RewardRecord) -> bool:
        """Return whether the same reward came again, from any client."""
        return self[:5] == other[:5]


@dataclass(slots=True, kw_only=True)
class TrackedDecision:
    """A decision and what has come of it so far."""

    policy: str
    asked: str
    """How it was asked, so that another question under the same id is told from a retry."""
    raw: bytes
    """What was seen, for the same reason; empty once the disk has it."""
    waiters: list[Callable[[Exception | None], None]] | None = None
    """Called when the decision is on disk; a retry waits for it too. None: it is on disk."""
    telling: asyncio.Future[None] | None = None
    """Done when the disk has the reward that was told last."""
    answer: schema.DecisionResponse | None = None
    made: Made | None = None
    deferred: bool = False
    learns: bool = True
    rewards: list[RewardRecord] = field(default_factory=list[RewardRecord])
    final: float | None = None
    """The reward it was closed with."""

    @property
    def answered(self) -> schema.DecisionResponse:
        """The answer, of a decision that was made."""
        assert self.answer is not None
        return self.answer


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """A question that can be answered."""

    id: str
    new: schema.NewDecision
    seen: dict[str, np.ndarray]
    """`obs` [size], and `candidates` [K, size] where it brings some."""
    mask: np.ndarray | None
    names: Sequence[str]
    """What there is to choose from."""
    manner: str
    """A hash of all options but the observation, so that a retry is told from another question; empty by default."""
    raw: bytes


@dataclass(slots=True, kw_only=True)
class ServedPolicy:
    """One policy in memory."""

    config: schema.NewPolicy
    versions: Versions
    network: Net
    version: int
    canary: tuple[int, float, Net] | None = None
    ledger: Ledger = field(default_factory=Ledger)
    recent: deque[float] = field(default_factory=lambda: deque[float](maxlen=RECENT))
    due: deque[tuple[float, str]] = field(default_factory=deque[tuple[float, str]])
    """(when, which): decisions that wait for a reward, by the time their wait is over."""
    made: int = 0
    rewarded: int = 0
    learning: str | None = None
    """The job that runs."""
    unlearned: list[str] = field(default_factory=list[str])
    tellers: dict[str, str] = field(default_factory=dict[str, str])
    """{decision: whose reward closed it}, until it is learned from."""
    encoder: Encoder | None = None
    everything: np.ndarray = field(default_factory=lambda: np.ones(0, bool))
    """The mask that allows all actions."""

    def __post_init__(self) -> None:
        self.everything = np.ones(len(self.config.actions), bool)

    @classmethod
    def load(cls, config: schema.NewPolicy, versions: Versions) -> ServedPolicy:
        """Return the policy with the weights of its live version."""
        live = versions.live  # read once: another process may promote a version meanwhile
        network = net_of(versions.load(live).parts["weights"], actions=len(config.actions))
        encoder = Cached(HashingEncoder(config.embedding_size)) if config.encoder == "hashing" else None
        return cls(config=config, versions=versions, network=network, version=live or 0, encoder=encoder)


def ask(new: schema.NewDecision, config: schema.NewPolicy, encoder: Encoder | None, pointer: str) -> DecisionRequest:
    """The question, looked at: what it sees, what there is to choose from, what is allowed, how it is asked."""
    row, raw = _row(new, config, encoder, pointer)
    seen, names = {"obs": row}, config.actions
    if config.choose == "candidates":
        names, seen["candidates"] = _described(new, config, encoder, pointer)
        raw += seen["candidates"].tobytes()
    elif new.candidates is not UNSET:
        raise Refused("invalid", "this policy chooses from its own actions", pointer=f"{pointer}/candidates")
    mask = None
    if new.mask is not UNSET:
        mask = np.array(new.mask, bool)
        if len(mask) != len(names) or not mask.any():
            detail = f"the mask has {len(names)} entries, at least one of them true"
            raise Refused("invalid", detail, pointer=f"{pointer}/mask")
    if new.mode == "apprentice":
        taken_of(new, mask, len(names), pointer)
    id = ordered_id() if new.decision_id is UNSET else new.decision_id
    how = (new.mode, new.action, new.deterministic, new.defer, new.distribution, new.episode, new.subject, new.mask)
    manner = ""  # of most decisions, which leave all of this at its default
    if how != _PLAIN or new.candidates is not UNSET:
        options = repr((how, () if new.candidates is UNSET else names))
        manner = hashlib.blake2b(options.encode(), digest_size=16).hexdigest()
    return DecisionRequest(id, new, seen, mask, names, manner, raw)


_PLAIN = ("live", UNSET, False, False, False, UNSET, UNSET, UNSET)
_POOL = bytearray()


def ordered_id() -> str:
    """A UUID of version 7: those made later sort later, so that the store's index grows at its end."""
    if len(_POOL) < 10:
        _POOL.extend(os.urandom(4000))
    r = _POOL[-10:].hex()
    del _POOL[-10:]
    t = f"{time.time_ns() // 1_000_000:012x}"
    return f"{t[:8]}-{t[8:]}-7{r[:3]}-{'89ab'[int(r[3], 16) & 3]}{r[4:7]}-{r[7:19]}"


def _row(
    new: schema.NewDecision, config: schema.NewPolicy, encoder: Encoder | None, pointer: str
) -> tuple[np.ndarray, bytes]:
    """[size] float32, however it was sent, and its bytes."""
    b64, numbers, text = new.embedding_b64, new.embedding, new.text
    if (b64 is not UNSET) + (numbers is not UNSET) + (text is not UNSET) != 1:
        raise Refused("invalid", "give one of embedding, embedding_b64 and text", pointer=pointer or "/")
    if text is not UNSET:
        if encoder is None:
            raise Refused("invalid", "this policy has no encoder; send an embedding", pointer=f"{pointer}/text")
        row = encoder.encode([text])[0]
        return row, row.tobytes()
    return _floats(numbers, b64, config.embedding_size, pointer)


def _floats(
    numbers: list[float] | msgspec.UnsetType, b64: bytes | msgspec.UnsetType, size: int, pointer: str
) -> tuple[np.ndarray, bytes]:
    if b64 is not UNSET:
        where = f"{pointer}/embedding_b64"
        if len(b64) != 4 * size:
            raise Refused("invalid", f"{len(b64)} bytes; {size} float32 are {4 * size}", pointer=where)
        row, raw = np.frombuffer(b64, "<f4"), b64
    else:
        where = f"{pointer}/embedding"
        assert numbers is not UNSET
        if len(numbers) != size:
            raise Refused("invalid", f"{len(numbers)} numbers; this policy sees {size}", pointer=where)
        row = np.array(numbers, np.float32)
        raw = row.tobytes()
    if not math.isfinite(row @ row) and not np.isfinite(row).all():
        raise Refused("invalid", "NaN or infinity", pointer=f"{where}/{int(np.flatnonzero(~np.isfinite(row))[0])}")
    return row, raw


def _described(
    new: schema.NewDecision, config: schema.NewPolicy, encoder: Encoder | None, pointer: str
) -> tuple[list[str], np.ndarray]:
    """Return the ids of the candidates, and what they are like, [K, size]."""
    if new.candidates is UNSET:
        raise Refused("invalid", "give candidates: this policy has no actions of its own", pointer=pointer or "/")
    names = [each.id for each in new.candidates]
    if len(set(names)) != len(names):
        twice = next(place for place, name in enumerate(names) if name in names[:place])
        where = f"{pointer}/candidates/{twice}/id"
        raise Refused("invalid", f"two candidates are called {names[twice]!r}", pointer=where)
    size = config.embedding_size
    if len(new.candidates) * size > MOST_NUMBERS:
        raise Refused(
            "invalid",
            f"{len(new.candidates)} candidates of {size} numbers; {MOST_NUMBERS:,} numbers are the most",
            pointer=f"{pointer}/candidates",
        )
    rows = np.zeros((len(new.candidates), size), np.float32)
    texts: dict[int, str] = {}
    for place, each in enumerate(new.candidates):
        where = f"{pointer}/candidates/{place}"
        given = (each.embedding is not UNSET) + (each.embedding_b64 is not UNSET) + (each.description is not UNSET)
        if given != 1:
            raise Refused("invalid", "give one of description, embedding and embedding_b64", pointer=where)
        if each.description is UNSET:
            rows[place], _ = _floats(each.embedding, each.embedding_b64, size, where)
        elif encoder is None:
            raise Refused("invalid", "this policy has no encoder; send embeddings", pointer=f"{where}/description")
        else:
            texts[place] = each.description
    if texts:
        assert encoder is not None
        rows[list(texts)] = encoder.encode(list(texts.values()))
    return names, rows


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


def told_chances(chances: np.ndarray, digits: int | None) -> list[float]:
    """As they are told; rounded, so that asking often says less of the policy, where the service was started so."""
    return chances.tolist() if digits is None else np.round(chances, digits).tolist()


def chances_of(serving: ServedPolicy, new: schema.NewDecision, digits: int | None = None) -> schema.Chances:
    """What would be chosen how often."""
    asked = ask(new, serving.config, serving.encoder, "")
    chances = probabilities(serving.network.answer([asked.seen])[0], asked.mask)
    return schema.Chances(
        policy=serving.config.name,
        policy_version=serving.version,
        distribution=told_chances(chances, digits),
        names=list(asked.names),
    )


class StoredDecision(msgspec.Struct, kw_only=True):
    """A decision as the store keeps it; what was seen lies beside it, as it lies in memory."""

    answer: msgspec.Raw
    """The very bytes that were answered."""
    log_prob: float
    episode: str
    asked: str
    deferred: bool
    learns: bool
    mask: list[bool] | None = None
    subject: str = ""
    candidates: list[str] | None = None
    """Their ids, where it brought some."""
    client: str = ""


def made_of(entry: Entry, config: schema.NewPolicy) -> tuple[Made, schema.DecisionResponse]:
    """What was kept, and what was seen beside it."""
    body: dict[str, Any] = entry.body
    answer = msgspec.convert(body["answer"], schema.DecisionResponse)
    rows = np.frombuffer(entry.raw or b"", np.float32).reshape(-1, config.embedding_size)
    given = body.get("candidates")
    seen = {"obs": rows[0]} if given is None else {"obs": rows[0], "candidates": rows[1:]}
    actions = len(config.actions) if given is None else len(given)
    mask = np.ones(actions, bool) if body["mask"] is None else np.array(body["mask"], bool)
    made = Made(
        id=answer.decision_id,
        episode=body["episode"],
        obs=seen,
        action=answer.action,
        log_prob=float(body["log_prob"]),
        value=0.0,
        policy_version=answer.policy_version,
        action_mask=mask,
    )
    return made, answer


def final_reward(rewards: Sequence[RewardRecord], config: schema.NewPolicy) -> float:
    """Return the reward that a decision counts with: of several as the policy aggregates them, without any its default."""
    value = config.default_reward
    if rewards:
        value = sum(r.value for r in rewards) if config.aggregation == "sum" else rewards[-1].value
    return float(np.clip(value, *config.reward_range))
