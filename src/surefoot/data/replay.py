"""Replay samples: observations, actions and rewards of one stream, with log-probs. NPZ arrays with a JSON file beside them.

`terminated`, `truncated`, `next_values`, `action_masks` and `policy_version` are optional additions to an older format, whose
programs can still read these files. Nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.errors import ReplayError

CONFLICT_FEATURES = ("rivalry_max", "rivalry_avoid_count")
OBSERVED = ("map", "features")
TRAINING = ("actions", "old_log_probs", "value_preds", "rewards", "dones")
OPTIONAL = ("terminated", "truncated", "next_values", "action_masks", "policy_version")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySample:
    """T steps of one stream. `map` is empty, [T, 0, 0, 0], if the policy gets none."""

    map: np.ndarray
    """[T, C, H, W] float32."""
    features: np.ndarray
    """[T, F] float32."""
    actions: np.ndarray
    """[T] int64. All arrays below are [T] unless noted."""
    old_log_probs: np.ndarray
    """Log-probs of the actions under the policy that chose them, stored at that time."""
    value_preds: np.ndarray
    """[T] or [T + 1]; the last of T + 1 is the value after the last step."""
    rewards: np.ndarray
    """Raw."""
    dones: np.ndarray
    """bool: the episode ended here, by termination or truncation."""
    terminated: np.ndarray
    """bool: the future has value 0."""
    truncated: np.ndarray
    """bool: the episode was cut short."""
    next_values: np.ndarray
    """The value of each step's true successor under the critic that acted."""
    action_masks: np.ndarray | None = None
    """[T, A] bool, True for allowed actions."""
    policy_version: np.ndarray | None = None
    """int64: the version of the policy that acted."""
    meta: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def steps(self) -> int:
        """T."""
        return len(self.actions)

    @property
    def names(self) -> list[str]:
        return list(self.meta["feature_names"])

    @property
    def action_dim(self) -> int:
        return int(self.meta["action_dim"])

    @property
    def signature(self) -> tuple[Any, ...]:
        """Samples with equal signatures can share a batch."""
        return (self.steps, self.map.shape[1:], self.features.shape[1], self.action_dim, self.action_masks is not None)

    def column(self, name: str) -> np.ndarray:
        """Return the column of one feature, [T]."""
        return self.features[:, self.names.index(name)]

    def digest(self) -> str:
        """Return the sha256 of the arrays; it is the same on every machine."""
        digest = hashlib.sha256()
        for name in (*OBSERVED, *TRAINING, *OPTIONAL):
            array = getattr(self, name)
            if array is not None:
                digest.update(f"{name}:{array.dtype.str}:{array.shape}".encode())
                digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def make_sample(arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any], where: str = "the sample") -> ReplaySample:
    """Return a sample from the arrays of a file and its metadata; raise `ReplayError` with `where` if something is wrong."""
    if missing := [name for name in OBSERVED if name not in arrays]:
        raise ReplayError(f"{where} lacks the array {', '.join(missing)}; it has {', '.join(sorted(arrays)) or 'none'}")
    if missing := [name for name in TRAINING if name not in arrays]:
        raise ReplayError(f"{where} lacks {', '.join(missing)}; they are needed for learning")
    _check_names(arrays, meta, where)
    values = {name: np.asarray(arrays[name]) for name in (*OBSERVED, *TRAINING, *OPTIONAL) if name in arrays}
    if values["features"].ndim == 1:  # a single step without a time axis
        values["features"], values["map"] = values["features"][None], values["map"][None]
    steps = _check_lengths(values, where)
    done = values["dones"].astype(np.bool_)
    terminated = values.get("terminated", done).astype(np.bool_)
    truncated = values.get("truncated", done & ~terminated).astype(np.bool_)
    if (wrong := (terminated & truncated) | ((terminated | truncated) != done)).any():
        step = int(np.flatnonzero(wrong)[0])
        raise ReplayError(f"{where}: at step {step} dones, terminated and truncated contradict each other")
    predictions = values["value_preds"]
    if "next_values" not in values:
        # The value of the next step; after the last step, its own value is the best estimate.
        known = len(predictions) == steps + 1
        values["next_values"] = predictions[1:] if known else np.append(predictions[1:], predictions[-1:])
    floats = ("map", "features", "old_log_probs", "value_preds", "rewards", "next_values")
    masks = values.get("action_masks")
    sample = ReplaySample(
        **{name: values[name].astype(np.float32, copy=False) for name in floats},
        actions=values["actions"].astype(np.int64, copy=False),
        dones=done,
        terminated=terminated,
        truncated=truncated,
        action_masks=None if masks is None else masks.astype(np.bool_, copy=False),
        policy_version=values["policy_version"].astype(np.int64) if "policy_version" in values else None,
        meta={**meta, "action_dim": int(meta.get("action_dim") or int(values["actions"].max(initial=0)) + 1)},
    )
    _check_numbers(sample, where)
    return sample


def _check_names(arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any], where: str) -> None:
    names = meta.get("feature_names")
    if not isinstance(names, list) or not names:
        raise ReplayError(f"{where} has no feature_names in its metadata; they name the columns of features")
    if missing := [name for name in CONFLICT_FEATURES if name not in names]:
        raise ReplayError(f"{where} lacks the conflict features {', '.join(missing)}; capture it again with them")
    width = np.asarray(arrays["features"]).shape[-1]
    if len(names) != width:
        raise ReplayError(f"{where} has {len(names)} feature_names but {width} features; the numbers must be equal")


def _check_lengths(values: Mapping[str, np.ndarray], where: str) -> int:
    """Return the number of steps; raise `ReplayError` unless every array has it."""
    steps = len(values["features"])
    for name, array in values.items():
        allowed = (steps, steps + 1) if name == "value_preds" else (steps,)
        if array.ndim < 1 or len(array) not in allowed:
            length = len(array) if array.ndim else 0
            expected = " or ".join(map(str, allowed))
            raise ReplayError(f"{where}: {name} has {length} steps, features {steps}; it must have {expected}")
    if steps < 1:
        raise ReplayError(f"{where} has no steps; at least one is needed")
    return steps


def _check_numbers(sample: ReplaySample, where: str) -> None:
    for name in ("map", "features", "old_log_probs", "value_preds", "rewards", "next_values"):
        array = getattr(sample, name)
        if array.size and not np.isfinite(array).all():
            step = int(np.argwhere(~np.isfinite(array))[0][0])
            raise ReplayError(f"{where}: {name} is not finite at step {step}; capture it again without those steps")
    wrong = np.flatnonzero((sample.actions < 0) | (sample.actions >= sample.action_dim))
    if len(wrong):
        step = int(wrong[0])
        raise ReplayError(
            f"{where}: action {sample.actions[step]} at step {step}; there are {sample.action_dim} actions"
        )
    # 1e-4: float32 rounding of log 1 = 0, as written by other programs.
    if (sample.old_log_probs > 1e-4).any():
        step = int(np.flatnonzero(sample.old_log_probs > 1e-4)[0])
        raise ReplayError(
            f"{where}: old_log_probs is {sample.old_log_probs[step]:g} at step {step}; a log-prob is at most 0"
        )
    if sample.action_masks is not None:
        if sample.action_masks.shape[1] != sample.action_dim:
            raise ReplayError(
                f"{where}: action_masks have {sample.action_masks.shape[1]} columns, but action_dim is {sample.action_dim}"
            )
        allowed = sample.action_masks[np.arange(sample.steps), sample.actions]
        if not allowed.all():
            step = int(np.flatnonzero(~allowed)[0])
            raise ReplayError(f"{where}: action {sample.actions[step]} at step {step} is forbidden by its mask")


def read_sample(path: Path | str, meta: Path | str | None = None) -> ReplaySample:
    """Read a sample from its NPZ file and its JSON file (`meta`, or the same name with .json)."""
    path = Path(path)
    beside = Path(meta) if meta is not None else path.with_suffix(".json")
    try:
        about = json.loads(beside.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ReplayError(
            f"there is no metadata {beside} for {path.name}; it has the sample's name and ends in .json"
        ) from None
    except (OSError, UnicodeDecodeError, ValueError) as why:
        raise ReplayError(f"{beside} cannot be read as JSON: {why}") from why
    if not isinstance(about, dict):
        raise ReplayError(f"{beside} is not a JSON object")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files if name in (*OBSERVED, *TRAINING, *OPTIONAL)}
    except FileNotFoundError:
        raise ReplayError(f"there is no sample {path}") from None
    except (OSError, ValueError, zipfile.BadZipFile, KeyError, EOFError) as why:
        hint = "; it contains Python objects, which are never loaded" if "allow_pickle" in str(why) else ""
        raise ReplayError(f"{path} cannot be read as NPZ ({str(why).splitlines()[0]}){hint}") from why
    sample = make_sample(arrays, about, str(path))
    if about.get("sha256") not in (None, sample.digest()):
        raise ReplayError(f"{path} was changed after it was written: its digest is not the one in {beside.name}")
    return sample


def write_sample(sample: ReplaySample, path: Path | str, *, compress: bool = True) -> Path:
    """Write the NPZ and the JSON file; the JSON contains the digest of the arrays. Return the path of the NPZ."""
    path = Path(path)
    arrays = {
        name: getattr(sample, name) for name in (*OBSERVED, *TRAINING, *OPTIONAL) if getattr(sample, name) is not None
    }
    about = {
        **sample.meta,
        "training_arrays": list(TRAINING),
        "timesteps": sample.steps,
        "value_pred_steps": len(sample.value_preds),
        "map_shape": list(sample.map.shape[1:]),
        "frame_count": sample.steps,
        "metrics": sample_metrics(sample),
        "sha256": sample.digest(),
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        (np.savez_compressed if compress else np.savez)(path, **arrays)
        path.with_suffix(".json").write_text(json.dumps(about, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    except OSError as why:
        raise ReplayError(f"cannot write {path}: {why.strerror or why}") from why
    return path


def sample_metrics(sample: ReplaySample) -> dict[str, float]:
    """Return the metrics of one sample, named as in files."""
    counts = np.bincount(sample.actions, minlength=sample.action_dim)
    share = counts[counts > 0] / max(counts.sum(), 1)
    metrics = {
        "timesteps": float(sample.steps),
        "reward_sum": float(sample.rewards.sum()),
        "reward_mean": float(sample.rewards.mean()),
        "log_prob_mean": float(sample.old_log_probs.mean()),
        "value_pred_last": float(sample.value_preds[-1]),
        "action_nonzero": float(counts[1:].sum()),
        "action_total": float(counts.sum()),
        "action_entropy": float(-(share * np.log(share)).sum()),
    }
    for name in CONFLICT_FEATURES:
        column = sample.column(name)
        metrics |= {f"{name}_mean": float(column.mean()), f"{name}_max": float(column.max())}
    if "lateness_counter" in sample.names:
        metrics["lateness_mean"] = float(sample.column("lateness_counter").mean())
    # The keys of action_lookup are JSON of an action, such as {"kind": "move"}.
    for text, number in dict(sample.meta.get("action_lookup") or {}).items():
        try:
            action = json.loads(text)
        except ValueError:
            action = text
        label = str(action.get("kind", text)) if isinstance(action, dict) else str(action)
        if isinstance(number, int) and 0 <= number < sample.action_dim:
            metrics[f"action_{label}_count"] = float(counts[number])
    return metrics


def baseline(metrics: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the metrics of many samples as one: sums, totals and counts added (and their mean), the others averaged."""
    if not metrics:
        return {"sample_count": 0.0}
    result: dict[str, float] = {"sample_count": float(len(metrics))}
    for key in sorted({name for each in metrics for name in each}):
        values = [each[key] for each in metrics if key in each]
        if key.endswith(("_sum", "_total", "_count")):
            result[key] = float(sum(values))
            result[f"{key}_mean"] = float(sum(values)) / len(metrics)
        else:
            result[key] = float(np.mean(values))
    return result
