"""The lines of a run's record: one struct a kind, told apart by `kind`; the file format and its only definition.

Within 2.x a change may only add optional fields and kinds: readers ignore fields they do not know. Anything else
(a new required field, a rename, another unit) is version 3.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

import msgspec

from surefoot.telemetry.metrics import METRICS as METRICS

VERSION = "2.0.0"
FILE_NAME = "telemetry.ndjson"

Count = Annotated[int, msgspec.Meta(ge=0)]
EndReason = Literal["finished", "interrupted", "error", "diverged"]
Severity = Literal["info", "warn", "error", "fatal"]
Status = Literal["open", "resolved"]


class _Line(msgspec.Struct, omit_defaults=True, tag_field="kind"):
    """What every record says. A field that equals its default is left out of the line."""

    v: str
    """Semantic version of the schema that wrote the line."""
    run: str
    seq: Count
    """Strictly increasing over the life of the run, restarts included."""
    t: float
    """Unix time in seconds."""
    env_steps: Count
    updates: Count
    """Updates finished when the line was written."""
    nonfinite: dict[str, str] = {}
    """{dotted field: "nan" | "inf" | "-inf"} for every number that JSON cannot hold; the field itself is null."""


class HeaderRecord(_Line, tag="run", kw_only=True):
    """The start of a session: a new run, or an old one taken up again. Repeated at the head of each rotated part."""

    env: str
    seed: int
    config: dict[str, Any]
    session: str
    """Names the process that writes; a repeated header keeps it, a resumed run gets another."""
    versions: dict[str, str] = {}
    command: list[str] = []
    """The command line that makes this run."""
    resume_command: list[str] = []
    """The command line that goes on with it."""
    threads: int | None = None
    exact: bool | None = None
    """A resumed run is bit-exact."""
    exact_reason: str = ""
    """Why not, where it is not."""
    path: str = ""
    """Which implementation learns: "native" or "torch"."""
    path_reason: str = ""
    git_commit: str | None = None
    num_envs: int | None = None
    total_steps: int | None = None
    """Env steps the run means to take."""
    placement: str = ""
    """Which processes step the envs and why, where that was a choice."""


class HeaderFields(TypedDict, total=False):
    """What a header may say besides env, seed and config; `HeaderRecord` describes each."""

    versions: Mapping[str, str]
    command: Sequence[str]
    resume_command: Sequence[str]
    threads: int | None
    exact: bool | None
    exact_reason: str
    path: str
    path_reason: str
    git_commit: str | None
    num_envs: int | None
    total_steps: int | None
    placement: str


class Episodes(msgspec.Struct, kw_only=True, frozen=True):
    """The episodes that ended while one rollout was collected; returns as the world paid them, unscaled."""

    count: Count
    return_mean: float | None = None
    return_min: float | None = None
    return_max: float | None = None
    length_mean: float | None = None
    success_rate: float | None = None
    """Share of those that said whether they succeeded; None if none did."""

    @classmethod
    def of(
        cls, returns: Sequence[float], lengths: Sequence[int], successes: Sequence[bool | None] = ()
    ) -> Episodes | None:
        """The summary of finished episodes; None if none finished."""
        if len(returns) == 0:
            return None
        told = [s for s in successes if s is not None]
        count = len(returns)  # sum, not fmean: this is done in every update, and fmean takes three times as long
        return cls(
            count=count,
            return_mean=float(sum(returns)) / count,
            return_min=float(min(returns)),
            return_max=float(max(returns)),
            length_mean=sum(lengths) / count,
            success_rate=sum(told) / len(told) if told else None,
        )


class UpdateRecord(_Line, tag="update", kw_only=True):
    """What one update did; at a high rate, what several did together."""

    m: dict[str, float | None]
    """The numbers of `METRICS` and any a use adds; the mean where the line covers several updates."""
    covers: Annotated[int, msgspec.Meta(ge=1)] = 1
    """How many updates, the last of them number `updates`, this line stands for."""
    m_min: dict[str, float | None] = {}
    """Smallest of each number that varied over the covered updates; likewise `m_max`."""
    m_max: dict[str, float | None] = {}
    epochs: list[dict[str, float | None]] = []
    """One entry an epoch; only where the line covers a single update."""
    seconds: dict[str, float | None] = {}
    """Where the time went, summed over the covered updates."""
    episodes: Episodes | None = None
    episodes_dropped: Count = 0
    """`episode` lines left out since the last update because they came too fast; `episodes` counts them all."""
    stopped_early: Count = 0
    """Covered updates that the target KL ended."""
    rolled_back: Count = 0
    """Covered updates that were undone because their numbers left the finite."""
    skipped_reason: str | None = None
    """Why the last covered update that learned nothing did not."""
    labels: dict[str, str] = {}
    """Words beside the numbers: `data_mode`, `anneal_stage`."""


class EpisodeRecord(_Line, tag="episode", kw_only=True):
    """One finished training episode. Sampled at a high rate (see `Update.episodes_dropped`)."""

    return_: float | None = msgspec.field(name="return")
    length: Count
    env: Count
    """The stream it ran in."""
    terminated: bool = True
    """False: it was truncated."""
    success: bool | None = None


class EvaluationRecord(_Line, tag="eval", kw_only=True):
    """Episodes played only to measure."""

    episodes: Count
    return_mean: float | None
    return_std: float | None
    """Population standard deviation."""
    return_min: float | None
    return_max: float | None
    length_mean: float | None
    returns: list[float | None]
    lengths: list[int]
    success_rate: float | None = None
    checkpoint: str | None = None
    """Which weights played; None for the ones in memory."""
    deterministic: bool | None = None


class EventRecord(_Line, tag="event", kw_only=True):
    """Something worth knowing happened: "checkpoint", "resumed", "torn_tail", …"""

    name: str
    message: str = ""
    data: dict[str, Any] = {}


class FindingRecord(_Line, tag="finding", kw_only=True):
    """What an examination of the run found; said again with `status` "resolved" when it is over."""

    rule: str
    """Which rule fired: "R03"."""
    severity: Severity
    title: str
    """The finding in one sentence."""
    status: Status = "open"
    since_update: Count = 0
    """The update it began at; `since_env_steps` likewise."""
    since_env_steps: Count = 0
    evidence: dict[str, float | None] = {}
    """The numbers that speak for it."""
    causes: list[str] = []
    """What may be behind it, the likeliest first."""
    patch: dict[str, Any] = {}
    """Settings that would mend it, as --set takes them."""
    primary: bool = True
    """False: a consequence of another finding."""


class MinibatchRecord(_Line, tag="minibatch", kw_only=True):
    """One gradient step of an update. Optional, and sampled: `sample_rate` and `dropped` say how much is missing."""

    epoch: Count
    minibatch: Count
    """Number of the gradient step within the update."""
    m: dict[str, float | None]
    sample_rate: Annotated[float, msgspec.Meta(gt=0.0, le=1.0)] = 1.0
    """Share of minibatches that the writer means to keep."""
    dropped: Count = 0
    """Minibatches left out since the last such line."""


class EndRecord(_Line, tag="end", kw_only=True):
    """The last line of a session. A record without it was cut short."""

    reason: EndReason
    message: str = ""


Record = (
    HeaderRecord
    | UpdateRecord
    | MinibatchRecord
    | EpisodeRecord
    | EvaluationRecord
    | EventRecord
    | FindingRecord
    | EndRecord
)

_decoder = msgspec.json.Decoder(Record)


def decode(line: bytes) -> Record:
    """The record of one line of version 2; msgspec's DecodeError or ValidationError where it is none."""
    return _decoder.decode(line)


SINCE: dict[str, str] = {}
"""{"kind.field" or "m.number": version} of what came after 2.0."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Return the struct for its former name (`UpdateRecord` for `UpdateRecord`), for one release."""
        if (struct := globals().get(f"{name}Record")) is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        warnings.warn(f"schema.{name} is now schema.{name}Record", DeprecationWarning, stacklevel=2)
        return struct
