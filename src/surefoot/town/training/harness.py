"""Towns trained by the engine: what `surefoot town train` does, as Python. The seed's names, thin over the same loop."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from surefoot.data.replay import ReplaySample, read_sample
from surefoot.data.replayset import ReplayDataset, RolloutBuffer, read_manifest
from surefoot.data.trajectory import Recording
from surefoot.learn.report import UpdateReport
from surefoot.nets.policy import Policy
from surefoot.telemetry.flat import FlatMirror
from surefoot.town.scenarios.scenario import Scenario, load_scenario
from surefoot.town.sim.town_loop import record_behaviour
from surefoot.town.training.capture import capture_samples, trajectories_of
from surefoot.town.training.policy import PolicyRuntime, measure_policy, town_spec, town_training
from surefoot.train.algorithms.anneal import DEFAULT_STAGES, AnnealRules, Stage, StageResult, anneal
from surefoot.train.algorithms.clone import CloneConfig, CloneReport, clone
from surefoot.train.collect.offpolicy import ReplayRules
from surefoot.train.collect.replay_cycles import Cycles
from surefoot.train.evaluate import EVAL_SEED_OFFSET
from surefoot.train.spec import RunSpec
from surefoot.train.training import load_weights

__all__ = ["PolicyRuntime", "TrainingHarness"]


class TrainingHarness:
    """One town and one policy, kept over all calls: captured from, trained on samples or live, cloned into, annealed.

    `scenario` is a shipped name, a YAML file or a Scenario. Every cycle goes on with the same weights and optimiser.
    """

    def __init__(
        self,
        scenario: Scenario | str | Path,
        *,
        settings: Mapping[str, Any] | None = None,
        variant: str | None = None,
        towns: int | None = None,
        rollout_ticks: int | None = None,
        auto_seed_agents: bool = False,
    ) -> None:
        loaded = (
            scenario if isinstance(scenario, Scenario) else load_scenario(scenario, auto_seed_agents=auto_seed_agents)
        )
        self.scenario, self.variant = loaded, variant
        spec = town_spec(
            loaded, settings=settings, variant=variant, towns=towns, rollout_ticks=rollout_ticks, eval_every=0
        )
        self.training = town_training(spec)
        self.cycle = 0

    @property
    def policy(self) -> Policy:
        """What learns."""
        return self.training.policy

    def capture_rollout(
        self,
        ticks: int | None = None,
        *,
        output_dir: Path | str | None = None,
        prefix: str = "rollout_sample",
        towns: int = 1,
    ) -> RolloutBuffer:
        """Let the policy of now live for `ticks` ticks; written to `output_dir` if one is given."""
        seed = self.training.spec.seed + 7919 * (1 + self.cycle)
        version = self.training.learner.policy_version
        made = capture_samples(
            self.policy,
            self.scenario,
            ticks or self.scenario.ticks,
            seed=seed,
            towns=towns,
            variant=self.variant,
            version=version,
        )
        self.cycle += 1
        if output_dir is not None:
            made.save(output_dir, prefix)
        return made

    def run_replay(self, sample: Path | str, meta: Path | str | None = None) -> ReplaySample:
        """Read one sample, or say what is wrong with it."""
        return read_sample(sample, meta)

    def run_replay_dataset(self, manifest: Path | str, **options: Any) -> ReplayDataset:
        """All samples of a manifest."""
        return ReplayDataset(read_manifest(manifest).entries, **options)

    def run_ppo(
        self,
        dataset: ReplayDataset | Path | str | None = None,
        *,
        epochs: int = 1,
        log_path: Path | str | None = None,
        replay: float | None = None,
        rules: ReplayRules | None = None,
    ) -> list[UpdateReport]:
        """PPO on samples (`epochs` passes), live (`epochs` updates), or both where `replay` is a share between 0 and 1."""
        if isinstance(dataset, Path | str):
            dataset = self.run_replay_dataset(dataset)
        share = replay if replay is not None else 0.0 if dataset is None else 1.0
        cycles = Cycles(self.training, replay=share, dataset=dataset, rules=rules or ReplayRules(min_sample_size=0.0))
        cycles.cycle = self.cycle
        if share == 1.0 and dataset is not None:
            epochs *= len(dataset)
        reports: list[UpdateReport] = []
        with _Log(log_path, self.training.spec, cycles.mode) as log:
            for turn in range(epochs):
                report = cycles.update_from_replay(turn) if share == 1.0 else cycles.update()
                reports.append(report)
                log.add(report, self.training.env_steps)
        self.cycle = max(self.cycle, cycles.cycle)
        return reports

    def run_bc_training(
        self, dataset: ReplayDataset | Recording | Path | str | None = None, *, epochs: int = 30
    ) -> CloneReport:
        """Clone samples, recorded episodes, or (None) the script's; the last report. PPO goes on from these weights."""
        recording = self._recording(dataset)
        generator = torch.Generator().manual_seed(self.training.spec.seed)
        config = CloneConfig(epochs=epochs, gamma=self.training.spec.ppo.gamma)
        reports = list(clone(self.policy, recording, config, generator=generator, device=self.training.device))
        return max(reports, key=lambda report: report.agreement or 0.0)

    def run_anneal(
        self,
        dataset: ReplayDataset | Recording | Path | str | None = None,
        *,
        stages: Iterable[Stage] = DEFAULT_STAGES,
        rules: AnnealRules | None = None,
        log_path: Path | str | None = None,
    ) -> list[StageResult]:
        """A schedule of cloning and PPO; results of all stages that ran."""
        with _Log(log_path, self.training.spec, "rollout") as log:
            told = anneal(
                self.training,
                self._recording(dataset),
                list(stages),
                rules,
                score=lambda: float(self.measure(32)["return"].mean()),
                told=lambda report: log.add(report, self.training.env_steps),
            )
            return list(told)

    def measure(self, episodes: int = 64, *, seed: int | None = None) -> dict[str, np.ndarray]:
        """The scenario's measures of the policy of now."""
        chosen = self.training.spec.seed + EVAL_SEED_OFFSET if seed is None else seed
        central = bool(self.training.spec.env_kwargs.get("central"))
        return measure_policy(self.policy, self.scenario, episodes, seed=chosen, variant=self.variant, central=central)

    def load(self, weights: Mapping[str, Any]) -> None:
        """Put saved weights in."""
        load_weights(self.policy, dict(weights))

    def _recording(self, dataset: ReplayDataset | Recording | Path | str | None) -> Recording:
        if isinstance(dataset, Recording):
            return dataset
        if dataset is None:
            return record_behaviour(self.scenario, "script", 64, seed=self.training.spec.seed, variant=self.variant)
        return trajectories_of(dataset if isinstance(dataset, ReplayDataset) else self.run_replay_dataset(dataset))


class _Log:
    """The flat form of telemetry 1.1 for a few updates outside a run; nothing without a path."""

    def __init__(self, path: Path | str | None, spec: RunSpec, mode: str) -> None:
        self.mirror = None if path is None else FlatMirror(path)
        self.mode = mode

    def add(self, report: UpdateReport, env_steps: int) -> None:
        if self.mirror is None:
            return
        from surefoot.telemetry.schema import VERSION, UpdateRecord

        self.mirror.write(
            UpdateRecord(
                v=VERSION,
                run="",
                seq=report.update,
                t=time.time(),
                env_steps=env_steps,
                updates=report.update,
                m={**report.metrics(), **report.stats},
                epochs=[epoch.as_dict() for epoch in report.epochs],
                seconds=dict(report.seconds),
                labels={"data_mode": self.mode},
            )
        )

    def __enter__(self) -> _Log:
        return self

    def __exit__(self, *_: object) -> None:
        if self.mirror is not None:
            self.mirror.close()
