"""One policy in memory: its decisions, their rewards, and their stored form."""

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

from surefoot.data.experience import Decision
from surefoot.data.journal import Entry
from surefoot.data.ledger import Ledger
from surefoot.decide.encoders.encoder import Cached, Encoder, HashingEncoder
from surefoot.decide.promotion import Versions
from surefoot.server import schema
from surefoot.server.decisions.numpy_network import Net, net_of, probabilities
from surefoot.server.http.problems import Refused

# Rewards in the mean that a policy reports.
RECENT = 1000
# Numbers in all candidates of a decision: 4 MB of float32, a fifth of the time that a request may take.
MOST_NUMBERS = 1 << 20


class RewardRecord(NamedTuple):
    """A reward as it was received."""

    value: float
    parts: dict[str, float]
    terminated: bool
    truncated: bool
    id: str = ""
    client: str = ""
    """Short hash of the client that sent it."""

    def same(self, other: RewardRecord) -> bool:
        """Return whether the same reward came again, from any client."""
        return self[:5] == other[:5]


@dataclass(slots=True, kw_only=True)
class TrackedDecision:
    """A decision and its rewards so far."""

    policy: str
    asked: str
    """Hash of the request's options: distinguishes a retry from another request with the same id."""
    raw: bytes
    """Bytes of the observation, for the same purpose; empty once it is on disk."""
    waiters: list[Callable[[Exception | None], None]] | None = None
    """Called when the decision is on disk; a retry waits for it too. None: it is on disk."""
    telling: asyncio.Future[None] | None = None
    """Done when the last reward is on disk."""
    answer: schema.DecisionResponse | None = None
    decision: Decision | None = None
    deferred: bool = False
    learns: bool = True
    rewards: list[RewardRecord] = field(default_factory=list[RewardRecord])
    final: float | None = None
    """The reward it was closed with."""

    @property
    def answered(self) -> schema.DecisionResponse:
        """The answer; the decision must have been made."""
        assert self.answer is not None
        return self.answer


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """A validated request."""

    id: str
    new: schema.NewDecision
    obs: dict[str, np.ndarray]
    """`obs` [size], and `candidates` [K, size] if it has some."""
    mask: np.ndarray | None
    names: Sequence[str]
    """Names of the actions, or ids of the candidates."""
    manner: str
    """Hash of all options but the observation, to recognise a retry; empty if all have their defaults."""
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
    """(expiry time, id) of decisions that wait for a reward, in this order."""
    decision_count: int = 0
    rewarded: int = 0
    learning: str | None = None
    """Id of the running update job."""
    unlearned: list[str] = field(default_factory=list[str])
    reward_clients: dict[str, str] = field(default_factory=dict[str, str])
    """{decision id: client whose reward closed it}, until it is learned from."""
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
    """Validate a request: its observation, candidates, mask and options."""
    row, raw = _row(new, config, encoder, pointer)
    obs, names = {"obs": row}, config.actions
    if config.choose == "candidates":
        names, obs["candidates"] = _described(new, config, encoder, pointer)
        raw += obs["candidates"].tobytes()
    elif new.candidates is not UNSET:
        raise Refused("invalid", "this policy chooses from its own actions", pointer=f"{pointer}/candidates")
    mask = None
    if new.mask is not UNSET:
        mask = np.array(new.mask, bool)
        if len(mask) != len(names) or not mask.any():
            detail = f"the mask has {len(names)} entries, at least one of them true"
            raise Refused("invalid", detail, pointer=f"{pointer}/mask")
    if new.mode == "apprentice":
        application_action(new, mask, len(names), pointer)
    id = ordered_id() if new.decision_id is UNSET else new.decision_id
    how = (new.mode, new.action, new.deterministic, new.defer, new.distribution, new.episode, new.subject, new.mask)
    manner = ""  # most requests have all defaults: no hash to compute and store
    if how != _PLAIN or new.candidates is not UNSET:
        options = repr((how, () if new.candidates is UNSET else names))
        manner = hashlib.blake2b(options.encode(), digest_size=16).hexdigest()
    return DecisionRequest(id, new, obs, mask, names, manner, raw)


# The default of each field of `how`, in its order.
_PLAIN = ("live", UNSET, False, False, False, UNSET, UNSET, UNSET)
_POOL = bytearray()


def ordered_id() -> str:
    """Return a UUID of version 7: later ones sort later, so that the store's index grows at its end."""
    if len(_POOL) < 10:
        # One system call per 400 ids.
        _POOL.extend(os.urandom(4000))
    r = _POOL[-10:].hex()
    del _POOL[-10:]
    t = f"{time.time_ns() // 1_000_000:012x}"
    return f"{t[:8]}-{t[8:]}-7{r[:3]}-{'89ab'[int(r[3], 16) & 3]}{r[4:7]}-{r[7:19]}"


def _row(
    new: schema.NewDecision, config: schema.NewPolicy, encoder: Encoder | None, pointer: str
) -> tuple[np.ndarray, bytes]:
    """Return the observation, [size] float32, and its bytes."""
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
            raise Refused("invalid", f"{len(numbers)} numbers; this policy expects {size}", pointer=where)
        row = np.array(numbers, np.float32)
        raw = row.tobytes()
    # One product finds NaN and infinity faster than a look at every number; as large finite numbers overflow in it,
    # only the second check decides.
    if not math.isfinite(row @ row) and not np.isfinite(row).all():
        raise Refused("invalid", "NaN or infinity", pointer=f"{where}/{int(np.flatnonzero(~np.isfinite(row))[0])}")
    return row, raw


def _described(
    new: schema.NewDecision, config: schema.NewPolicy, encoder: Encoder | None, pointer: str
) -> tuple[list[str], np.ndarray]:
    """Return the ids of the candidates and their embeddings, [K, size]."""
    if new.candidates is UNSET:
        raise Refused("invalid", "pass candidates: this policy has no fixed actions", pointer=pointer or "/")
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
        forms = (each.embedding is not UNSET) + (each.embedding_b64 is not UNSET) + (each.description is not UNSET)
        if forms != 1:
            raise Refused("invalid", "give one of description, embedding and embedding_b64", pointer=where)
        if each.description is UNSET:
            rows[place], _ = _floats(each.embedding, each.embedding_b64, size, where)
        elif encoder is None:
            raise Refused("invalid", "this policy has no encoder; send embeddings", pointer=f"{where}/description")
        else:
            texts[place] = each.description
    if texts:
        assert encoder is not None
        # All descriptions in one call: encoders are faster per text in a batch.
        rows[list(texts)] = encoder.encode(list(texts.values()))
    return names, rows


def application_action(new: schema.NewDecision, mask: np.ndarray | None, actions: int, pointer: str) -> int:
    if new.action is UNSET or new.action >= actions or (mask is not None and not mask[new.action]):
        raise Refused("invalid", "mode apprentice requires an allowed action", pointer=f"{pointer}/action")
    return int(new.action)


def value_of(reward: schema.NewReward, bounds: tuple[float, float]) -> float:
    """Return the reward as one number within the policy's range."""
    if reward.value is UNSET and reward.parts is UNSET:
        raise Refused("invalid", "give value, or parts", pointer="/value")
    value = sum(reward.parts.values()) if reward.value is UNSET and reward.parts is not UNSET else reward.value
    number = float(value)  # pyright: ignore[reportArgumentType]
    if not bounds[0] <= number <= bounds[1]:
        raise Refused("invalid", f"{number:g} lies outside of {bounds[0]:g} … {bounds[1]:g}", pointer="/value")
    return number


def rounded_chances(chances: np.ndarray, digits: int | None) -> list[float]:
    """Return the probabilities, rounded to `digits` if set: rounding makes it harder to copy the policy."""
    return chances.tolist() if digits is None else np.round(chances, digits).tolist()


def chances_of(serving: ServedPolicy, new: schema.NewDecision, digits: int | None = None) -> schema.Chances:
    """Return the distribution for a request without making a decision."""
    asked = ask(new, serving.config, serving.encoder, "")
    chances = probabilities(serving.network.answer([asked.obs])[0], asked.mask)
    return schema.Chances(
        policy=serving.config.name,
        policy_version=serving.version,
        distribution=rounded_chances(chances, digits),
        names=list(asked.names),
    )


class StoredDecision(msgspec.Struct, kw_only=True):
    """A decision in the store; the observation is stored beside it as raw float32."""

    answer: msgspec.Raw
    """The JSON of the answer, unchanged."""
    log_prob: float
    episode: str
    asked: str
    deferred: bool
    learns: bool
    mask: list[bool] | None = None
    subject: str = ""
    candidates: list[str] | None = None
    """Ids of the candidates, if the request had some."""
    client: str = ""


def read_decision(entry: Entry, config: schema.NewPolicy) -> tuple[Decision, schema.DecisionResponse]:
    """Return the decision and the answer of a stored entry."""
    body: dict[str, Any] = entry.body
    answer = msgspec.convert(body["answer"], schema.DecisionResponse)
    rows = np.frombuffer(entry.raw or b"", np.float32).reshape(-1, config.embedding_size)
    candidates = body.get("candidates")
    obs = {"obs": rows[0]} if candidates is None else {"obs": rows[0], "candidates": rows[1:]}
    actions = len(config.actions) if candidates is None else len(candidates)
    mask = np.ones(actions, bool) if body["mask"] is None else np.array(body["mask"], bool)
    decision = Decision(
        id=answer.decision_id,
        episode=body["episode"],
        obs=obs,
        action=answer.action,
        log_prob=float(body["log_prob"]),
        value=0.0,
        policy_version=answer.policy_version,
        action_mask=mask,
    )
    return decision, answer


def final_reward(rewards: Sequence[RewardRecord], config: schema.NewPolicy) -> float:
    """Return the reward of a decision: aggregated as the policy declares, or the default without any."""
    value = config.default_reward
    if rewards:
        value = sum(r.value for r in rewards) if config.aggregation == "sum" else rewards[-1].value
    # Each reward is within the range, but their sum may not be.
    return float(np.clip(value, *config.reward_range))
