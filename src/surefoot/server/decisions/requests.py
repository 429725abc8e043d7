"""Requests for decisions, how they are answered by a policy, and the stored form of a decision."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET

from surefoot.data.journal import Entry
from surefoot.decide.core.candidates import Candidates
from surefoot.decide.core.record import DecisionRecord
from surefoot.decide.policy.choosers import NOTHING, OptionChoice
from surefoot.decide.policy.outcome_model import Scene
from surefoot.decide.policy.replay import ReplayChooser
from surefoot.server import schema
from surefoot.server.decisions.served_policy import ServedPolicy
from surefoot.server.http.problems import Refused


@dataclass(frozen=True, slots=True)
class DecisionRequest:
    """A validated request."""

    id: str
    new: schema.NewDecision
    row: np.ndarray
    """The embedding, [size], as it was sent."""
    names: Sequence[str]
    """Names of the actions, or ids of the candidates."""
    places: list[int]
    """Indices into `names` of the allowed ones."""
    candidates: Candidates | None
    """The allowed ones."""
    asked: str
    """Hash of the whole request but its id, to recognise a retry."""


def ask(serving: ServedPolicy, new: schema.NewDecision, pointer: str) -> DecisionRequest:
    """Validate a request: its input, candidates, mask and options."""
    config, inputs = serving.config, serving.inputs
    row, raw = inputs.vector(new, pointer)
    if new.features is not UNSET and not config.feature_size:
        detail = 'this policy takes no features; create one with "feature_size": 64'
        raise Refused("invalid", detail, pointer=f"{pointer}/features")
    names, candidates = config.actions, None
    if config.choose == "candidates":
        candidates = inputs.candidates(new, pointer)
        names = list(candidates.ids)
        raw += candidates.vectors.tobytes()
    elif new.candidates is not UNSET:
        raise Refused("invalid", "this policy chooses from its own actions", pointer=f"{pointer}/candidates")
    retired = set(serving.retired)
    places = [place for place, name in enumerate(names) if name not in retired]
    if new.mask is not UNSET:
        if len(new.mask) != len(names) or not any(new.mask[place] for place in places):
            detail = f"the mask has {len(names)} entries, at least one of them true and not retired"
            raise Refused("invalid", detail, pointer=f"{pointer}/mask")
        places = [place for place in places if new.mask[place]]
        if candidates is not None:
            candidates = Candidates([names[place] for place in places], candidates.vectors[places])
    if new.mode == "apprentice" and (new.action is UNSET or new.action not in places):
        raise Refused("invalid", "mode apprentice requires an allowed action", pointer=f"{pointer}/action")
    id = ordered_id() if new.decision_id is UNSET else new.decision_id
    how = (new.mode, new.action, new.deterministic, new.defer, new.distribution, new.episode, new.subject, new.mask)
    digest = hashlib.blake2b(raw, digest_size=16)
    # Most requests have all defaults: nothing more to write and to hash.
    if how != _PLAIN or candidates is not None or new.features is not UNSET:
        digest.update(repr((how, () if candidates is None else names, new.features)).encode())
    return DecisionRequest(id, new, row, names, places, candidates, digest.hexdigest())


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


def decide(
    serving: ServedPolicy, asked: DecisionRequest, chooser: ReplayChooser | None = None, *, peek: bool = False
) -> DecisionRecord:
    """Return the decision of the policy, or of another version of it, by `Agent.choose`; with `peek` nothing changes."""
    new, inputs = asked.new, serving.inputs
    return serving.agent.choose(
        "",
        id=asked.id,
        vector=asked.row if new.text is not UNSET else inputs.scaled(asked.row, observe=not peek),
        extra=inputs.features(new, observe=not peek),
        allowed=None if asked.candidates is not None else [asked.names[place] for place in asked.places],
        candidates=asked.candidates,
        greedy=new.deterministic and not peek,
        chooser=chooser,
        peek=peek,
    )


def spread_over(values: np.ndarray, places: Sequence[int], count: int) -> np.ndarray:
    """Return values of the allowed choices at their places among all, [count]; 0 elsewhere."""
    whole = np.zeros(count)
    whole[list(places)] = values
    return whole


def rounded(chances: np.ndarray, digits: int | None) -> list[float]:
    """Return probabilities, rounded to `digits` if set: rounding makes it harder to copy the policy."""
    return chances.tolist() if digits is None else np.round(chances, digits).tolist()


def chances_of(serving: ServedPolicy, new: schema.NewDecision, digits: int | None = None) -> schema.Chances:
    """Return the distribution for a request without making a decision."""
    asked = ask(serving, new, "")
    record = decide(serving, asked, serving.pinned, peek=True)
    chances = spread_over(record.choice.probabilities, asked.places, len(asked.names))
    return schema.Chances(
        policy=serving.config.name,
        policy_version=serving.version,
        distribution=rounded(chances, digits),
        names=list(asked.names),
    )


class StoredDecision(msgspec.Struct, kw_only=True):
    """A decision in the store. Beside it, as raw numbers: input, cosines, success, prior, contrast, probabilities."""

    answer: msgspec.Raw
    """The JSON of the answer, unchanged."""
    at: int
    """Index of the choice among the allowed ones."""
    probability: float
    score: float
    """What the confidence was calibrated from."""
    version: int
    """Of the weights."""
    asked: str
    deferred: bool
    learns: bool
    count: int
    """Number of all choices, allowed or not."""
    places: list[int] | None = None
    """The allowed ones; None: all."""
    options: list[int] | None = None
    """Their stable indices; None: the same as `places`."""
    episode: str = ""
    subject: str = ""
    candidates: list[str] | None = None
    """Ids of the candidates, if the request had some."""
    features: dict[str, Any] | None = None
    draw: int = 0
    """How many random numbers decisions of the policy had taken, this one included."""
    scales: list[float] | None = None
    """Mean and deviation of cosines and length of embeddings, until these are settled."""


_PARTS = ("cosine", "worth", "prior")


def stored(serving: ServedPolicy, asked: DecisionRequest, record: DecisionRecord, answer: Any) -> tuple[bytes, bytes]:
    """Return the JSON and the raw numbers of a decision."""
    new, choice, scene = asked.new, record.choice, record.scene
    options = scene.option.tolist()
    body = StoredDecision(
        answer=msgspec.Raw(msgspec.json.encode(answer)),
        at=choice.at,
        probability=choice.probability,
        score=choice.score,
        version=choice.version,
        asked=asked.asked,
        deferred=new.defer,
        learns=learns_from(new, record),
        count=len(asked.names),
        places=None if len(asked.places) == len(asked.names) else asked.places,
        options=None if options == asked.places else options,
        episode="" if new.episode is UNSET else new.episode,
        subject="" if new.subject is UNSET else new.subject,
        candidates=None if asked.candidates is None else list(asked.names),
        features=None if new.features is UNSET else dict(new.features),
        draw=serving.agent.draws,
        scales=serving.scales(),
    )
    arrays = (scene.x, scene.cosine, choice.worth, choice.prior, record.contrast)
    raw = b"".join(np.asarray(part, "<f4").tobytes() for part in arrays)
    # In float64: the calibration divides by them, and must do the same after a restart.
    return msgspec.json.encode(body), raw + np.asarray(choice.probabilities, "<f8").tobytes()


def learns_from(new: schema.NewDecision, record: DecisionRecord) -> bool:
    # A shadow was not acted on; the likeliest action was not drawn with its probability; "none" has no outcome.
    return new.mode != "shadow" and not new.deterministic and record.name is not None


def read_decision(entry: Entry, serving: ServedPolicy) -> tuple[DecisionRecord, schema.DecisionResponse]:
    """Return the decision and the answer of a stored entry."""
    body: dict[str, Any] = entry.body
    answer = msgspec.convert(body["answer"], schema.DecisionResponse)
    config = serving.config
    places: list[int] = body["places"] if body["places"] is not None else list(range(body["count"]))
    option = places if body["options"] is None else body["options"]
    raw, k = entry.raw or b"", len(places)
    dim, probabilities = config.embedding_size + config.feature_size, np.frombuffer(raw[len(raw) - 8 * k :], "<f8")
    numbers = np.frombuffer(raw[: len(raw) - 8 * k], "<f4")
    parts = dict(zip(_PARTS, numbers[dim : dim + 3 * k].reshape(3, k), strict=True))
    names: list[str] = config.actions if body["candidates"] is None else body["candidates"]
    choice = OptionChoice(
        at=int(body["at"]),
        probability=float(body["probability"]),
        probabilities=probabilities,
        worth=parts["worth"],
        prior=parts["prior"],
        learned=parts["worth"] - parts["prior"],
        confidence=float(body["score"]),
        version=int(body["version"]),
    )
    contrast = numbers[dim + 3 * k :]
    described = serving.agent.options.vectors if body["candidates"] is None else None
    record = DecisionRecord(
        id=answer.decision_id,
        name=answer.name,
        names=[names[place] for place in places],
        scene=Scene(x=numbers[:dim], option=np.array(option, np.int64), cosine=parts["cosine"], described=described),
        choice=choice,
        confidence=answer.confidence,
        encoder=serving.agent.encoder.name,
        contrast=contrast if len(contrast) else NOTHING,
    )
    return record, answer
