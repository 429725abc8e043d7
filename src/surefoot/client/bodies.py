"""Encode request bodies and decode responses."""

from __future__ import annotations

import base64
import email.utils
import random
import struct
import time
import urllib.parse
import uuid
from collections.abc import Iterator, Mapping
from email.message import Message
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from surefoot.client.errors import BY_STATUS, StatusError
from surefoot.errors import SurefootError
from surefoot.server.schema import wire_name

T = TypeVar("T")
FIRST_WAIT, LONGEST_WAIT = 0.25, 8.0
"""Seconds before the first retry, doubled with each further one, and their limit."""
AGAIN = (408, 429, 500, 502, 503, 504)
"""Statuses after which a repeatable request is tried again."""
NOTHING_DONE = (429, 503)
"""Statuses that say that nothing was done, so that every request can be repeated."""
IDLE = 2.0
"""Seconds after which an idle connection is replaced: the service closes it after 5 (`http.protocol.IDLE_SECONDS`)."""


def policy_path(policy: str) -> str:
    return f"/v1/policies/{quoted(policy)}"


def quoted(word: str) -> str:
    return urllib.parse.quote(word, safe="")


def encode_decision(query: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a decision, with an id."""
    return {**encode_query(query), "decision_id": query.get("decision_id") or f"d-{uuid.uuid4().hex}"}


def encode_query(query: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a request that needs no id."""
    body = _packed(query)
    if body.get("candidates") is not None:
        body["candidates"] = [_packed(candidate) for candidate in body["candidates"]]
    return body


def encode_observation(observation: Any, how: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a request for a trained policy's action."""
    if not isinstance(observation, Mapping):
        key, value = _listed_or_packed("observation", observation)
        return {key: value, **how}
    body: dict[str, Any] = {}
    for name, part in observation.items():  # pyright: ignore[reportUnknownVariableType]
        key, value = _listed_or_packed("parts", part)
        body.setdefault(key, {})[name] = value
    return {**body, **how}


def _packed(query: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy in which an embedding that is a buffer is base64."""
    body = dict(query)
    if body.get("embedding") is not None:
        key, value = _listed_or_packed("embedding", body.pop("embedding"))
        body[key] = value
    return body


def _listed_or_packed(field: str, numbers: Any) -> tuple[str, Any]:
    """Return field and value: a list unchanged, any buffer of floats as little-endian float32 in base64."""
    if isinstance(numbers, (list, tuple)):
        return field, numbers  # pyright: ignore[reportUnknownVariableType]
    flat = list(_flat(memoryview(numbers).tolist()))
    return f"{field}_b64", base64.b64encode(struct.pack(f"<{len(flat)}f", *flat)).decode()


def _flat(numbers: Any) -> Iterator[float]:
    if not isinstance(numbers, list):
        yield numbers
        return
    for each in numbers:  # pyright: ignore[reportUnknownVariableType]
        yield from _flat(each)


def error_of(status: int, headers: Message, response: bytes) -> StatusError:
    try:
        problem = msgspec.json.decode(response, type=dict[str, Any])
    except msgspec.MsgspecError:
        problem: dict[str, Any] = {"detail": response[:200].decode(errors="replace")}
    return BY_STATUS.get(status, StatusError)(status, problem, _retry_after(headers.get("Retry-After")))


def _retry_after(value: str | None) -> float | None:
    """Return the seconds of a Retry-After header, which holds seconds or a date."""
    if value is None:
        return None
    if value.strip().isdigit():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def query_string(query: Mapping[str, Any]) -> str:
    """Return the parameters of a GET, with its question mark; empty without any."""
    values = {name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items()}
    return f"?{urllib.parse.urlencode(values)}" if values else ""


def backoff(tries: int) -> float:
    """Return the seconds before the next try: exponential, with jitter so that clients do not retry in step."""
    return min(LONGEST_WAIT, FIRST_WAIT * 2**tries) * random.uniform(0.5, 1.0)


def read(response: bytes, kind: type[T]) -> T:
    """Decode a response; fields that a newer service added are ignored."""
    try:
        return msgspec.convert(_known(msgspec.json.decode(response), kind), kind)
    except msgspec.MsgspecError as why:
        name = wire_name(getattr(kind, "__name__", str(kind)))
        raise SurefootError(f"the response is not a {name}: {why}") from why


def _known(value: Any, kind: Any) -> Any:
    """Return the value without fields that its struct does not have, recursively."""
    if isinstance(value, list) and get_origin(kind) is list:
        return [_known(each, get_args(kind)[0]) for each in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict) and isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = get_type_hints(kind)
        return {name: _known(each, hints[name]) for name, each in value.items() if name in hints}  # pyright: ignore[reportUnknownVariableType]
    return value
