"""The record format: one struct per kind of line, distinguished by `kind`, and the metrics of an update.

Within 2.x a change may only add optional fields and kinds: readers ignore fields they do not know. Anything else
(a new required field, a rename, another unit) is version 3.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

import msgspec

VERSION = "2.0.0"
FILE_NAME = "telemetry.ndjson"

Count = Annotated[int, msgspec.Meta(ge=0)]
EndReason = Literal["finished", "interrupted", "error", "diverged"]
Severity = Literal["info", "warn", "error", "fatal"]
Status = Literal["open", "resolved"]


@dataclass(frozen=True, slots=True)
class Alias:
    """The tag of a metric in another library, and the factor from our value to theirs.

    SB3 reports the mean squared error of the critic, CleanRL and Surefoot half of it: its `scale` is 2.
    """

    tag: str
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Metric:
    """The meaning of one number of an update. A value outside `healthy` deserves a look; it is not an error."""

    unit: str
    meaning: str
    healthy: tuple[float, float] | None = None
    sb3: Alias | None = None
    cleanrl: Alias | None = None


METRICS = msgspec.json.decode((files("surefoot.telemetry") / "metrics.json").read_bytes(), type=dict[str, Metric])
"""Every number of `UpdateReport.metrics()`. The healthy ranges end where the doctor's warnings begin."""


class _Line(msgspec.Struct, omit_defaults=True, tag_field="kind"):
    """The fields of every record. A field that equals its default is left out of the line."""

    v: str
    """Semantic version of the schema that wrote the line."""
    run: str
    seq: Count
    """Strictly increasing over all sessions of the run."""
    t: float
    """Unix time in seconds."""
    env_steps: Count
    updates: Count
    """Updates finished when the line was written."""
    nonfinite: dict[str, str] = {}
    """{dotted field: "nan" | "inf" | "-inf"} for every number that JSON cannot hold; the field itself is null."""


class HeaderRecord(_Line, tag="run", kw_only=True):
    """The start of a session, of a new or a resumed run. Repeated at the beginning of each rotated part."""

    env: str
    seed: int
    config: dict[str, Any]
    session: str
    """Identifies the writing process; a repeated header has the same one, a resumed run another."""
    versions: dict[str, str] = {}
    command: list[str] = []
    """The command line that reproduces this run."""
    resume_command: list[str] = []
    """The command line that resumes it."""
    threads: int | None = None
    exact: bool | None = None
    """Whether a resumed run is bit-exact."""
    exact_reason: str = ""
    """Why it is not bit-exact."""
    path: str = ""
    """The implementation of the learner: "native" or "torch"."""
    path_reason: str = ""
    git_commit: str | None = None
    num_envs: int | None = None
    total_steps: int | None = None
    """Planned number of env steps."""
    placement: str = ""
    """Which processes step the envs and why, if that was chosen automatically."""


class HeaderFields(TypedDict, total=False):
    """The optional fields of a header; `HeaderRecord` describes each."""

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
    """The episodes that ended during one rollout. Returns are sums of the environment's rewards, unscaled."""

    count: Count
    return_mean: float | None = None
    return_min: float | None = None
    return_max: float | None = None
    length_mean: float | None = None
    success_rate: float | None = None
    """Share of successes among the episodes that reported success or failure; None if none did."""

    @classmethod
    def of(
        cls, returns: Sequence[float], lengths: Sequence[int], successes: Sequence[bool | None] = ()
    ) -> Episodes | None:
        """Return the summary of finished episodes; None if there are none."""
        if len(returns) == 0:
            return None
        known = [s for s in successes if s is not None]
        count = len(returns)
        # sum, not fmean: this runs in every update, and fmean takes three times as long.
        return cls(
            count=count,
            return_mean=float(sum(returns)) / count,
            return_min=float(min(returns)),
            return_max=float(max(returns)),
            length_mean=sum(lengths) / count,
            success_rate=sum(known) / len(known) if known else None,
        )


class UpdateRecord(_Line, tag="update", kw_only=True):
    """The metrics of one update; at a high rate, of several updates together."""

    m: dict[str, float | None]
    """The numbers of `METRICS` and any that a use adds; means if the line covers several updates."""
    covers: Annotated[int, msgspec.Meta(ge=1)] = 1
    """Number of updates that this line covers; the last of them is number `updates`."""
    m_min: dict[str, float | None] = {}
    """Minimum of each number that varied over the covered updates; `m_max` has the maximum."""
    m_max: dict[str, float | None] = {}
    epochs: list[dict[str, float | None]] = []
    """One entry per epoch; only if the line covers a single update."""
    seconds: dict[str, float | None] = {}
    """Time spent per phase, summed over the covered updates."""
    episodes: Episodes | None = None
    episodes_dropped: Count = 0
    """`episode` lines left out since the last update because they came too fast; `episodes` counts them all."""
    stopped_early: Count = 0
    """Covered updates that the target KL ended."""
    rolled_back: Count = 0
    """Covered updates that were rolled back because their numbers were not finite."""
    skipped_reason: str | None = None
    """Why the last covered update that learned nothing was skipped."""
    labels: dict[str, str] = {}
    """Text values beside the numbers: `data_mode`, `anneal_stage`."""


class EpisodeRecord(_Line, tag="episode", kw_only=True):
    """One finished training episode. Sampled at a high rate (see `episodes_dropped` of an update)."""

    return_: float | None = msgspec.field(name="return")
    length: Count
    env: Count
    """Index of the environment it ran in."""
    terminated: bool = True
    """False if it was truncated."""
    success: bool | None = None


class EvaluationRecord(_Line, tag="eval", kw_only=True):
    """Episodes played to evaluate the policy."""

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
    """The evaluated checkpoint; None for the weights in memory."""
    deterministic: bool | None = None


class EventRecord(_Line, tag="event", kw_only=True):
    """A notable event: "checkpoint", "resumed", "torn_tail", …"""

    name: str
    message: str = ""
    data: dict[str, Any] = {}


class FindingRecord(_Line, tag="finding", kw_only=True):
    """A finding of the doctor; written again with `status` "resolved" when the problem is gone."""

    rule: str
    """The rule that fired: "R03"."""
    severity: Severity
    title: str
    """The finding in one sentence."""
    status: Status = "open"
    since_update: Count = 0
    """The update at which it began; `since_env_steps` is the env step."""
    since_env_steps: Count = 0
    evidence: dict[str, float | None] = {}
    """The numbers that support it."""
    causes: list[str] = []
    """Possible causes, the likeliest first."""
    patch: dict[str, Any] = {}
    """Settings that may fix it, as --set takes them."""
    primary: bool = True
    """False for a consequence of another finding."""


class MinibatchRecord(_Line, tag="minibatch", kw_only=True):
    """One gradient step of an update. Optional and sampled: `sample_rate` and `dropped` report how many are missing."""

    epoch: Count
    minibatch: Count
    """Number of the gradient step within the update."""
    m: dict[str, float | None]
    sample_rate: Annotated[float, msgspec.Meta(gt=0.0, le=1.0)] = 1.0
    """Share of minibatches that are recorded."""
    dropped: Count = 0
    """Minibatches left out since the last such line."""


class EndRecord(_Line, tag="end", kw_only=True):
    """The last line of a session. A record without it is of a run that was killed or still runs."""

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
    """Return the record of one line of version 2. Raise msgspec's DecodeError or ValidationError if it is invalid."""
    return _decoder.decode(line)


SINCE: dict[str, str] = {}
"""{"kind.field" or "m.number": version} of additions after 2.0."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Return the struct for its former name (`UpdateRecord` for `Update`), for one release."""
        if (struct := globals().get(f"{name}Record")) is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        warnings.warn(f"schema.{name} is now schema.{name}Record", DeprecationWarning, stacklevel=2)
        return struct
