"""What can go wrong with asking the service, one class a status; all of them are SurefootErrors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot.errors import SurefootError


class ConnectionFailed(SurefootError, ConnectionError):
    """The service could not be reached, or went away before it had answered."""


class TimedOut(SurefootError, TimeoutError):
    """No answer in time."""


class StatusError(SurefootError):
    """The service answered with a problem (RFC 9457)."""

    def __init__(self, status: int, problem: Mapping[str, Any], retry_after: float | None = None) -> None:
        self.status, self.retry_after = status, retry_after
        self.type = str(problem.get("type", "about:blank"))
        self.title = str(problem.get("title", ""))
        self.detail = str(problem.get("detail") or problem.get("error") or self.title or "no reason given")
        self.pointer: str | None = problem.get("pointer")
        self.request_id: str | None = problem.get("request_id")
        super().__init__(f"{status}: {self.detail}" + (f" (at {self.pointer})" if self.pointer else ""))


class Malformed(StatusError):
    """400: the body is not JSON."""


class Unauthorized(StatusError):
    """401: a token is needed, or that one is not known."""


class Forbidden(StatusError):
    """403: this token may not."""


class NotFound(StatusError):
    """404: there is no such policy, decision, version, job or checkpoint."""


class Conflict(StatusError):
    """409: an id was used for another question, a reward was told before, an update runs already."""


class Expired(StatusError):
    """410: the reward comes too late."""


class TooLarge(StatusError):
    """413: the body is too large."""


class Invalid(StatusError):
    """422: the body says what cannot be; `pointer` says where."""


class RateLimited(StatusError):
    """429: too many requests."""


class ServiceFailed(StatusError):
    """500: the service failed."""


class Unavailable(StatusError):
    """502, 503, 504: not now."""


class DiskFull(StatusError):
    """507: its disk is full."""


BY_STATUS: dict[int, type[StatusError]] = {
    400: Malformed,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    413: TooLarge,
    422: Invalid,
    429: RateLimited,
    500: ServiceFailed,
    **dict.fromkeys((502, 503, 504), Unavailable),
    507: DiskFull,
}
