"""Access control: tokens with scopes, the Host and Origin of a request, and a rate limit."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from surefoot._http import is_loopback
from surefoot.errors import ConfigError
from surefoot.server.http.problems import Refused

Scope = Literal["decide", "read", "distribution", "admin"]
"""decide: decide and reward. read: read policies. distribution: the probability of every choice. admin: everything."""
SCOPES: tuple[Scope, ...] = ("decide", "read", "distribution", "admin")
ALL = frozenset(SCOPES)
OPEN_PATHS = ("/health", "/healthz", "/readyz")
"""Served without a token."""


def read_tokens(path: Path) -> dict[str, frozenset[Scope]]:
    """Read lines of `TOKEN scope,scope`; a token without scopes has all of them."""
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as why:
        raise ConfigError(f"cannot read tokens from {path}: {why}") from why
    tokens: dict[str, frozenset[Scope]] = {}
    for number, line in enumerate(lines, 1):
        token, _, scopes = line.partition(" ")
        if not token or token.startswith("#"):
            continue
        if len(token) < 16:
            raise ConfigError(
                f"{path}:{number} is shorter than 16 characters; `openssl rand -hex 32` makes a good token"
            )
        wanted = [word.strip() for word in scopes.split(",") if word.strip()] or list(SCOPES)
        for word in wanted:
            if word not in SCOPES:
                raise ConfigError(f"{path}:{number} has scope {word!r}; there are {', '.join(SCOPES)}")
        tokens[token] = frozenset(scope for scope in SCOPES if scope in wanted)
    if not tokens:
        raise ConfigError(f"{path} has no token; put one on a line")
    return tokens


def require(scope: Scope, scopes: frozenset[Scope]) -> None:
    """Raise `Refused` unless a token's scopes include this one."""
    if scope not in scopes and "admin" not in scopes:
        raise Refused("forbidden", f"this token may {', '.join(sorted(scopes))}; the request takes {scope}")


@dataclass(slots=True, kw_only=True)
class AccessGuard:
    """Checks a request's head before its body is read."""

    host: str = "127.0.0.1"
    port: int = 8765
    tokens: Mapping[str, frozenset[Scope]] = field(default_factory=dict[str, frozenset[Scope]])
    origins: Sequence[str] = ()
    """Sites whose pages may send requests."""
    per_second: float = 0.0
    """Requests per client and second; 0 sets no limit."""
    clock: Callable[[], float] = time.monotonic
    _buckets: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    """{client: (requests left, at this time)}, a token bucket each."""
    _hosts: set[bytes] = field(default_factory=set[bytes])
    """Host headers that passed the check before."""

    def __post_init__(self) -> None:
        if not is_loopback(self.host) and not self.tokens:
            raise ConfigError(f"{self.host} can be reached by others: give --token-file, or stay on 127.0.0.1")
        if "*" in self.origins:
            raise ConfigError("--allow-origin takes sites by name, never *")

    def check(self, path: str, headers: Mapping[bytes, bytes], client: str, scope: Scope) -> frozenset[Scope]:
        """Return the scopes of the request's token. Raise `Refused` if host, origin, rate or token are not allowed."""
        self._check_host(headers)
        if (origin := headers.get(b"origin")) is not None:
            site = origin.decode("latin-1")
            own = {f"http://{name}:{self.port}" for name in ("127.0.0.1", "localhost", "[::1]", self.host)}
            if site not in own and site not in self.origins:
                raise Refused("origin", f"a page of {site[:80]!r} may not ask; --allow-origin names those that may")
        if self.per_second > 0:
            self._check_rate(client)
        return ALL if not self.tokens or path in OPEN_PATHS else self._scopes(headers, scope)

    def _check_host(self, headers: Mapping[bytes, bytes]) -> None:
        raw = headers.get(b"host", b"")
        if raw in self._hosts:
            return
        given = raw.decode("latin-1")
        name = given.rpartition(":")[0] if given.rpartition(":")[2].isdigit() else given
        if is_loopback(self.host):
            known = is_loopback(name.strip("[]"))
        else:
            known = name in (self.host, "localhost") or self.host in ("0.0.0.0", "::")
        if not known:
            raise Refused("host", f"this is {self.host}:{self.port}, not {given[:80]!r}")
        if len(self._hosts) < 100:
            self._hosts.add(raw)

    def cors(self, headers: Mapping[bytes, bytes]) -> dict[str, str]:
        """Return the headers with which a page of a named site can read the response; none for other sites."""
        origin = headers.get(b"origin", b"").decode("latin-1")
        if not origin or origin not in self.origins:
            return {}
        return {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}

    def who(self, headers: Mapping[bytes, bytes], client: str) -> str:
        """Return a short hash of the request's token, or of its address: it identifies a client in logs."""
        given = headers.get(b"authorization", b"").partition(b" ")[2] if self.tokens else b""
        return hashlib.blake2b(given or client.encode(), digest_size=6).hexdigest()

    def _scopes(self, headers: Mapping[bytes, bytes], scope: Scope) -> frozenset[Scope]:
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() != b"bearer" or not given:
            raise Refused("unauthorized", "send Authorization: Bearer TOKEN", headers={"WWW-Authenticate": "Bearer"})
        scopes: frozenset[Scope] | None = None
        for token, may in self.tokens.items():  # compare all of them: the time must not depend on the match
            if hmac.compare_digest(token.encode(), given):
                scopes = may
        if scopes is None:
            raise Refused("unauthorized", "that token is not known", headers={"WWW-Authenticate": "Bearer"})
        require(scope, scopes)
        return scopes

    def _check_rate(self, client: str) -> None:
        now = self.clock()
        left, at = self._buckets.get(client, (self.per_second, now))
        left = min(self.per_second, left + (now - at) * self.per_second)
        self._buckets[client] = (left - 1.0 if left >= 1.0 else left), now
        if left < 1.0:
            wait = max(1, round((1.0 - left) / self.per_second))
            raise Refused("rate", f"at most {self.per_second:g} requests a second", headers={"Retry-After": str(wait)})
        if len(self._buckets) > 10_000:
            self._buckets.pop(next(iter(self._buckets)))
