"""The calls of the decision service, declared once: signature, path, body and response type for both clients."""

from __future__ import annotations

import functools
import inspect
import urllib.parse
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

from surefoot.client.bodies import (
    AGAIN,
    NOTHING_DONE,
    backoff,
    encode_decision,
    encode_observation,
    encode_query,
    policy_path,
    query_string,
    quoted,
    read,
)
from surefoot.client.errors import StatusError
from surefoot.errors import SurefootError
from surefoot.server import schema

if TYPE_CHECKING:
    from surefoot.client.asynchronous import AsyncSurefoot
    from surefoot.client.synchronous import Surefoot

P = ParamSpec("P")
T = TypeVar("T")
K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request, and the function that decodes its response."""

    method: str
    path: str
    body: Any
    decode: Callable[[bytes], T]
    repeatable: bool = True
    """Sending it twice has the same effect as sending it once."""


class ClientMethod(Generic[P, T]):
    """The type of a declared call: a method of `Surefoot` returns T, the same method of `AsyncSurefoot` a coroutine."""

    if TYPE_CHECKING:

        @overload
        def __get__(self, client: Surefoot, owner: Any = None) -> Callable[P, T]: ...
        @overload
        def __get__(self, client: AsyncSurefoot, owner: Any = None) -> Callable[P, Coroutine[Any, Any, T]]: ...
        @overload
        def __get__(self, client: None, owner: Any = None) -> Callable[Concatenate[Any, P], Any]: ...
        def __get__(self, client: Any, owner: Any = None) -> Any: ...


def _call(build: Callable[Concatenate[Any, P], Call[T]]) -> ClientMethod[P, T]:
    """Turn a method that builds a call into one that sends it, by the client's `_send`."""

    @functools.wraps(build)
    def method(client: ServiceMethods, *args: P.args, **kwargs: P.kwargs) -> Any:
        return client._send(build(client, *args, **kwargs))  # pyright: ignore[reportPrivateUsage]: `build` is one of its methods

    # `help(Surefoot.decide)` shows the response's type, not the call's.
    signature = inspect.signature(build)
    returns = str(signature.return_annotation).removeprefix("Call[").removesuffix("]")
    method.__signature__ = signature.replace(return_annotation=returns)  # pyright: ignore[reportAttributeAccessIssue]: functions take attributes
    return cast("ClientMethod[P, T]", method)


def _get(path: str, kind: type[T]) -> Call[T]:
    return Call("GET", path, None, lambda raw: read(raw, kind))


def _post(path: str, body: Any, kind: type[T], *, repeatable: bool = True) -> Call[T]:
    return Call("POST", path, body, lambda raw: read(raw, kind), repeatable)


def _part(call: Call[K], part: Callable[[K], T]) -> Call[T]:
    return Call(call.method, call.path, call.body, lambda raw: part(call.decode(raw)), call.repeatable)


class ServiceMethods(ABC):
    """What `Surefoot` and `AsyncSurefoot` share: their settings, the rule for retries, and one method per call."""

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8765",
        *,
        token: str | None = None,
        timeout: float = 30.0,
        max_retries: int = 2,
        max_retry_after: float = 30.0,
    ) -> None:
        """Check the address; nothing is sent yet.

        Args:
            base_url: Address of the service.
            token: Bearer token, for a service that was started with `--token-file`.
            timeout: Seconds to wait for a response.
            max_retries: Retries of a request that failed and is safe to repeat.
            max_retry_after: Longest wait, in seconds, that a Retry-After header of the service is followed for.
        """
        parts = urllib.parse.urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"base_url is {base_url!r}; it must be like http://127.0.0.1:8765")
        self.base_url, self.timeout = base_url.rstrip("/"), timeout
        self.max_retries, self.max_retry_after = max_retries, max_retry_after
        self._url, self._host, self._prefix = parts, parts.hostname, parts.path.rstrip("/")
        self._headers = {"Accept": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
        self._prepare()

    @abstractmethod
    def _prepare(self) -> None:
        """Create the state that the client needs between requests."""

    @abstractmethod
    def _send(self, call: Call[Any]) -> Any:
        """Send a request, with retries, and return the decoded response; a coroutine of it in the asynchronous client."""

    def _pause(self, error: SurefootError, tries: int, *, repeatable: bool) -> float:
        """Return the seconds to wait before the next try. Raise the error if no further try is allowed."""
        wait, safe = 0.0, repeatable
        if isinstance(error, StatusError):
            wait = min(error.retry_after or 0.0, self.max_retry_after)
            safe = error.status in AGAIN and (repeatable or error.status in NOTHING_DONE)
        if not safe or tries == self.max_retries:
            raise error
        return wait or backoff(tries)

    @_call
    def health(self) -> Call[schema.Health]:
        """Return whether the service is alive; needs no token."""
        return _get("/healthz", schema.Health)

    @_call
    def ready(self) -> Call[schema.Health]:
        """Return whether the service takes requests; raise `Unavailable` while it shuts down."""
        return _get("/readyz", schema.Health)

    @_call
    def metrics(self) -> Call[str]:
        """Return the service's counters in Prometheus' format."""
        return Call("GET", "/metrics", None, bytes.decode)

    @_call
    def policies(self) -> Call[list[schema.PolicyResponse]]:
        """Return all policies."""
        return _get("/v1/policies", list[schema.PolicyResponse])

    @_call
    def policy(self, name: str) -> Call[schema.PolicyResponse]:
        """Return a policy's settings, versions in use and reward statistics."""
        return _get(policy_path(name), schema.PolicyResponse)

    @_call
    def create_policy(self, name: str, actions: Sequence[str] = (), **settings: Any) -> Call[schema.PolicyResponse]:
        """Create a policy; the same request again returns the same policy. Settings are the fields of `schema.NewPolicy`.

        A policy without actions has `choose="candidates"`: each decision brings the candidates to choose from.
        """
        return _post("/v1/policies", {"name": name, "actions": list(actions), **settings}, schema.PolicyResponse)

    @_call
    def decide(self, policy: str, **query: Any) -> Call[schema.DecisionResponse]:
        """Choose an action for `text` or an `embedding`, or one of `candidates`; fields are those of `schema.NewDecision`.

        The decision's id is generated here unless you pass one, so that a retry is the same decision. An embedding that
        is a numpy array or another buffer of floats is sent as base64, a list as JSON.
        """
        return _post(f"{policy_path(policy)}/decisions", encode_decision(query), schema.DecisionResponse)

    @_call
    def decide_many(self, policy: str, many: Iterable[Mapping[str, Any]]) -> Call[list[schema.DecisionResponse]]:
        """Choose many actions, all or none."""
        body = {"decisions": [encode_decision(query) for query in many]}
        call = _post(f"{policy_path(policy)}/decisions/batch", body, schema.DecisionList)
        return _part(call, lambda response: response.decisions)

    @_call
    def distribution(self, policy: str, **query: Any) -> Call[schema.Chances]:
        """Return the probability of every choice; nothing is decided or stored. Fields as for `decide`."""
        return _post(f"{policy_path(policy)}/distribution", encode_query(query), schema.Chances)

    @_call
    def runs(self) -> Call[list[schema.RunResponse]]:
        """Return the trained policies that `surefoot serve RUN` serves."""
        return _get("/v1/runs", list[schema.RunResponse])

    @_call
    def run(self, name: str) -> Call[schema.RunResponse]:
        """Return the observation and the action of a trained policy."""
        return _get(f"/v1/runs/{quoted(name)}", schema.RunResponse)

    @_call
    def act(self, run: str, observation: Any, **how: Any) -> Call[schema.Act]:
        """Return a trained policy's action: `deterministic`, `mask`, `episode` and `start` as in `schema.NewAct`.

        An observation is a flat list of numbers, an array, or a dict of them; arrays are sent as base64.
        """
        return _post(f"/v1/runs/{quoted(run)}/actions", encode_observation(observation, how), schema.Act)

    @_call
    def act_many(self, run: str, observations: Iterable[Any], **how: Any) -> Call[list[schema.Act]]:
        """Return the actions for many observations, with the same options for all."""
        body = {"acts": [encode_observation(observation, how) for observation in observations]}
        return _part(
            _post(f"/v1/runs/{quoted(run)}/actions/batch", body, schema.ActList), lambda response: response.acts
        )

    @_call
    def reward(self, decision: str, value: float | None = None, **outcome: Any) -> Call[schema.RewardResponse]:
        """Report the reward of a decision: a value, or `parts`, `terminated`, `truncated`.

        The same report twice counts once, except where a policy's aggregation is "sum".
        """
        body = dict(outcome) if value is None else {"value": value, **outcome}
        return _post(f"/v1/decisions/{quoted(decision)}/reward", body, schema.RewardResponse)

    @_call
    def activate(self, decision: str) -> Call[schema.DecisionResponse]:
        """Report that a deferred decision was carried out."""
        return _post(f"/v1/decisions/{quoted(decision)}/activate", None, schema.DecisionResponse)

    @_call
    def explain(self, decision: str) -> Call[schema.Explained]:
        """Return why an action was chosen, and the rewards of similar decisions."""
        return _get(f"/v1/decisions/{quoted(decision)}", schema.Explained)

    @_call
    def change_policy(self, policy: str, **changes: Any) -> Call[schema.PolicyResponse]:
        """Rename or freeze a policy, add, describe or retire actions; fields are those of `schema.PolicyChange`."""
        return Call("PATCH", policy_path(policy), changes, lambda raw: read(raw, schema.PolicyResponse))

    @_call
    def delete_policy(self, policy: str) -> Call[schema.Deleted]:
        """Delete a policy with its versions, decisions and rewards."""
        return Call("DELETE", policy_path(policy), None, lambda raw: read(raw, schema.Deleted), repeatable=False)

    @_call
    def decisions(self, policy: str, **query: Any) -> Call[schema.DecisionLog]:
        """Return past decisions, newest first; filters are the fields of `schema.DecisionQuery`."""
        return _get(f"{policy_path(policy)}/decisions{query_string(query)}", schema.DecisionLog)

    @_call
    def export_csv(self, policy: str, **query: Any) -> Call[str]:
        """Return past decisions as CSV; filters are the fields of `schema.ExportQuery`."""
        return Call("GET", f"{policy_path(policy)}/decisions.csv{query_string(query)}", None, bytes.decode)

    @_call
    def statistics(self, policy: str) -> Call[schema.PolicyStatistics]:
        """Return the share and mean reward of each action, and the calibration."""
        return _get(f"{policy_path(policy)}/statistics", schema.PolicyStatistics)

    @_call
    def versions(self, policy: str) -> Call[list[schema.Version]]:
        """Return a policy's versions, newest first."""
        return _part(_get(f"{policy_path(policy)}/versions", schema.VersionList), lambda response: response.versions)

    @_call
    def promote(
        self, policy: str, version: int, *, share: float = 1.0, gate: bool = False
    ) -> Call[schema.PolicyResponse]:
        """Let a version decide; a share below 1 makes it a canary, `gate` requires that it is not worse by the log."""
        body = {"version": version, "share": share, "gate": gate}
        return _post(f"{policy_path(policy)}/promote", body, schema.PolicyResponse)

    @_call
    def rollback(self, policy: str) -> Call[schema.PolicyResponse]:
        """Return to the version that decided before."""
        return _post(f"{policy_path(policy)}/rollback", None, schema.PolicyResponse, repeatable=False)

    @_call
    def evaluate(self, policy: str, version: int, *, last: int = 10_000) -> Call[schema.OffPolicy]:
        """Estimate from the log what another version would have earned."""
        return _post(f"{policy_path(policy)}/evaluations", {"version": version, "last": last}, schema.OffPolicy)

    @_call
    def update(self, policy: str, *, least: int | None = None) -> Call[schema.JobResponse]:
        """Start an update as a job; `finished` waits for it."""
        body = {} if least is None else {"least": least}
        return _post(f"{policy_path(policy)}/updates", body, schema.JobResponse, repeatable=False)

    @_call
    def job(self, id: str) -> Call[schema.JobResponse]:
        """Return the state of a job."""
        return _get(f"/v1/jobs/{quoted(id)}", schema.JobResponse)

    @_call
    def checkpoint(
        self, policy: str, *, version: int | None = None, name: str | None = None
    ) -> Call[schema.CheckpointResponse]:
        """Give a version a permanent name; by default the version that decides now."""
        body = {key: value for key, value in (("version", version), ("name", name)) if value is not None}
        return _post(f"{policy_path(policy)}/checkpoints", body, schema.CheckpointResponse)

    @_call
    def activate_checkpoint(self, id: str) -> Call[schema.PolicyResponse]:
        """Let the version of a checkpoint decide."""
        return _post(f"/v1/checkpoints/{quoted(id)}/activate", None, schema.PolicyResponse)


def ended(job: schema.JobResponse) -> bool:
    """Return whether a job is over. Raise `SurefootError` if it failed."""
    if job.state == "failed":
        raise SurefootError(f"job {job.job_id} failed: {job.message}")
    return job.state not in ("waiting", "running")
