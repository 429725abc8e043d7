"""Exceptions of the clients, one class per HTTP status; all are `SurefootError`s."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot.errors import SurefootError


class ConnectionFailed(SurefootError, ConnectionError):
    """The service could not be reached, or closed the connection without a response."""


class TimedOut(SurefootError, TimeoutError):
    """No response within the timeout."""


class StatusError(SurefootError):
    """The service responded with a problem document (RFC 9457)."""

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
    """401: the token is missing or unknown."""


class Forbidden(StatusError):
    """403: the token does not have the required scope."""


class NotFound(StatusError):
    """404: the policy, decision, version, job or checkpoint does not exist."""


class Conflict(StatusError):
    """409: the id belongs to another request, the reward was already reported, or an update is already running."""


class Expired(StatusError):
    """410: the reward was reported after its deadline."""


class TooLarge(StatusError):
    """413: the body is too large."""


class Invalid(StatusError):
    """422: a value in the body is invalid; `pointer` is its JSON pointer."""


class RateLimited(StatusError):
    """429: too many requests."""


class ServiceFailed(StatusError):
    """500: the service failed."""


class Unavailable(StatusError):
    """502, 503, 504: the service is temporarily unavailable."""


class DiskFull(StatusError):
    """507: the disk of the service is full."""


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
