"""`TrainingHarness`: Townlet's method names over `surefoot.town.training.run.TownTraining`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from surefoot.compat.townlet.record_writer import FlatMirror
from surefoot.data.replay import ReplaySample, read_sample
from surefoot.data.replayset import ReplayDataset, RolloutBuffer, read_manifest
from surefoot.data.trajectory import Recording
from surefoot.learn.report import UpdateReport
from surefoot.nets.policy import load_weights
from surefoot.telemetry.schema import VERSION, UpdateRecord
from surefoot.town.training.run import PolicyRuntime, TownTraining
from surefoot.train.algorithms.anneal import DEFAULT_STAGES, AnnealRules, Stage, StageResult
from surefoot.train.algorithms.clone import CloneReport
from surefoot.train.collect.offpolicy import ReplayRules

__all__ = ["PolicyRuntime", "TrainingHarness"]


class TrainingHarness(TownTraining):
    """A town and its policy; `log_path` writes the flat record of telemetry 1.1."""

    def capture_rollout(
        self,
        ticks: int | None = None,
        *,
        output_dir: Path | str | None = None,
        prefix: str = "rollout_sample",
        towns: int = 1,
    ) -> RolloutBuffer:
        """Capture samples of the current policy; write them to `output_dir` if given."""
        samples = self.capture(ticks, towns=towns)
        if output_dir is not None:
            samples.save(output_dir, prefix)
        return samples

    def run_replay(self, sample: Path | str, meta: Path | str | None = None) -> ReplaySample:
        """Read one sample; raise `ReplayError` if it is not sound."""
        return read_sample(sample, meta)

    def run_replay_dataset(self, manifest: Path | str, **options: Any) -> ReplayDataset:
        """Return all samples of a manifest."""
        return ReplayDataset(read_manifest(manifest).entries, **options)

    def run_ppo(
        self,
        dataset: ReplayDataset | Path | str | None = None,
        *,
        epochs: int = 1,
        log_path: Path | str | None = None,
        log_frequency: int = 1,
        max_log_entries: int = 0,
        replay: float | None = None,
        rules: ReplayRules | None = None,
    ) -> list[UpdateReport]:
        """Learn by PPO on samples (`epochs` passes), live (`epochs` updates), or both (`replay` between 0 and 1).

        The log has every `log_frequency`-th epoch and starts a new file after `max_log_entries` lines (0: never).
        """
        dataset = self._dataset(dataset)
        share = replay if replay is not None else 0.0 if dataset is None else 1.0
        mode = {0.0: "rollout", 1.0: "replay"}.get(share, "mixed")
        with ExitStack() as stack:
            on_update = self._logged(stack, log_path, mode, every=log_frequency, max_lines=max_log_entries)
            return self.learn(dataset, epochs=epochs, replay=replay, rules=rules, on_update=on_update)

    def run_bc_training(
        self, dataset: ReplayDataset | Recording | Path | str | None = None, *, epochs: int = 30
    ) -> CloneReport:
        """Clone samples, recorded episodes, or (None) the script."""
        return self.clone(dataset if isinstance(dataset, Recording) else self._dataset(dataset), epochs=epochs)

    def run_anneal(
        self,
        dataset: ReplayDataset | Recording | Path | str | None = None,
        *,
        stages: Iterable[Stage] = DEFAULT_STAGES,
        rules: AnnealRules | None = None,
        log_path: Path | str | None = None,
    ) -> list[StageResult]:
        """Follow a schedule of cloning and PPO; return the results of all stages that ran."""
        source = dataset if isinstance(dataset, Recording) else self._dataset(dataset)
        with ExitStack() as stack:
            on_update = self._logged(stack, log_path, "rollout")
            return list(self.anneal(source, stages=list(stages), rules=rules, on_update=on_update))

    def load(self, weights: Mapping[str, Any]) -> None:
        """Load saved weights into the policy."""
        load_weights(self.policy, dict(weights))

    def _dataset(self, dataset: ReplayDataset | Path | str | None) -> ReplayDataset | None:
        return self.run_replay_dataset(dataset) if isinstance(dataset, Path | str) else dataset

    def _logged(
        self, stack: ExitStack, path: Path | str | None, mode: str, *, every: int = 1, max_lines: int = 0
    ) -> Callable[[UpdateReport], None]:
        if path is None:
            return lambda report: None
        mirror = stack.enter_context(FlatMirror(path, every=every, max_lines=max_lines))
        return lambda report: mirror.write(record_of(report, self.training.env_steps, mode))


def record_of(report: UpdateReport, env_steps: int, data_mode: str) -> UpdateRecord:
    """Return the record of one update that is made outside a run."""
    return UpdateRecord(
        v=VERSION,
        run="",
        seq=report.update,
        t=time.time(),
        env_steps=env_steps,
        updates=report.update,
        m={**report.metrics(), **report.stats},
        epochs=[epoch.as_dict() for epoch in report.epochs],
        seconds=dict(report.seconds),
        labels={"data_mode": data_mode},
    )
