"""What can be wrong with a request, each with its status and a name that stays."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.errors import SurefootError


class Refused(SurefootError):
    """A request that is answered with a problem: `kind` is its stable name, `status` HTTP's."""

    def __init__(
        self, kind: str, detail: str, *, pointer: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.kind, self.detail, self.pointer, self.headers = kind, detail, pointer, dict(headers or {})
        self.status, self.title = PROBLEMS[kind]


PROBLEMS: dict[str, tuple[int, str]] = {
    "http": (400, "This is not HTTP"),
    "malformed": (400, "The body is not JSON"),
    "unauthorized": (401, "A token is needed"),
    "forbidden": (403, "This token may not"),
    "origin": (403, "Another site's page may not ask"),
    "unknown": (404, "There is no such thing"),
    "method": (405, "It cannot be asked that way"),
    "not-acceptable": (406, "Answers are JSON"),
    "timeout": (408, "The request took too long"),
    "conflict": (409, "It is not as you think"),
    "expired": (410, "It comes too late"),
    "too-large": (413, "The body is too large"),
    "media-type": (415, "Bodies are JSON"),
    "host": (421, "Not this host"),
    "invalid": (422, "The body says what cannot be"),
    "rate": (429, "Too many requests"),
    "head": (431, "The head is too large"),
    "failed": (500, "Something went wrong here"),
    "unavailable": (503, "Not now"),
    "full": (507, "The disk is full"),
}
"""{kind: (status, title)}; the type of a problem is about:surefoot/<kind>."""
