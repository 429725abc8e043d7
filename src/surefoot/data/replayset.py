"""Manifests of replay samples, and batches of them: bucketed by shape, shuffled by a seed, optionally streamed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    """A list of samples with common metadata."""

    entries: list[ReplayEntry]
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])


def read_manifest(path: Path | str, *, agents: Sequence[str] | None = None) -> ReplayManifest:
    """Read a manifest in JSON or YAML: a list of names, a list of {sample, meta, agent_id}, or {metadata, samples}.

    Paths are relative to the manifest, then to the working directory. With `agents`, read only the samples of these.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
        items: Any = yaml.safe_load(text) if path.suffix in (".yaml", ".yml") else json.loads(text)
    except FileNotFoundError:
        raise ReplayError(f"there is no manifest {path}") from None
    except (OSError, UnicodeDecodeError, ValueError, yaml.YAMLError) as why:
        raise ReplayError(f"{path} cannot be read as a manifest: {str(why).splitlines()[0]}") from why
    about: dict[str, Any] = {}
    if isinstance(items, dict):
        about, items = dict(items.get("metadata") or {}), items.get("samples")
    if not isinstance(items, list) or not items:
        raise ReplayError(f"{path} lists no samples; a manifest is a list of them, or has them under 'samples'")
    entries = [_entry(item, path, number) for number, item in enumerate(items)]
    if agents is not None:
        known = {entry.agent_id for entry in entries}
        if unknown := [agent for agent in agents if agent not in known]:
            available = ", ".join(sorted(str(agent) for agent in known))
            raise ReplayError(f"{path} has no sample of {', '.join(unknown)}; there are samples of {available}")
        entries = [entry for entry in entries if entry.agent_id in agents]
    return ReplayManifest(entries, about)


def _entry(item: Any, manifest: Path, number: int) -> ReplayEntry:
    if isinstance(item, str):
        item = {"sample": item}
    if not isinstance(item, dict) or not isinstance(item.get("sample"), str):
        raise ReplayError(
            f"{manifest}: entry {number} is {item!r:.60}; it must be a file name or an object with 'sample'"
        )
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
    """Write a manifest and return its path; the format is YAML if the name ends in .yaml or .yml, else JSON."""
    path = Path(path)
    content = {"metadata": dict(metadata), "samples": [dict(name) for name in names]}
    as_yaml = path.suffix in (".yaml", ".yml")
    path.write_text(
        yaml.safe_dump(content, sort_keys=False) if as_yaml else json.dumps(content, indent=2) + "\n", "utf-8"
    )
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayBatch:
    """B samples of one shape."""

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
        """Return mean and maximum of each conflict feature."""
        stats: dict[str, float] = {}
        for name in CONFLICT_FEATURES:
            column = np.stack([sample.column(name) for sample in self.samples])
            stats |= {f"{name}_mean": float(column.mean()), f"{name}_max": float(column.max())}
        return stats

    def rollout(self, *, unknown_version: int = 0) -> Rollout:
        """Return the batch as a rollout [T, B]; `unknown_version` is the policy version of samples without one."""

        def column(part: Callable[[ReplaySample], np.ndarray]) -> np.ndarray:
            return np.ascontiguousarray(np.stack([part(sample) for sample in self.samples], axis=1))

        first, ended = self.samples[0], column(lambda s: s.dones)
        start = np.concatenate([np.ones_like(ended[:1]), ended[:-1]])
        obs = {"features": column(lambda s: s.features)}
        if first.map.shape[1] > 0:
            obs["map"] = column(lambda s: s.map)
        masks = [s.action_masks for s in self.samples if s.action_masks is not None]
        unknown = np.full(first.steps, unknown_version)
        return Rollout(
            obs=obs,
            action=column(lambda s: s.actions),
            log_prob=column(lambda s: s.old_log_probs),
            value=column(lambda s: s.value_preds[: s.steps]),
            next_value=column(lambda s: s.next_values),
            reward=column(lambda s: s.rewards),
            terminated=column(lambda s: s.terminated),
            truncated=column(lambda s: s.truncated),
            start=start,
            valid=np.ones_like(start),
            policy_version=column(lambda s: unknown if s.policy_version is None else s.policy_version).astype(np.int64),
            action_mask=np.ascontiguousarray(np.stack(masks, axis=1)) if masks else None,
            stats={f"conflict.{name}_avg": value for name, value in self.conflict_stats().items()},
        )


class ReplayDataset:
    """Batches of samples, in endless passes. Batch `i` is always the same, so a caller can resume at any count.

    Samples are bucketed by shape. `streaming` reads each file when it is needed instead of all at the start.
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
            raise ReplayError(f"batch_size is {batch_size}; it must be at least 1")
        if not source:
            raise ReplayError("the dataset has no samples; at least one is needed")
        self.source, self.shuffle, self.seed, self.label = list(source), shuffle, seed, label
        self.batch_size, self.drop_last, self.streaming = batch_size, drop_last, streaming
        self._loaded: dict[int, ReplaySample] = {}
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
        """The metrics of all samples as one."""
        return baseline(self.metrics)

    def sample(self, number: int) -> ReplaySample:
        """Return one sample, from memory or from its file."""
        item = self.source[number]
        if isinstance(item, ReplaySample):
            return item
        if number in self._loaded:
            return self._loaded[number]
        sample = read_sample(item.sample, item.meta)
        if not self.streaming:
            self._loaded[number] = sample
        return sample

    def __len__(self) -> int:
        """Return the number of batches per pass."""
        return sum(len(self._cut(bucket)) for bucket in self._buckets)

    def __iter__(self) -> Iterator[ReplayBatch]:
        """Iterate over the first pass."""
        return (self.batch(number) for number in range(len(self)))

    def batch(self, number: int) -> ReplayBatch:
        """Return batch `number`, counted over all passes; with `shuffle` each pass has another order."""
        lap, index = divmod(number, len(self))
        buckets = self._buckets
        if self.shuffle:
            rng = np.random.default_rng((self.seed, lap))
            buckets = [[bucket[i] for i in rng.permutation(len(bucket))] for bucket in buckets]
        batches = [part for bucket in buckets for part in self._cut(bucket)]
        if self.shuffle:
            batches = [batches[i] for i in np.random.default_rng((self.seed, lap, 1)).permutation(len(batches))]
        return ReplayBatch(samples=[self.sample(i) for i in batches[index]])

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
    """Return samples of the valid stretches of a rollout [T, N]; stream n belongs to agent n mod len(agents)."""
    lookup = {json.dumps({"kind": name}, sort_keys=True): i for i, name in enumerate(actions)}
    samples: list[ReplaySample] = []
    for n in range(rollout.reward.shape[1]):
        agent = agents[n % len(agents)]
        for part, (begin, end) in enumerate(_stretches(rollout.valid[:, n])):
            where = (slice(begin, end), n)
            steps = end - begin
            arrays = {
                "map": rollout.obs["map"][where] if "map" in rollout.obs else np.zeros((steps, 0, 0, 0), np.float32),
                "features": rollout.obs["features"][where],
                "actions": rollout.action[where],
                "old_log_probs": rollout.log_prob[where],
                "value_preds": np.append(rollout.value[where], rollout.next_value[end - 1, n]),
                "rewards": rollout.reward[where],
                "dones": rollout.ended[where],
                "terminated": rollout.terminated[where],
                "truncated": rollout.truncated[where],
                "next_values": np.where(rollout.terminated[where], 0.0, rollout.next_value[where]).astype(np.float32),
                "policy_version": rollout.policy_version[where],
            }
            if rollout.action_mask is not None:
                arrays["action_masks"] = rollout.action_mask[where]
            about = {
                **meta,
                "feature_names": list(feature_names),
                "agent_id": agent,
                "stream": n,
                "sample_id": f"{agent}_{n:03d}_{part}",
                "action_dim": len(actions),
                "action_lookup": lookup,
            }
            samples.append(make_sample({k: np.ascontiguousarray(v) for k, v in arrays.items()}, about, f"stream {n}"))
    return samples


def _stretches(valid: np.ndarray) -> list[tuple[int, int]]:
    """Return (begin, end) of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], valid, [False]]).astype(np.int8)))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


class RolloutBuffer:
    """Captured samples and event counts; saved as files, or used for learning directly."""

    def __init__(self) -> None:
        self.samples: list[ReplaySample] = []
        self.counts: dict[str, float] = {}
        self.ticks = 0

    def extend(self, samples: Sequence[ReplaySample]) -> None:
        self.samples += samples

    def record_events(self, counts: Mapping[str, float]) -> None:
        """Add event counts, named as in telemetry 1.1; means and peaks are replaced."""
        for name, value in counts.items():
            adds = name.endswith(("_events", "_sum"))
            self.counts[name] = self.counts.get(name, 0.0) + value if adds else value

    def set_tick_count(self, ticks: int) -> None:
        """Set the number of captured ticks."""
        self.ticks = ticks

    @property
    def is_empty(self) -> bool:
        """True if nothing was captured."""
        return not self.samples

    def build_dataset(self, batch_size: int = 1, drop_last: bool = False) -> ReplayDataset:
        if self.is_empty:
            raise ReplayError("nothing was captured: there were no agents, or no ticks; try --auto-seed-agents")
        return ReplayDataset(self.samples, batch_size=batch_size, drop_last=drop_last, label="rollout_buffer")

    def save(self, directory: Path | str, prefix: str = "rollout_sample", *, compress: bool = True) -> Path:
        """Write the samples, <prefix>_manifest.json and <prefix>_metrics.json; return the path of the manifest."""
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
        common = {"counts": self.counts, "ticks": self.ticks}
        content = {"samples": metrics, "baseline": baseline(list(metrics.values())), **common}
        (directory / f"{prefix}_metrics.json").write_text(json.dumps(content, indent=2, sort_keys=True) + "\n", "utf-8")
        shared = {**dict(self.samples[0].meta.get("capture_metadata") or {}), **common}
        return write_manifest(directory / f"{prefix}_manifest.json", names, shared)
