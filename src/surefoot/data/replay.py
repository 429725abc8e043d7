"""Replay samples: what one stream saw, did and got, with the behaviour's own log-probs. NPZ arrays, JSON beside them.

Programs that wrote this format before still read it; `terminated`, `truncated`, `next_values`, `action_masks` and
`policy_version` are ours and optional. Nothing is ever unpickled.
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
    """T steps of one stream. `map` may be empty ([T, 0, 0, 0]) where the policy sees none."""

    map: np.ndarray
    """[T, C, H, W] float32."""
    features: np.ndarray
    """[T, F] float32."""
    actions: np.ndarray
    """[T] int64; likewise the rest, unless said otherwise."""
    old_log_probs: np.ndarray
    """Of the actions, by whoever chose them, when they chose."""
    value_preds: np.ndarray
    """[T] or [T + 1]; the last of T + 1 is what came after the last step."""
    rewards: np.ndarray
    """Raw."""
    dones: np.ndarray
    """bool: the episode ended here, one way or the other."""
    terminated: np.ndarray
    """bool: its future is worth nothing."""
    truncated: np.ndarray
    """bool: it was cut short."""
    next_values: np.ndarray
    """What the step's true successor was worth to the critic that acted."""
    action_masks: np.ndarray | None = None
    """[T, A] bool, True = allowed."""
    policy_version: np.ndarray | None = None
    """int64: which policy of its run acted."""
    meta: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def steps(self) -> int:
        """T."""
        return len(self.actions)

    @property
    def names(self) -> list[str]:
        """Of the features."""
        return list(self.meta["feature_names"])

    @property
    def action_dim(self) -> int:
        """How many actions there are."""
        return int(self.meta["action_dim"])

    @property
    def signature(self) -> tuple[Any, ...]:
        """Samples of one signature fit into one batch."""
        return (self.steps, self.map.shape[1:], self.features.shape[1], self.action_dim, self.action_masks is not None)

    def column(self, name: str) -> np.ndarray:
        """[T] of one feature."""
        return self.features[:, self.names.index(name)]

    def digest(self) -> str:
        """sha256 of the arrays that are learned from: the same on every machine."""
        whole = hashlib.sha256()
        for name in (*OBSERVED, *TRAINING, *OPTIONAL):
            array = getattr(self, name)
            if array is not None:
                whole.update(f"{name}:{array.dtype.str}:{array.shape}".encode())
                whole.update(np.ascontiguousarray(array).tobytes())
        return whole.hexdigest()


def make_sample(arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any], where: str = "the sample") -> ReplaySample:
    """A sample from arrays, as a file holds them, and its metadata; refused by name where something is wrong."""
    missing = [name for name in OBSERVED if name not in arrays]
    if missing:
        raise ReplayError(f"{where} lacks the array {', '.join(missing)}; it has {', '.join(sorted(arrays)) or 'none'}")
    missing = [name for name in TRAINING if name not in arrays]
    if missing:
        raise ReplayError(f"{where} lacks {', '.join(missing)}; without them there is nothing to learn from")
    _check_names(arrays, meta, where)
    given = {name: np.asarray(arrays[name]) for name in (*OBSERVED, *TRAINING)}
    given |= {name: np.asarray(arrays[name]) for name in OPTIONAL if name in arrays}
    sheet, seen = given["map"], given["features"]
    if seen.ndim == 1:
        seen, sheet = seen[None], sheet[None]
    given["map"], given["features"] = sheet.astype(np.float32, copy=False), seen.astype(np.float32, copy=False)
    _check_lengths(given, where)
    steps = len(given["actions"])
    done = given["dones"].astype(np.bool_)
    terminated = given.get("terminated", done).astype(np.bool_)
    truncated = given.get("truncated", done & ~terminated).astype(np.bool_)
    if (terminated & truncated).any() or ((terminated | truncated) != done).any():
        step = int(np.flatnonzero((terminated & truncated) | ((terminated | truncated) != done))[0])
        raise ReplayError(f"{where}: at step {step} dones, terminated and truncated contradict each other")
    values = given["value_preds"].astype(np.float32, copy=False)
    after = given["next_values"].astype(np.float32, copy=False) if "next_values" in given else _after(values, steps)
    masks = given.get("action_masks")
    made = ReplaySample(
        map=given["map"],
        features=given["features"],
        actions=given["actions"].astype(np.int64, copy=False),
        old_log_probs=given["old_log_probs"].astype(np.float32, copy=False),
        value_preds=values,
        rewards=given["rewards"].astype(np.float32, copy=False),
        dones=done,
        terminated=terminated,
        truncated=truncated,
        next_values=after,
        action_masks=None if masks is None else masks.astype(np.bool_, copy=False),
        policy_version=given["policy_version"].astype(np.int64) if "policy_version" in given else None,
        meta={**meta, "action_dim": int(meta.get("action_dim") or int(given["actions"].max(initial=0)) + 1)},
    )
    _check_numbers(made, where)
    return made


def _check_names(arrays: Mapping[str, np.ndarray], meta: Mapping[str, Any], where: str) -> None:
    names = meta.get("feature_names")
    if not isinstance(names, list) or not names:
        raise ReplayError(f"{where} has no feature_names in its metadata; they say which column is which")
    lacking = [name for name in CONFLICT_FEATURES if name not in names]
    if lacking:
        raise ReplayError(f"{where} lacks the conflict features {', '.join(lacking)}; capture it again with them")
    wide = np.asarray(arrays["features"]).shape[-1]
    if len(names) != wide:
        raise ReplayError(f"{where} has {len(names)} feature_names but {wide} features; they must be as many")


def _check_lengths(given: Mapping[str, np.ndarray], where: str) -> None:
    steps = len(given["features"])
    for name, array in given.items():
        right = (steps, steps + 1) if name == "value_preds" else (steps,)
        if array.ndim < 1 or len(array) not in right:
            wanted = " or ".join(str(n) for n in right)
            raise ReplayError(
                f"{where}: {name} has {len(array) if array.ndim else 0} steps, features {steps}; {wanted} is right"
            )
    if steps < 1:
        raise ReplayError(f"{where} has no step at all")


def _check_numbers(sample: ReplaySample, where: str) -> None:
    for name in ("map", "features", "old_log_probs", "value_preds", "rewards", "next_values"):
        array = getattr(sample, name)
        if array.size and not np.isfinite(array).all():
            step = int(np.argwhere(~np.isfinite(array))[0][0])
            raise ReplayError(f"{where}: {name} is not finite at step {step}; leave that stretch out and capture again")
    wrong = np.flatnonzero((sample.actions < 0) | (sample.actions >= sample.action_dim))
    if len(wrong):
        step = int(wrong[0])
        raise ReplayError(
            f"{where}: action {sample.actions[step]} at step {step}; there are {sample.action_dim} actions"
        )
    if (sample.old_log_probs > 1e-4).any():
        step = int(np.flatnonzero(sample.old_log_probs > 1e-4)[0])
        raise ReplayError(
            f"{where}: old_log_probs is {sample.old_log_probs[step]:g} at step {step}; a log-prob is not above 0"
        )
    if sample.action_masks is not None:
        if sample.action_masks.shape[1] != sample.action_dim:
            raise ReplayError(
                f"{where}: action_masks are {sample.action_masks.shape[1]} wide, action_dim is {sample.action_dim}"
            )
        allowed = sample.action_masks[np.arange(sample.steps), sample.actions]
        if not allowed.all():
            step = int(np.flatnonzero(~allowed)[0])
            raise ReplayError(f"{where}: action {sample.actions[step]} at step {step} is forbidden by its own mask")


def _after(values: np.ndarray, steps: int) -> np.ndarray:
    """What came after each step, where nobody wrote it down: the next value; after the last step its own, the best guess."""
    return values[1:] if len(values) == steps + 1 else np.append(values[1:], values[-1:]).astype(np.float32)


def read_sample(path: Path | str, meta: Path | str | None = None) -> ReplaySample:
    """A sample from its NPZ file and the JSON beside it (same stem, unless `meta` says where)."""
    path = Path(path)
    beside = Path(meta) if meta is not None else path.with_suffix(".json")
    about = _read_json(beside, path)
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files if name in (*OBSERVED, *TRAINING, *OPTIONAL)}
    except FileNotFoundError:
        raise ReplayError(f"there is no sample {path}") from None
    except (OSError, ValueError, zipfile.BadZipFile, KeyError, EOFError) as why:
        hint = "; it holds Python objects, which are never loaded" if "allow_pickle" in str(why) else ""
        raise ReplayError(f"{path} cannot be read as NPZ ({str(why).splitlines()[0]}){hint}") from why
    made = make_sample(arrays, about, str(path))
    if about.get("sha256") not in (None, made.digest()):
        raise ReplayError(f"{path} is not what was written: its digest is not the one in {beside.name}")
    return made


def _read_json(path: Path, sample: Path) -> dict[str, Any]:
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ReplayError(
            f"there is no metadata {path} for {sample.name}; it has the sample's name and ends in .json"
        ) from None
    except (OSError, UnicodeDecodeError, ValueError) as why:
        raise ReplayError(f"{path} cannot be read as JSON: {why}") from why
    if not isinstance(about, dict):
        raise ReplayError(f"{path} is no JSON object")
    return about


def write_sample(sample: ReplaySample, path: Path | str, *, compress: bool = True) -> Path:
    """Write NPZ and JSON; the JSON holds the digest of the arrays."""
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
    """Return the numbers of one sample by their names in files."""
    counts = np.bincount(sample.actions, minlength=sample.action_dim)
    share = counts[counts > 0] / max(counts.sum(), 1)
    found = {
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
        found |= {f"{name}_mean": float(column.mean()), f"{name}_max": float(column.max())}
    if "lateness_counter" in sample.names:
        found["lateness_mean"] = float(sample.column("lateness_counter").mean())
    for label, number in _lookup(sample).items():
        found[f"action_{label}_count"] = float(counts[number])
    return found


def _lookup(sample: ReplaySample) -> dict[str, int]:
    """{kind: id} from the metadata's action_lookup, whose keys are JSON of an action."""
    found: dict[str, int] = {}
    for text, number in dict(sample.meta.get("action_lookup") or {}).items():
        try:
            kind = json.loads(text)
        except ValueError:
            kind = text
        label = str(kind.get("kind", text)) if isinstance(kind, dict) else str(kind)
        if isinstance(number, int) and 0 <= number < sample.action_dim:
            found[label] = number
    return found


def baseline(metrics: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Numbers of many samples as one: sums and totals added up (and divided by their number), the rest averaged."""
    if not metrics:
        return {"sample_count": 0.0}
    found: dict[str, float] = {"sample_count": float(len(metrics))}
    for key in sorted({name for each in metrics for name in each}):
        values = [each[key] for each in metrics if key in each]
        if key.endswith(("_sum", "_total", "_count")):
            found[key] = float(sum(values))
            found[f"{key}_mean"] = float(sum(values)) / len(metrics)
        else:
            found[key] = float(np.mean(values))
    return found
