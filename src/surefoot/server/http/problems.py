"""Problems that a request can be answered with: stable kinds with their HTTP status."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.errors import SurefootError


class Refused(SurefootError):
    """A request that is answered with a problem; `kind` is its stable name, `pointer` a JSON pointer into the body."""

    def __init__(
        self, kind: str, detail: str, *, pointer: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.pointer, self.headers = kind, detail, pointer, dict(headers or {})
        self.status, self.title = PROBLEMS[kind]


PROBLEMS: dict[str, tuple[int, str]] = {
    "http": (400, "Malformed HTTP request"),
    "malformed": (400, "The body is not valid JSON"),
    "unauthorized": (401, "A valid token is required"),
    "forbidden": (403, "The token lacks a scope"),
    "origin": (403, "The origin is not allowed"),
    "unknown": (404, "Not found"),
    "method": (405, "Method not allowed"),
    "not-acceptable": (406, "Responses are JSON"),
    "timeout": (408, "The request took too long"),
    "conflict": (409, "Conflict with the current state"),
    "expired": (410, "The deadline has passed"),
    "too-large": (413, "The body is too large"),
    "media-type": (415, "The body must be JSON"),
    "host": (421, "Wrong host"),
    "invalid": (422, "The body is invalid"),
    "rate": (429, "Too many requests"),
    "head": (431, "The request head is too large"),
    "failed": (500, "Internal error"),
    "unavailable": (503, "Temporarily unavailable"),
    "full": (507, "The disk is full"),
}
"""{kind: (status, title)}; the type of a problem is about:surefoot/<kind>."""
