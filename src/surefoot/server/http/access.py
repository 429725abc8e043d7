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
"""decide: decide and reward. read: read policies. distribution: probabilities of all choices. admin: everything."""
SCOPES: tuple[Scope, ...] = ("decide", "read", "distribution", "admin")
ALL = frozenset(SCOPES)
OPEN_PATHS = ("/health", "/healthz", "/readyz")
"""Paths that need no token."""


def read_tokens(path: Path) -> dict[str, frozenset[Scope]]:
    """Read lines of the form `TOKEN scope,scope`; a token without scopes has all of them."""
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read tokens from {path}: {error}") from error
    tokens: dict[str, frozenset[Scope]] = {}
    for number, line in enumerate(lines, 1):
        token, _, scopes = line.partition(" ")
        if not token or token.startswith("#"):
            continue
        # 16 hexadecimal characters are 64 bits, the least that cannot be guessed over a network.
        if len(token) < 16:
            raise ConfigError(
                f"{path}:{number} is shorter than 16 characters; create a token with `openssl rand -hex 32`"
            )
        wanted = [word.strip() for word in scopes.split(",") if word.strip()] or list(SCOPES)
        for word in wanted:
            if word not in SCOPES:
                raise ConfigError(f"{path}:{number} has the unknown scope {word!r}; use {', '.join(SCOPES)}")
        tokens[token] = frozenset(scope for scope in SCOPES if scope in wanted)
    if not tokens:
        raise ConfigError(f"{path} has no token; write one per line")
    return tokens


def require(scope: Scope, scopes: frozenset[Scope]) -> None:
    """Raise `Refused` unless a token's scopes include this one."""
    if scope not in scopes and "admin" not in scopes:
        raise Refused("forbidden", f"the token has the scopes {', '.join(sorted(scopes))}; this request needs {scope}")


@dataclass(slots=True, kw_only=True)
class AccessGuard:
    """Checks a request's head before its body is read."""

    host: str = "127.0.0.1"
    port: int = 8765
    tokens: Mapping[str, frozenset[Scope]] = field(default_factory=dict[str, frozenset[Scope]])
    origins: Sequence[str] = ()
    """Origins whose pages may send requests."""
    other_origin: str = "add it with --allow-origin"
    """What to do about a page of another origin."""
    per_second: float = 0.0
    """Requests per second and client; 0: no limit."""
    clock: Callable[[], float] = time.monotonic
    _buckets: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])
    """{client: (remaining requests, time)}, one token bucket per client."""
    _hosts: set[bytes] = field(default_factory=set[bytes])
    """Host headers that passed the check before."""

    def __post_init__(self) -> None:
        if not is_loopback(self.host) and not self.tokens:
            raise ConfigError(f"{self.host} is reachable from other machines; pass --token-file, or bind to 127.0.0.1")
        if "*" in self.origins:
            raise ConfigError("--allow-origin needs origins by name; * is not allowed")

    def check(self, path: str, headers: Mapping[bytes, bytes], client: str, scope: Scope) -> frozenset[Scope]:
        """Return the scopes of the request's token. Raise `Refused` if host, origin, rate or token are not allowed."""
        self._check_host(headers)
        # Browsers send Origin with cross-site requests; other clients need not.
        if (origin := headers.get(b"origin")) is not None:
            site = origin.decode("latin-1")
            local = {f"http://{name}:{self.port}" for name in ("127.0.0.1", "localhost", "[::1]", self.host)}
            if site not in local and site not in self.origins:
                raise Refused("origin", f"the origin {site[:80]!r} is not allowed; {self.other_origin}")
        if self.per_second > 0:
            # Token bucket: refilled at per_second, and as large.
            now = self.clock()
            remaining, before = self._buckets.get(client, (self.per_second, now))
            remaining = min(self.per_second, remaining + (now - before) * self.per_second)
            self._buckets[client] = (remaining - 1.0 if remaining >= 1.0 else remaining), now
            if remaining < 1.0:
                wait = str(max(1, round((1.0 - remaining) / self.per_second)))
                raise Refused(
                    "rate", f"the limit is {self.per_second:g} requests per second", headers={"Retry-After": wait}
                )
            # Bounds the memory: about 1 MB.
            if len(self._buckets) > 10_000:
                self._buckets.pop(next(iter(self._buckets)))
        return ALL if not self.tokens or path in OPEN_PATHS else self._scopes(headers, scope)

    def _check_host(self, headers: Mapping[bytes, bytes]) -> None:
        """Raise `Refused` for a Host that is not this server: a page on another site could reach it by DNS rebinding."""
        raw = headers.get(b"host", b"")
        if raw in self._hosts:
            return
        # Several Host headers arrive joined; RFC 9112 3.2 requires 400.
        if b"," in raw:
            raise Refused("http", "the request has more than one Host header")
        host = raw.decode("latin-1")
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        if is_loopback(self.host):
            known = is_loopback(name.strip("[]"))
        else:
            known = name in (self.host, "localhost") or self.host in ("0.0.0.0", "::")
        if not known:
            raise Refused("host", f"the Host header is {host[:80]!r}; this server is {self.host}:{self.port}")
        # Bounded, because clients choose the header.
        if len(self._hosts) < 100:
            self._hosts.add(raw)

    def cors(self, headers: Mapping[bytes, bytes]) -> dict[str, str]:
        """Return the CORS headers for a page of an allowed origin; none for other origins."""
        origin = headers.get(b"origin", b"").decode("latin-1")
        if not origin or origin not in self.origins:
            return {}
        return {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}

    def client_id(self, headers: Mapping[bytes, bytes], client: str) -> str:
        """Return a short hash of the request's token or address, which identifies a client in logs."""
        token = headers.get(b"authorization", b"").partition(b" ")[2] if self.tokens else b""
        return hashlib.blake2b(token or client.encode(), digest_size=6).hexdigest()

    def _scopes(self, headers: Mapping[bytes, bytes], scope: Scope) -> frozenset[Scope]:
        kind, _, sent = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() != b"bearer" or not sent:
            raise Refused("unauthorized", "send Authorization: Bearer TOKEN", headers={"WWW-Authenticate": "Bearer"})
        scopes: frozenset[Scope] | None = None
        # Compare with all tokens: the time must not depend on which one matches.
        for token, token_scopes in self.tokens.items():
            if hmac.compare_digest(token.encode(), sent):
                scopes = token_scopes
        if scopes is None:
            raise Refused("unauthorized", "the token is unknown", headers={"WWW-Authenticate": "Bearer"})
        require(scope, scopes)
        return scopes
