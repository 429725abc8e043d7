"""`surefoot town train`: train the agents of a town."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from surefoot.cli import options
from surefoot.cli.drive import drive, live_doctor
from surefoot.cli.usage import Usage, as_usage
from surefoot.cli.verbs.town.samples import ScenarioName, TownOptions, flat_mirrors, load, print_samples, read_samples

if TYPE_CHECKING:
    from surefoot.data.replayset import ReplayDataset
    from surefoot.data.trajectory import Recording
    from surefoot.learn.report import UpdateReport
    from surefoot.town.scenarios.scenario import Scenario
    from surefoot.train.algorithms.anneal import Stage
    from surefoot.train.collect.replay_cycles import Cycles
    from surefoot.train.run import Run
    from surefoot.train.spec import RunSpec
    from surefoot.train.training import Training

Mode = Literal["replay", "rollout", "mixed", "bc", "anneal"]


@dataclass(frozen=True, kw_only=True)
class TownTrainArgs:
    """Train one policy for all agents of a town.

        surefoot town train queue_conflict --name queues
        surefoot town train queue_conflict --mode replay --samples samples/manifest.json --train-ppo
        surefoot town train queue_conflict --mode mixed --samples samples/manifest.json --set replay_share=0.5

    Modes: rollout learns from live towns; replay learns from recorded samples and their log-probabilities; mixed
    alternates between both (without samples: between new and recent rollouts); bc clones the script or the samples and
    creates a run that PPO can continue; anneal is a schedule of cloning and PPO that ends with PASS, HOLD or FAIL.
    `surefoot resume RUN` continues a rollout run exactly; for other modes pass SCENARIO with --resume RUN.
    """

    scenario: ScenarioName
    """A shipped scenario (`surefoot town scenarios`) or a YAML file."""
    mode: Mode | None = None
    """Source of the training data (default: the scenario's; rollout if --rollout-ticks is given, replay with --samples)."""
    steps: Annotated[int | None, tyro.conf.arg(aliases=["-n"])] = None
    """Agent steps in live towns (default: the scenario's)."""
    epochs: int | None = None
    """Instead of --steps: passes over the samples (replay, bc), or updates (rollout, mixed, PPO stages of anneal)."""
    rollout_ticks: int | None = None
    """Ticks of each town between updates (default: the scenario's; with fewer --towns more, up to an episode)."""
    towns: int | None = None
    """Number of parallel towns (default: the scenario's)."""
    samples: Annotated[Path | None, tyro.conf.arg(metavar="MANIFEST|DIR")] = None
    """Samples of `surefoot town capture`: a manifest in JSON or YAML, a directory with *_manifest.json files, or one
    sample (.npz)."""
    train_ppo: bool = False
    """replay: train; without it the samples are only checked and summarized. The other modes always train."""
    from_run: Annotated[str | None, tyro.conf.arg(name="from", metavar="RUN")] = None
    """Start with the weights of this run."""
    resume: Annotated[str | None, tyro.conf.arg(metavar="RUN")] = None
    """Continue this run exactly, with the same mode and samples."""
    ppo_log: options.PpoLog = None
    set: options.Settings = ()
    """Change a setting of `surefoot knobs`, or one of: observations=features|hybrid|full|compact (default: the
    scenario's), central=true (one critic that sees the observations of all agents, MAPPO), auto_seed_agents=true (add two
    agents and a stove to a scenario without agents), rollout_save_dir=DIR (play an episode after training and write its
    samples), eval_every=STEPS, checkpoint_every=STEPS, replay_share=0.5,
    replay_recent=4, replay_batch_size=1, replay_shuffle, replay_seed, replay_drop_last, replay_streaming, max_lag,
    min_sample_size=0.05, rho_clip=1, bc_episodes=64, anneal_schedule=bc:30,ppo:20,ppo:20, anneal_accuracy=0.9,
    anneal_exit_on_failure, anneal_log_dir=DIR, ppo_log_frequency=1, ppo_log_max_entries=0, replay_meta=FILE
    (see `docs/reference/town.md`)."""
    seed: int | None = None
    """Random seed (default: 0)."""
    name: options.NewRunName = None
    display: options.Display = "auto"

    def run(self) -> int:
        from surefoot.town.training.spec import town_training
        from surefoot.train.device import pin_threads

        pin_threads()
        scenario = load(self.scenario, self.parsed_set[0].auto_seed_agents)
        mode = self.chosen_mode(scenario)
        self.refuse(mode)
        dataset = None if self.samples is None else read_samples(self.samples, self.parsed_set[0])
        if mode == "replay" and not self.train_ppo:
            assert dataset is not None
            return print_samples(dataset)
        if mode in ("bc", "anneal"):
            return self._teach(scenario, dataset)
        training = self._initialized(town_training(self._spec(scenario)))
        return self._drive(scenario, self._cycles(training, mode, dataset), mode)

    def chosen_mode(self, scenario: Scenario) -> Mode:
        """Return --mode; else rollout if ticks were given, replay if samples were, else the scenario's mode."""
        if self.mode is not None:
            return self.mode
        if self.rollout_ticks is not None:
            return "rollout"
        if self.samples is not None:
            return "replay"
        source: Any = scenario.training.source
        return source

    def refuse(self, mode: Mode) -> None:
        """Raise `Usage` for options that contradict each other."""
        if mode == "rollout" and self.samples is not None:
            raise Usage("mode rollout learns from live towns only; leave the samples out, or pass --mode mixed")
        if mode == "replay" and self.samples is None:
            raise Usage("mode replay needs --samples MANIFEST or DIR (`surefoot town capture` writes them)")
        if mode == "replay" and self.rollout_ticks is not None:
            raise Usage("mode replay has no live towns, so --rollout-ticks has no effect; pass --mode mixed for both")
        if mode == "replay" and self.steps is not None:
            raise Usage("mode replay takes no live steps; --epochs is the number of passes over the samples")
        options.at_least_one(towns=self.towns, rollout_ticks=self.rollout_ticks, steps=self.steps, epochs=self.epochs)
        if self.steps is not None and self.epochs is not None:
            raise Usage("--steps and --epochs were both given; pass one of them")
        share = self.parsed_set[0].replay_share
        if mode == "mixed" and not 0.0 < share < 1.0:
            raise Usage(f"replay_share is {share}; in mode mixed it is between 0 and 1. Pass --mode rollout or replay")
        if self.parsed_set[0].central and self.samples is not None:
            raise Usage(
                "samples have the observations of one agent, which central=true cannot use; leave one of them out"
            )
        if self.train_ppo and mode == "bc":
            raise Usage("--train-ppo belongs to mode replay; `surefoot resume RUN` continues a clone with PPO")

    @cached_property
    def parsed_set(self) -> tuple[TownOptions, dict[str, Any]]:
        """The town's options and PPO's settings, both from --set."""
        town, ppo = options.split_settings(TownOptions, self.set)
        return town, ppo | ({"seed": self.seed} if self.seed is not None else {})

    def _spec(self, scenario: Scenario) -> RunSpec:
        from surefoot.town.training.spec import town_spec

        return town_spec(
            scenario,
            settings=self.parsed_set[1],
            steps=self.steps,
            towns=self.towns,
            rollout_ticks=self.rollout_ticks,
            variant=self.parsed_set[0].observations,
            central=self.parsed_set[0].central,
            eval_every=self.parsed_set[0].eval_every,
            checkpoint_every=self.parsed_set[0].checkpoint_every,
        )

    def _teach(self, scenario: Scenario, dataset: ReplayDataset | None) -> int:
        """Train by cloning or annealing, save the run, and return the exit code."""
        from surefoot.town.training.spec import town_training
        from surefoot.town.training.teach import parse_stages, teacher_recording
        from surefoot.train.run import create_run
        from surefoot.train.rundir.rundir import new_run_dir

        annealed = self.chosen_mode(scenario) == "anneal"
        with as_usage():
            stages = parse_stages(self.parsed_set[0].anneal_schedule, self.epochs) if annealed else []
        training = self._initialized(town_training(self._spec(scenario)))
        spec = training.spec
        recording = teacher_recording(
            scenario,
            dataset,
            episodes=self.parsed_set[0].bc_episodes,
            seed=spec.seed,
            variant=self.parsed_set[0].observations,
        )
        directory = new_run_dir(spec.env, spec.seed, name=self.name)
        mirrors, command = flat_mirrors(self.ppo_log, self.parsed_set[0]), options.command_line()
        run = create_run(directory, spec, training=training, command=command, mirrors=mirrors)
        try:
            if annealed:
                code = self._anneal(run, training, recording, scenario, stages)
            else:
                code = self._clone(run, training, recording)
        except BaseException as error:
            run.close("error", str(error))
            raise
        run.save()
        run.close("interrupted")
        self._after(scenario, run)
        return code

    def _clone(self, run: Run, training: Training, recording: Recording) -> int:
        from surefoot.town.training.teach import clone_town

        best = clone_town(training, recording, epochs=self.epochs or 30)
        summary = (
            f"cloned {len(recording.episodes)} episodes, {recording.steps:,} steps: agreement {best.agreement or 0:.1%}"
        )
        run.recorder.event("cloned", summary)
        print(f"{run.directory.name}: {summary}; `surefoot resume {run.directory.name}` continues with PPO")
        return 0

    def _anneal(
        self, run: Run, training: Training, recording: Recording, scenario: Scenario, stages: list[Stage]
    ) -> int:
        from surefoot.town.training.teach import anneal_town
        from surefoot.train.algorithms.anneal import AnnealRules, StageResult, verdict

        def record(report: UpdateReport) -> None:
            run.record(report, training.collector.episodes.take_fresh(), training.env_steps)

        run.labels |= {"data_mode": "rollout"}
        rules = AnnealRules(accuracy=self.parsed_set[0].anneal_accuracy)
        results: list[StageResult] = []
        for result in anneal_town(training, scenario, recording, stages, rules, on_update=record):
            results.append(result)
            run.labels["anneal_stage"] = result.mode
            figure = f"accuracy {result.accuracy:.3f}" if result.accuracy is not None else f"loss {result.loss:.4f}"
            reasons = " ".join(result.reasons)
            print(f"stage {result.cycle} {result.mode}: {result.status}  {figure}  score {result.score:.3f} {reasons}")
        status = verdict(results)
        document = {"status": status, "stages": [result.to_json() for result in results]}
        log_dir = self.parsed_set[0].anneal_log_dir
        for folder in (run.directory.path, *([] if log_dir is None else [Path(log_dir)])):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "anneal_results.json").write_text(json.dumps(document, indent=2) + "\n", "utf-8")
        print(f"{run.directory.name}: anneal {status}")
        return {"PASS": 0, "HOLD": 1, "FAIL": 2}[status] if self.parsed_set[0].anneal_exit_on_failure else 0

    def _cycles(self, training: Training, mode: Mode, dataset: ReplayDataset | None) -> Cycles:
        from surefoot.train.collect.offpolicy import ReplayRules
        from surefoot.train.collect.replay_cycles import Cycles

        town = self.parsed_set[0]
        share = {"rollout": 0.0, "replay": 1.0}.get(mode, town.replay_share)
        updates = self.epochs
        if mode == "replay":
            assert dataset is not None
            updates = (self.epochs or 1) * len(dataset)
        return Cycles(
            training,
            replay=share,
            dataset=dataset,
            recent=town.replay_recent if mode == "mixed" and dataset is None else 0,
            rules=ReplayRules(max_lag=town.max_lag, min_sample_size=town.min_sample_size, rho_clip=town.rho_clip),
            updates=updates,
        )

    def _drive(self, scenario: Scenario, cycles: Cycles, mode: str) -> int:
        from surefoot.train.run import create_run, resume_run
        from surefoot.train.rundir.rundir import new_run_dir

        spec = cycles.spec
        directory = (
            new_run_dir(spec.env, spec.seed, name=self.name)
            if self.resume is None
            else options.run_directory(self.resume)
        )
        settings: dict[str, Any] = {
            "training": cycles,
            "command": options.command_line(),
            "mirrors": flat_mirrors(self.ppo_log, self.parsed_set[0]),
            "doctor": live_doctor("on"),
        }
        run = create_run(directory, spec, **settings) if self.resume is None else resume_run(directory, **settings)[0]
        run.labels |= {"data_mode": mode if mode in ("replay", "mixed") else "rollout"}
        code = drive(run, self.display)
        self._after(scenario, run)
        return code

    def _after(self, scenario: Scenario, run: Run) -> None:
        from surefoot.town.training.capture import capture_samples
        from surefoot.town.training.measure import measure_policy
        from surefoot.train.evaluate import EVAL_SEED_OFFSET

        kwargs, spec = run.spec.env_kwargs, run.spec
        seed = spec.seed + EVAL_SEED_OFFSET
        measures = measure_policy(
            run.training.policy,
            scenario,
            32,
            seed=seed,
            variant=kwargs.get("variant"),
            central=bool(kwargs.get("central")),
        )
        means = ", ".join(f"{name} {measures[name].mean():.3f}" for name in (scenario.measures or ["return"]))
        print(f"{run.directory.name}: {means} over 32 unseen episodes")
        save_dir = self.parsed_set[0].rollout_save_dir
        if save_dir is not None:
            captured = capture_samples(
                run.training.policy, scenario, scenario.ticks, seed=seed + 1, variant=kwargs.get("variant")
            )
            print(f"samples: {captured.save(Path(save_dir))}")

    def _initialized(self, training: Training) -> Training:
        if self.from_run is not None:
            from surefoot.train.rundir.initialize_from import adopt

            adopt(training, options.run_directory(self.from_run).path)
        return training
