"""Bodies as they go over the wire, and answers as they come back."""

from __future__ import annotations

import base64
import email.utils
import random
import struct
import time
import urllib.parse
import uuid
from collections.abc import Iterator, Mapping, Sequence
from email.message import Message
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from surefoot.client.errors import BY_STATUS, StatusError
from surefoot.errors import SurefootError

T = TypeVar("T")
FIRST_WAIT, LONGEST_WAIT = 0.25, 8.0
AGAIN = (408, 429, 500, 502, 503, 504)
NOTHING_DONE = (429, 503)
"""Answers that say that nothing was done."""
IDLE = 2.0
"""Seconds after which a connection is made anew."""


def at(policy: str) -> str:
    """Where a policy is asked."""
    return f"/v1/policies/{quoted(policy)}"


def quoted(word: str) -> str:
    """A word as a part of a path."""
    return urllib.parse.quote(word, safe="")


def wire(seen: Mapping[str, Any]) -> dict[str, Any]:
    """A decision as it goes over the wire, with its id."""
    return {**without_id(seen), "decision_id": seen.get("decision_id") or f"d-{uuid.uuid4().hex}"}


def observed(observation: Any, how: Mapping[str, Any]) -> dict[str, Any]:
    """What a trained policy sees, as it goes over the wire."""
    if not isinstance(observation, Mapping):
        told = {"observation": observation} if _is_list(observation) else {"observation_b64": packed(observation)}
        return {**told, **how}
    parts: dict[str, Any] = {}
    coded: dict[str, Any] = {}
    for name, part in observation.items():  # pyright: ignore[reportUnknownVariableType]
        if _is_list(part):
            parts[name] = part
        else:
            coded[name] = packed(part)
    return {**({"parts": parts} if parts else {}), **({"parts_b64": coded} if coded else {}), **how}


def without_id(seen: Mapping[str, Any]) -> dict[str, Any]:
    """A question as it goes over the wire."""
    body = _packed(seen)
    if body.get("candidates") is not None:
        body["candidates"] = [_packed(each) for each in body["candidates"]]
    return body


def _packed(seen: Mapping[str, Any]) -> dict[str, Any]:
    """The same, its embedding as base64 if it is a buffer."""
    body, embedding = dict(seen), seen.get("embedding")
    if embedding is not None and not _is_list(embedding):
        body["embedding_b64"] = packed(embedding)
        del body["embedding"]
    return body


def packed(numbers: Any) -> str:
    """Any buffer of floats as little-endian float32, base64."""
    flat: Sequence[float] = list(_flat(memoryview(numbers).tolist()))
    return base64.b64encode(struct.pack(f"<{len(flat)}f", *flat)).decode()


def _flat(numbers: Any) -> Iterator[float]:
    if not _is_list(numbers):
        yield numbers
        return
    for each in numbers:
        yield from _flat(each)


def _is_list(thing: Any) -> bool:
    return isinstance(thing, (list, tuple))


def error_of(status: int, headers: Message, answer: bytes) -> StatusError:
    try:
        problem = msgspec.json.decode(answer, type=dict[str, Any])
    except msgspec.MsgspecError:
        problem: dict[str, Any] = {"detail": answer[:200].decode(errors="replace")}
    return BY_STATUS.get(status, StatusError)(status, problem, _retry_after(headers.get("Retry-After")))


def _retry_after(given: str | None) -> float | None:
    """Seconds, from seconds or a date."""
    if given is None:
        return None
    if given.strip().isdigit():
        return float(given)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(given).timestamp() - time.time())
    except ValueError:
        return None


def backoff(tries: int) -> float:
    """Longer each time, never the same for all clients at once."""
    return min(LONGEST_WAIT, FIRST_WAIT * 2**tries) * random.uniform(0.5, 1.0)


def read(answer: bytes, kind: type[T]) -> T:
    """The answer as its struct; fields of a newer service are passed over."""
    try:
        return msgspec.convert(_known(msgspec.json.decode(answer), kind), kind)
    except msgspec.MsgspecError as why:
        raise SurefootError(f"the answer is not a {getattr(kind, '__name__', kind)}: {why}") from why


def _known(value: Any, kind: Any) -> Any:
    """Without what the struct does not have, all the way down."""
    if isinstance(value, list) and get_origin(kind) is list:
        return [_known(each, get_args(kind)[0]) for each in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict) and isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = get_type_hints(kind)
        return {name: _known(each, hints[name]) for name, each in value.items() if name in hints}  # pyright: ignore[reportUnknownVariableType]
    return value
