"""Records of `telemetry_version` 1.0, 1.1 and 1.2: flat, one JSON object per epoch, every number a float.

Each version has the rules it was published with. Later validators refused 1.0 and 1.1 for four numbers that they never
had; here those are optional. A line without a version is 1.0 if it has the numbers of 1.0: the first logs had no version.

This module is a `surefoot.telemetry.line_errors.RecordFormat`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

from surefoot.telemetry.export.summary import ANNEAL_FLAGS, ANNEAL_NUMBERS, CONFLICT, SOCIAL
from surefoot.telemetry.schema import VERSION, UpdateRecord

Flat = dict[str, Any]
Version = Literal["1.0", "1.1", "1.2"]
VERSIONS: tuple[Version, ...] = ("1.0", "1.1", "1.2")

BASE = (
    *("epoch", "updates", "transitions", "loss_policy", "loss_value", "loss_entropy", "loss_total", "clip_fraction"),
    *("adv_mean", "adv_std", "grad_norm", "kl_divergence", "lr", "steps"),
)
# Required of 1.0 and 1.1 only after they were published.
LATE = ("clip_fraction_max", "clip_triggered_minibatches", "adv_zero_std_batches", "adv_min_std")
BASELINE = ("baseline_sample_count", "baseline_reward_mean", "baseline_reward_sum", "baseline_reward_sum_mean")
NEW_IN_1_1 = (
    *("epoch_duration_sec", "cycle_id", "batch_entropy_mean", "batch_entropy_std", "grad_norm_max"),
    *("kl_divergence_max", "reward_advantage_corr", "rollout_ticks", "log_stream_offset"),
    *("queue_conflict_events", "queue_conflict_intensity_sum"),
)
ANNEAL_WORDS = ("anneal_stage", "anneal_dataset")
DATA_MODES = ("replay", "rollout", "mixed")

# A number outside its range is valid in every version, but deserves a warning.
RANGES = {"reward_advantage_corr": (-1.0, 1.0), "chat_quality_mean": (0.0, 1.0), "clip_fraction": (0.0, 1.0)}

# Names of the same numbers in a record of version 2; all others keep their name inside `m`.
OUR_NAMES = {
    "loss_policy": "policy_loss",
    "loss_value": "value_loss",
    "loss_entropy": "entropy",
    "loss_total": "loss",
    "adv_mean": "advantage_mean",
    "adv_std": "advantage_std",
    "adv_zero_std_batches": "zero_std_minibatches",
    "clip_triggered_minibatches": "clipped_minibatches",
    "adv_min_std": "advantage_min_std",
    "transitions": "samples",
    "updates": "minibatches",
    "batch_entropy_std": "entropy_std",
}

REQUIRED: dict[Version, tuple[str, ...]] = {
    "1.0": BASE + CONFLICT,
    **dict.fromkeys(("1.1", "1.2"), BASE + CONFLICT + NEW_IN_1_1),
}
"""Numbers that every line of a version must have."""
_REQUIRED_SETS = {version: frozenset(keys) for version, keys in REQUIRED.items()}
_OPTIONAL = frozenset(LATE + BASELINE + SOCIAL + ("baseline_log_prob_mean",))
_WORDS = frozenset(("data_mode", *ANNEAL_WORDS, "schema_version"))
KNOWN_1_2 = (
    frozenset(REQUIRED["1.2"])
    | _OPTIONAL
    | _WORDS
    | {*ANNEAL_NUMBERS, *ANNEAL_FLAGS}
    | {"duration_sec", "telemetry_version"}
)
# The largest integer up to which a float64 holds every integer exactly.
_MOST = float(2**53)


def version_of(line: Mapping[str, Any]) -> Version | None:
    """Return the version that a line states or, without a statement, looks like; None if it is none of these."""
    claim = line.get("telemetry_version")
    if claim is None and "telemetry_version" not in line:
        return "1.0" if "v" not in line and "epoch" in line and "loss_policy" in line else None
    if isinstance(claim, float | int) and not isinstance(claim, bool):
        claim = f"{float(claim):.1f}" if math.isfinite(claim) and float(claim) == round(float(claim), 1) else claim
    return next((version for version in VERSIONS if claim == version), None)


def errors(line: Flat, version: Version) -> list[str]:
    """Return the reasons why a line is not of that version, each with what would be valid."""
    problems: list[str] = []
    if not _REQUIRED_SETS[version] <= line.keys():
        missing = [key for key in REQUIRED[version] if key not in line]
        problems.append(f"{', '.join(missing)} missing; {version} demands a finite number for each")
    for key, x in line.items():
        # A finite float first, for speed: nearly every value is one.
        if (type(x) is float and x - x == 0.0) or key in _WORDS or key == "telemetry_version":
            continue
        if problem := _number_problem(key, line, version):
            problems.append(problem)
    if version == "1.0":
        early = [key for key in NEW_IN_1_1 if key in line]
        if early:
            problems.append(f"{', '.join(early)} came with 1.1; leave them out or set telemetry_version to 1.1")
    elif (mode := line.get("data_mode")) not in DATA_MODES:
        actual = f"data_mode is {mode!r}" if "data_mode" in line else "data_mode missing"
        problems.append(f"{actual}; {version} demands one of {', '.join(DATA_MODES)}")
    if version == "1.2" and not line.keys() <= KNOWN_1_2:
        unknown = [key for key in line if key not in KNOWN_1_2 and not _conflict(key)]
        if unknown:
            problems.append(f"{', '.join(unknown)} unknown; 1.2 has only its own keys and conflict.*")
    return problems


def line_warnings(line: Flat, version: Version) -> list[str]:
    """Return warnings: unknown keys, numbers out of range, a missing version."""
    problems: list[str] = []
    if "telemetry_version" not in line:
        problems.append('no telemetry_version; read as 1.0; add "telemetry_version": 1.0')
    if version != "1.2":
        unknown = [key for key in line if key not in KNOWN_1_2 and not _conflict(key)]
        if unknown:
            problems.append(f"{', '.join(unknown)} unknown to {version}")
    for key, (low, high) in RANGES.items():
        x: Any = line.get(key)
        if _is_number(x) and not low <= x <= high:
            problems.append(f"{key} is {x:g}; it must be between {low:g} and {high:g}")
    some = [key for key in BASELINE if key in line]
    if some and len(some) < len(BASELINE):
        lacking = [key for key in BASELINE if key not in line]
        problems.append(f"{', '.join(some)} without {', '.join(lacking)}; a baseline has all four")
    return problems


def _number_problem(key: str, line: Flat, version: Version) -> str | None:
    x = line[key]
    if _is_number(x):
        return None
    if key in REQUIRED[version] or key in LATE or _conflict(key) or key in SOCIAL:
        return f"{key} is {_shown(x)}; {version} demands a finite number"
    if key in BASELINE or key == "baseline_log_prob_mean":
        # The published rules checked a baseline only if all four numbers were present.
        return f"{key} is {_shown(x)}; it must be a finite number" if all(k in line for k in BASELINE) else None
    if version == "1.2" and key in (*ANNEAL_NUMBERS, *ANNEAL_FLAGS) and not (x is None or isinstance(x, bool)):
        return f"{key} is {_shown(x)}; it must be a finite number, true, false or null"
    return None


def _is_number(x: Any) -> bool:
    """Return True for a finite int or float; False for a bool and for an integer too large for a float."""
    if isinstance(x, bool) or not isinstance(x, int | float):
        return False
    try:
        return math.isfinite(x)
    except OverflowError:
        return False


def _conflict(key: str) -> bool:
    return key.startswith("conflict.")


def _shown(x: Any) -> str:
    text = repr(x)
    return text if len(text) <= 40 else text[:37] + "…"


def migrate(line: Flat, version: Version, *, number: int, before: float = 0.0) -> UpdateRecord:
    """Return a line of any of these versions as a record of version 2; never raises.

    `number` is its line in the file, which gives `seq` and `updates` (`epoch` restarts with every cycle); `before` is the
    number of seconds that the lines above took. Numbers that an older version did not measure are absent, not zero.
    """
    m: dict[str, float | None] = {}
    labels: dict[str, str] = {}
    for key, x in line.items():
        if key == "telemetry_version":
            continue
        if isinstance(x, str):
            labels[key] = x
        elif key not in ("steps", "epoch_duration_sec") and (isinstance(x, bool) or _is_number(x)):
            m[OUR_NAMES.get(key, key)] = float(x)
    duration, steps = line.get("epoch_duration_sec"), line.get("steps")
    duration = min(max(float(duration), 0.0), 1e12) if duration is not None and _is_number(duration) else 0.0
    return UpdateRecord(
        v=VERSION,
        run="",
        seq=number,
        t=before + duration,
        env_steps=int(min(max(float(steps), 0.0), _MOST)) if steps is not None and _is_number(steps) else 0,
        updates=number,
        m=m,
        seconds={"epoch": duration} if "epoch_duration_sec" in line else {},
        labels=labels,
    )
