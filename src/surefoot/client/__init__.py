"""Python clients of the decision service: one method per call, one exception class per status, safe retries."""

from surefoot.client.asynchronous import AsyncSurefoot
from surefoot.client.errors import (
    Conflict,
    ConnectionFailed,
    DiskFull,
    Expired,
    Forbidden,
    Invalid,
    Malformed,
    NotFound,
    RateLimited,
    ServiceFailed,
    StatusError,
    TimedOut,
    TooLarge,
    Unauthorized,
    Unavailable,
)
from surefoot.client.synchronous import Surefoot

__all__ = [
    "AsyncSurefoot",
    "Conflict",
    "ConnectionFailed",
    "DiskFull",
    "Expired",
    "Forbidden",
    "Invalid",
    "Malformed",
    "NotFound",
    "RateLimited",
    "ServiceFailed",
    "StatusError",
    "Surefoot",
    "TimedOut",
    "TooLarge",
    "Unauthorized",
    "Unavailable",
]
