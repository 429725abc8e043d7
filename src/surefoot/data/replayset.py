"""Manifests of replay samples and the batches they come in: bucketed by shape, shuffled by a seed, streamed if asked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from surefoot.data.replay import (
    CONFLICT_FEATURES,
    ReplaySample,
    baseline,
    make_sample,
    read_sample,
    sample_metrics,
    write_sample,
)
from surefoot.data.rollout import Rollout
from surefoot.errors import ReplayError


@dataclass(frozen=True, slots=True)
class ReplayEntry:
    """One sample of a manifest."""

    sample: Path
    meta: Path | None = None
    agent_id: str | None = None


@dataclass(frozen=True, slots=True)
class ReplayManifest:
    """A list of samples, and what is said of all of them."""

    entries: list[ReplayEntry]
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])


def read_manifest(path: Path | str, *, agents: Sequence[str] | None = None) -> ReplayManifest:
    """A manifest in JSON or YAML: a list of names, a list of {sample, meta, agent_id}, or {metadata, samples}.

    Paths are relative to the manifest, then to the working directory. `agents` keeps only samples of those.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
        found: Any = yaml.safe_load(text) if path.suffix in (".yaml", ".yml") else json.loads(text)
    except FileNotFoundError:
        raise ReplayError(f"there is no manifest {path}") from None
    except (OSError, UnicodeDecodeError, ValueError, yaml.YAMLError) as why:
        raise ReplayError(f"{path} cannot be read as a manifest: {str(why).splitlines()[0]}") from why
    about: dict[str, Any] = {}
    if isinstance(found, dict):
        about, found = dict(found.get("metadata") or {}), found.get("samples")
    if not isinstance(found, list) or not found:
        raise ReplayError(f"{path} lists no samples; a manifest is a list of them, or has them under 'samples'")
    entries = [_entry(item, path, number) for number, item in enumerate(found)]
    if agents is not None:
        known = {entry.agent_id for entry in entries}
        strangers = [agent for agent in agents if agent not in known]
        if strangers:
            there = ", ".join(sorted(str(agent) for agent in known))
            raise ReplayError(f"{path} has no sample of {', '.join(strangers)}; there are samples of {there}")
        entries = [entry for entry in entries if entry.agent_id in agents]
    return ReplayManifest(entries, about)


def _entry(item: Any, manifest: Path, number: int) -> ReplayEntry:
    if isinstance(item, str):
        item = {"sample": item}
    if not isinstance(item, dict) or not isinstance(item.get("sample"), str):
        raise ReplayError(f"{manifest}: entry {number} is {item!r:.60}; it must be a file's name or have a 'sample'")
    meta = item.get("meta")
    return ReplayEntry(
        sample=_find(item["sample"], manifest, number),
        meta=None if meta is None else _find(str(meta), manifest, number),
        agent_id=None if item.get("agent_id") is None else str(item["agent_id"]),
    )


def _find(name: str, manifest: Path, number: int) -> Path:
    for candidate in (manifest.parent / name, Path(name)):
        if candidate.is_file():
            return candidate
    raise ReplayError(
        f"{manifest}: entry {number} names {name}, which is neither beside it nor in the working directory"
    )


def write_manifest(path: Path | str, names: Sequence[Mapping[str, Any]], metadata: Mapping[str, Any]) -> Path:
    """Write a manifest; YAML if the name says so."""
    path = Path(path)
    whole = {"metadata": dict(metadata), "samples": [dict(name) for name in names]}
    as_yaml = path.suffix in (".yaml", ".yml")
    path.write_text(yaml.safe_dump(whole, sort_keys=False) if as_yaml else json.dumps(whole, indent=2) + "\n", "utf-8")
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayBatch:
    """B samples of one shape, side by side."""

    samples: list[ReplaySample]

    @property
    def maps(self) -> np.ndarray:
        """[B, T, C, H, W]."""
        return np.stack([sample.map for sample in self.samples])

    @property
    def features(self) -> np.ndarray:
        """[B, T, F]."""
        return np.stack([sample.features for sample in self.samples])

    def conflict_stats(self) -> dict[str, float]:
        """Mean and largest of each conflict feature."""
        found: dict[str, float] = {}
        for name in CONFLICT_FEATURES:
            column = np.stack([sample.column(name) for sample in self.samples])
            found |= {f"{name}_mean": float(column.mean()), f"{name}_max": float(column.max())}
        return found

    def rollout(self, *, unknown_version: int = 0) -> Rollout:
        """The batch as a rollout [T, B]; `unknown_version` is for samples that do not say which policy acted."""
        first = self.samples[0]
        ended = np.stack([sample.dones for sample in self.samples], axis=1)
        start = np.concatenate([np.ones_like(ended[:1]), ended[:-1]])
        obs = {"features": _side_by_side([s.features for s in self.samples])}
        if first.map.shape[1] > 0:
            obs["map"] = _side_by_side([s.map for s in self.samples])
        versions = [
            np.full(s.steps, unknown_version) if s.policy_version is None else s.policy_version for s in self.samples
        ]
        masks = [s.action_masks for s in self.samples if s.action_masks is not None]
        return Rollout(
            obs=obs,
            action=_side_by_side([s.actions for s in self.samples]),
            log_prob=_side_by_side([s.old_log_probs for s in self.samples]),
            value=_side_by_side([s.value_preds[: s.steps] for s in self.samples]),
            next_value=_side_by_side([s.next_values for s in self.samples]),
            reward=_side_by_side([s.rewards for s in self.samples]),
            terminated=_side_by_side([s.terminated for s in self.samples]),
            truncated=_side_by_side([s.truncated for s in self.samples]),
            start=start,
            valid=np.ones_like(start),
            policy_version=_side_by_side(versions).astype(np.int64),
            action_mask=_side_by_side(masks) if masks else None,
            stats={f"conflict.{name}_avg": value for name, value in self.conflict_stats().items()},
        )


def _side_by_side(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.ascontiguousarray(np.stack(arrays, axis=1))


class ReplayDataset:
    """Batches of samples, over and over. Batch `i` is always the same one, so whoever counts can go on anywhere.

    Samples are put together by shape. `streaming` reads files when they are due instead of all at first.
    """

    def __init__(
        self,
        source: Sequence[ReplayEntry] | Sequence[ReplaySample],
        *,
        batch_size: int = 1,
        shuffle: bool = False,
        seed: int = 0,
        drop_last: bool = False,
        streaming: bool = False,
        label: str = "replay",
    ) -> None:
        if batch_size < 1:
            raise ReplayError(f"batch_size is {batch_size}; at least one sample makes a batch")
        if not source:
            raise ReplayError("there are no samples to learn from")
        self.source, self.shuffle, self.seed, self.label = list(source), shuffle, seed, label
        self.batch_size, self.drop_last, self.streaming = batch_size, drop_last, streaming
        self._kept: dict[int, ReplaySample] = {}
        self.metrics: list[dict[str, float]] = []
        buckets: dict[Any, list[int]] = {}
        for number in range(len(self.source)):
            sample = self.sample(number)
            buckets.setdefault(sample.signature, []).append(number)
            self.metrics.append(sample_metrics(sample))
            self.first = sample if number == 0 else self.first
        self._buckets = list(buckets.values())
        if not len(self):
            raise ReplayError(
                f"no batch of {batch_size} can be made of {len(self.source)} samples with drop_last; lower batch_size"
            )

    @property
    def baseline_metrics(self) -> dict[str, float]:
        """All samples' numbers as one."""
        return baseline(self.metrics)

    def sample(self, number: int) -> ReplaySample:
        """One sample, from memory or from its file."""
        item = self.source[number]
        if isinstance(item, ReplaySample):
            return item
        if number in self._kept:
            return self._kept[number]
        made = read_sample(item.sample, item.meta)
        if not self.streaming:
            self._kept[number] = made
        return made

    def __len__(self) -> int:
        """Batches in one pass."""
        return sum(len(self._cut(bucket)) for bucket in self._buckets)

    def __iter__(self) -> Iterator[ReplayBatch]:
        """One pass, the first."""
        return (self.batch(number) for number in range(len(self)))

    def batch(self, number: int) -> ReplayBatch:
        """Batch `number`, counted over all passes; each pass is shuffled anew where that is asked for."""
        lap, place = divmod(number, len(self))
        buckets = self._buckets
        if self.shuffle:
            rng = np.random.default_rng((self.seed, lap))
            buckets = [[bucket[i] for i in rng.permutation(len(bucket))] for bucket in buckets]
        batches = [part for bucket in buckets for part in self._cut(bucket)]
        if self.shuffle:
            batches = [batches[i] for i in np.random.default_rng((self.seed, lap, 1)).permutation(len(batches))]
        return ReplayBatch(samples=[self.sample(i) for i in batches[place]])

    def _cut(self, bucket: Sequence[int]) -> list[Sequence[int]]:
        parts = [bucket[i : i + self.batch_size] for i in range(0, len(bucket), self.batch_size)]
        return [part for part in parts if len(part) == self.batch_size] if self.drop_last else parts


def samples_of(
    rollout: Rollout,
    *,
    agents: Sequence[str],
    feature_names: Sequence[str],
    meta: Mapping[str, Any],
    actions: Sequence[str],
) -> list[ReplaySample]:
    """A rollout [T, N] cut into N samples, stream n being agent n mod len(agents). Steps that do not count are left out."""
    made: list[ReplaySample] = []
    for n in range(rollout.reward.shape[1]):
        agent = agents[n % len(agents)]
        for part, (begin, end) in enumerate(_stretches(rollout.valid[:, n])):
            at = (slice(begin, end), n)
            steps = end - begin
            arrays = {
                "map": rollout.obs["map"][at] if "map" in rollout.obs else np.zeros((steps, 0, 0, 0), np.float32),
                "features": rollout.obs["features"][at],
                "actions": rollout.action[at],
                "old_log_probs": rollout.log_prob[at],
                "value_preds": np.append(rollout.value[at], rollout.next_value[end - 1, n]),
                "rewards": rollout.reward[at],
                "dones": rollout.ended[at],
                "terminated": rollout.terminated[at],
                "truncated": rollout.truncated[at],
                "next_values": np.where(rollout.terminated[at], 0.0, rollout.next_value[at]).astype(np.float32),
                "policy_version": rollout.policy_version[at],
            }
            if rollout.action_mask is not None:
                arrays["action_masks"] = rollout.action_mask[at]
            lookup = {json.dumps({"kind": name}, sort_keys=True): i for i, name in enumerate(actions)}
            about = {
                **meta,
                "feature_names": list(feature_names),
                "agent_id": agent,
                "stream": n,
                "sample_id": f"{agent}_{n:03d}_{part}",
                "action_dim": len(actions),
                "action_lookup": lookup,
            }
            made.append(make_sample({k: np.ascontiguousarray(v) for k, v in arrays.items()}, about, f"stream {n}"))
    return made


def _stretches(valid: np.ndarray) -> list[tuple[int, int]]:
    """[(begin, end)] of the runs of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], valid, [False]]).astype(np.int8)))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


class RolloutBuffer:
    """Captured samples and what was counted while they were captured; saved as files, or learned from at once."""

    def __init__(self) -> None:
        self.samples: list[ReplaySample] = []
        self.counts: dict[str, float] = {}
        self.ticks = 0

    def extend(self, samples: Sequence[ReplaySample]) -> None:
        """Take samples in."""
        self.samples += samples

    def record_events(self, counts: Mapping[str, float]) -> None:
        """Add up what happened, by the names of telemetry 1.1; means and peaks are replaced."""
        for name, value in counts.items():
            adds = name.endswith(("_events", "_sum"))
            self.counts[name] = self.counts.get(name, 0.0) + value if adds else value

    def set_tick_count(self, ticks: int) -> None:
        """How long the capture was."""
        self.ticks = ticks

    @property
    def is_empty(self) -> bool:
        """True if nothing was captured."""
        return not self.samples

    def build_dataset(self, batch_size: int = 1, drop_last: bool = False) -> ReplayDataset:
        """The samples as a dataset in memory."""
        if self.is_empty:
            raise ReplayError(
                "nothing was captured; no agents were there, or no ticks were taken (--auto-seed-agents?)"
            )
        return ReplayDataset(self.samples, batch_size=batch_size, drop_last=drop_last, label="rollout_buffer")

    def save(self, directory: Path | str, prefix: str = "rollout_sample", *, compress: bool = True) -> Path:
        """Write <prefix>_<agent>_<NNN>.npz and .json, <prefix>_manifest.json and <prefix>_metrics.json; the manifest's path."""
        if self.is_empty:
            raise ReplayError("nothing was captured, so there is nothing to save")
        directory = Path(directory)
        names: list[dict[str, Any]] = []
        metrics: dict[str, dict[str, float]] = {}
        for number, sample in enumerate(self.samples):
            agent = str(sample.meta.get("agent_id", "agent"))
            path = write_sample(sample, directory / f"{prefix}_{agent}_{number:03d}.npz", compress=compress)
            names.append(
                {
                    "sample": path.name,
                    "meta": path.with_suffix(".json").name,
                    "agent_id": agent,
                    "frame_count": sample.steps,
                    "sha256": sample.digest(),
                }
            )
            metrics[path.name] = sample_metrics(sample)
        whole = {
            "samples": metrics,
            "baseline": baseline(list(metrics.values())),
            "counts": self.counts,
            "ticks": self.ticks,
        }
        (directory / f"{prefix}_metrics.json").write_text(json.dumps(whole, indent=2, sort_keys=True) + "\n", "utf-8")
        shared = {
            **dict(self.samples[0].meta.get("capture_metadata") or {}),
            "counts": self.counts,
            "ticks": self.ticks,
        }
        return write_manifest(directory / f"{prefix}_manifest.json", names, shared)
