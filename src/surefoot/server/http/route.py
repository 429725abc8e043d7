"""One thing that can be asked: its path, who may ask, what goes in and what comes out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from surefoot.server.http.access import Guard, Scope

BODY = 1 << 20
BATCH_BODY = 16 << 20
JSON = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One thing that can be asked."""

    method: str
    path: str
    """With {name} where a word stands."""
    handle: Callable[..., Awaitable[Any]]
    """Takes the words, then the body if there is one."""
    answer: Any
    begin: Callable[..., None] | None = None
    """The same without a coroutine: takes a callback, too, which gets the answer or an error."""
    key: str = ""
    """The field of the body that an Idempotency-Key stands for; where there is none, the answer is kept for a while."""
    wants_client: bool = False
    """True: `handle` is told whose request it is."""
    body: type[Any] | None = None
    scope: Scope = "decide"
    also: Callable[[Any], Scope | None] | None = None
    """A scope that a body asks for on top."""
    status: int = 200
    limit: int = BODY
    kind: str = JSON
    open: bool = False
    """Asked without a token."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of its answer, beside the usual ones."""
    name: str = ""
    """What a client calls it."""
    about: str = ""
    problems: tuple[str, ...] = ()
    """Kinds of problems beside those that everything may have."""
    links: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """{what may be asked next: (its word, the field of the answer that is it)}"""


class Counted(Protocol):
    """Whoever counts the requests."""

    counts: dict[tuple[str, int], int]
    seconds: float
    routes: list[Route]
    guard: Guard


class Serves(Protocol):
    """Whatever stands behind the routes."""

    draining: bool

    async def start(self) -> None: ...

    async def close(self) -> None: ...
