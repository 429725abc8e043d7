"""`surefoot town train`: a town's policy from live rollouts, samples, both, the script, or a schedule of them."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from surefoot.cli import options
from surefoot.cli.drive import attending, drive, open_mirrors
from surefoot.cli.options import at_least_one, pairs, run_directory
from surefoot.cli.usage import Usage, as_usage

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
ScenarioName = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="SCENARIO")]

_KNOBS = {
    "learning_rate": "lr",
    "clip_param": "clip",
    "value_loss_coef": "vf_coef",
    "entropy_coef": "ent_coef",
    "num_epochs": "epochs",
    "mini_batch_size": "minibatch_size",
    "num_mini_batches": "minibatches",
    "gae_lambda": "lam",
    "gamma": "gamma",
    "max_grad_norm": "max_grad_norm",
    "value_clip": "value_clip",
    "device": "device",
}
"""Flags by their longer names, and the settings they are."""


@dataclass(frozen=True, kw_only=True)
class TownTrainArgs:
    """Train one policy for all agents of a town.

        surefoot town train queue_conflict --name queues
        surefoot town train queue_conflict --mode replay --replay-manifest samples/manifest.json
        surefoot town train queue_conflict --mode mixed --replay-manifest samples/manifest.json --replay-share 0.5

    rollout learns from live towns; replay from the samples of a manifest, with the log-probs that were written down then;
    mixed takes turns between both (without samples, between new and recent rollouts); bc clones the script or samples and
    leaves a run that PPO can go on from; anneal is a schedule of cloning and PPO that answers PASS, HOLD or FAIL.
    `surefoot resume RUN` goes on with a stopped rollout run to the last bit; SCENARIO with --resume RUN with any other.
    """

    scenario: ScenarioName
    """A shipped scenario (`surefoot town scenarios`) or a YAML file of your own."""
    mode: Mode | None = None
    """Where data comes from (default: the scenario's training.source; rollout if --rollout-ticks is given)."""
    steps: Annotated[int | None, tyro.conf.arg(aliases=["-n"])] = None
    """Live agent-steps of the whole run; the scenario says if you do not."""
    epochs: int | None = None
    """Instead of --steps: passes over the samples (replay, bc), or updates (rollout, mixed, anneal's stages of PPO)."""
    rollout_ticks: int | None = None
    """Ticks of each town between two updates (default: the scenario's; with fewer --towns more, up to an episode)."""
    towns: int | None = None
    """Towns side by side."""
    replay_manifest: Annotated[Path | None, tyro.conf.arg(aliases=["--bc-manifest"])] = None
    """Samples to learn from: a manifest of `surefoot town capture`, JSON or YAML."""
    capture_dir: Path | None = None
    """The same: a directory of captures; every *_manifest.json in it is taken."""
    replay_share: float = 0.5
    """mixed: the share of updates that are from old data, 0 to 1."""
    replay_recent: int = 4
    """mixed without samples: how many of its own rollouts are kept to be learned from again."""
    replay_batch_size: int = 1
    """Samples learned from at once."""
    replay_shuffle: bool = False
    """Samples in another order each pass."""
    replay_seed: int = 0
    """Of that order."""
    replay_drop_last: bool = False
    """Leave out a batch that is not full."""
    replay_streaming: bool = False
    """Read samples when they are due instead of all at first."""
    max_lag: int | None = None
    """Old data of this run is left out after so many updates."""
    min_sample_size: float = 0.05
    """Old data is stale, and left out, once less than this share of it counts under the importance ratio."""
    rho_clip: float = 1.0
    """Importance weights of value corrections are held below this."""
    train_ppo: bool = False
    """replay: really learn; without it the samples are only checked and told. The other modes always learn."""
    bc_episodes: int = 64
    """bc, anneal without samples: towns of the script that are recorded."""
    anneal_schedule: str = "bc:30,ppo:20,ppo:20"
    """anneal: stages as MODE:EPOCHS."""
    anneal_accuracy: float = 0.9
    """anneal: share of steps in which a clone must choose as recorded."""
    anneal_exit_on_failure: bool = False
    """anneal: exit code 2 on FAIL, 1 on HOLD; else both are only said."""
    observations: Literal["features", "hybrid", "full", "compact"] | None = None
    """What agents see (default: the scenario's)."""
    central: bool = False
    """One critic sees what all agents see (MAPPO)."""
    auto_seed_agents: bool = False
    """Put two agents and a stove into a scenario that has no agents."""
    from_run: Annotated[str | None, tyro.conf.arg(name="from", metavar="RUN")] = None
    """Begin with the weights of this run."""
    resume: Annotated[str | None, tyro.conf.arg(metavar="RUN")] = None
    """Go on with this run, killed or stopped, with the same mode and samples, to the last bit."""
    rollout_save_dir: Path | None = None
    """When done, let the policy live for one episode and write its samples there."""
    ppo_log: Annotated[Path | None, tyro.conf.arg(aliases=["--ppo-ndjson"])] = None
    """Also write the flat form of telemetry 1.1, one object an epoch; an old file is gone on with."""
    learning_rate: Annotated[float | None, tyro.conf.arg(aliases=["--ppo-learning-rate"])] = None
    """PPO's learning rate; so for the flags below, and --set for every other setting."""
    clip_param: Annotated[float | None, tyro.conf.arg(aliases=["--ppo-clip-param"])] = None
    """How far a probability may move in an update."""
    value_loss_coef: Annotated[float | None, tyro.conf.arg(aliases=["--ppo-value-loss-coef"])] = None
    """Weight of the critic's loss."""
    entropy_coef: Annotated[float | None, tyro.conf.arg(aliases=["--ppo-entropy-coef"])] = None
    """Weight of the entropy bonus."""
    num_epochs: Annotated[int | None, tyro.conf.arg(aliases=["--ppo-num-epochs"])] = None
    """Passes over each rollout."""
    mini_batch_size: Annotated[int | None, tyro.conf.arg(aliases=["--ppo-mini-batch-size"])] = None
    """Steps in one gradient step."""
    num_mini_batches: Annotated[int | None, tyro.conf.arg(aliases=["--ppo-num-mini-batches"])] = None
    """Gradient steps in one pass."""
    gae_lambda: Annotated[float | None, tyro.conf.arg(aliases=["--ppo-gae-lambda"])] = None
    """λ of the advantage estimate."""
    gamma: Annotated[float | None, tyro.conf.arg(aliases=["--ppo-gamma"])] = None
    """Discount."""
    max_grad_norm: Annotated[float | None, tyro.conf.arg(aliases=["--ppo-max-grad-norm"])] = None
    """The gradient is scaled down to this norm."""
    value_clip: Annotated[float | None, tyro.conf.arg(aliases=["--ppo-value-clip"])] = None
    """How far a value may move in an update."""
    no_normalize_advantages: Annotated[bool, tyro.conf.arg(aliases=["--ppo-no-normalize-advantages"])] = False
    """Leave advantages as they are."""
    device: str | None = None
    """cpu, cuda, cuda:1, mps or auto."""
    set: options.Settings = ()
    """Any setting of `surefoot knobs`."""
    seed: options.OptionalSeed = None
    name: options.NewRunName = None
    runs: options.Runs = None
    checkpoint_every: int | None = None
    """Live steps between checkpoints (default: twenty in a run)."""
    eval_every: int | None = None
    """Live steps between evaluations (default: ten in a run; 0 for none)."""
    display: options.Display = "auto"

    def run(self) -> int:
        from surefoot.town.training.spec import town_training
        from surefoot.train.device import pin_threads

        pin_threads()
        scenario = load(self.scenario, self.auto_seed_agents)
        mode = self.chosen_mode(scenario)
        self.refuse(mode)
        dataset = self._dataset()
        if mode == "replay" and not self.train_ppo:
            assert dataset is not None
            return _tell(dataset)
        if mode in ("bc", "anneal"):
            return self._taught(scenario, dataset)
        training = self._adopted(town_training(self._spec(scenario)))
        return self._drive(scenario, self._cycles(training, mode, dataset), mode)

    def chosen_mode(self, scenario: Scenario) -> Mode:
        """What was said; else live if ticks were given, replay if samples were, else what the scenario says."""
        if self.mode is not None:
            return self.mode
        if self.rollout_ticks is not None:
            return "rollout"
        if self.replay_manifest is not None or self.capture_dir is not None:
            return "replay"
        source: Any = scenario.training.source
        return source

    def refuse(self, mode: Mode) -> None:
        """Raise for what makes no sense together, and say why."""
        samples = self.replay_manifest is not None or self.capture_dir is not None
        if self.replay_manifest is not None and self.capture_dir is not None:
            raise Usage("--replay-manifest and --capture-dir were both given; samples come from one place")
        if mode == "rollout" and samples:
            raise Usage("mode rollout learns from live towns only; leave the samples away, or say --mode mixed")
        if mode == "replay" and not samples:
            raise Usage(
                "mode replay needs samples: --replay-manifest FILE or --capture-dir DIR (`surefoot town capture`)"
            )
        if mode == "replay" and self.rollout_ticks is not None:
            raise Usage("mode replay has no live towns, so --rollout-ticks means nothing; say --mode mixed for both")
        if mode == "replay" and self.steps is not None:
            raise Usage("mode replay takes no live steps; --epochs says how often the samples are gone over")
        counts = {"towns": self.towns, "rollout-ticks": self.rollout_ticks, "steps": self.steps, "epochs": self.epochs}
        at_least_one(**counts)
        if self.steps is not None and self.epochs is not None:
            raise Usage("--steps and --epochs were both given; one of them says how long")
        if mode == "mixed" and not 0.0 < self.replay_share < 1.0:
            raise Usage(
                f"--replay-share is {self.replay_share}; mixed is between 0 and 1, else say --mode rollout or replay"
            )
        if self.central and samples:
            raise Usage("samples hold what one agent saw, so --central has nothing to show its critic; leave one away")
        if self.train_ppo and mode == "bc":
            raise Usage(
                "mode bc clones; --train-ppo belongs to replay. `surefoot resume RUN` goes on with PPO from a clone"
            )

    def settings(self) -> dict[str, Any]:
        """What the flags say, by our names."""
        said = {ours: getattr(self, flag) for flag, ours in _KNOBS.items() if getattr(self, flag) is not None}
        said |= {"normalize_advantage": "off"} if self.no_normalize_advantages else {}
        given: dict[str, Any] = {**said, **pairs(self.set, "--set")}
        return given | ({"seed": self.seed} if self.seed is not None else {})

    def _spec(self, scenario: Scenario) -> RunSpec:
        from surefoot.town.training.spec import town_spec

        return town_spec(
            scenario,
            settings=self.settings(),
            steps=self.steps,
            towns=self.towns,
            rollout_ticks=self.rollout_ticks,
            variant=self.observations,
            central=self.central,
            eval_every=self.eval_every,
            checkpoint_every=self.checkpoint_every,
        )

    def _dataset(self) -> ReplayDataset | None:
        from surefoot.data.replayset import ReplayDataset, read_manifest
        from surefoot.errors import ReplayError

        if self.replay_manifest is None and self.capture_dir is None:
            return None
        manifests = [self.replay_manifest] if self.replay_manifest is not None else []
        if self.capture_dir is not None:
            manifests = sorted(self.capture_dir.rglob("*_manifest.json")) + sorted(
                self.capture_dir.rglob("*_manifest.yaml")
            )
            if not manifests:
                raise ReplayError(f"{self.capture_dir} holds no *_manifest.json; `surefoot town capture` writes one")
        return ReplayDataset(
            [entry for manifest in manifests for entry in read_manifest(manifest).entries],
            batch_size=self.replay_batch_size,
            shuffle=self.replay_shuffle,
            seed=self.replay_seed,
            drop_last=self.replay_drop_last,
            streaming=self.replay_streaming,
        )

    def _taught(self, scenario: Scenario, dataset: ReplayDataset | None) -> int:
        """Make the run that bc or anneal leaves, close it, and return the exit code."""
        from surefoot.town.training.spec import town_training
        from surefoot.town.training.teach import parse_stages, teacher_recording
        from surefoot.train.run import create_run
        from surefoot.train.rundir.rundir import new_run_dir, runs_root

        annealed = self.chosen_mode(scenario) == "anneal"
        with as_usage():
            stages = parse_stages(self.anneal_schedule, self.epochs) if annealed else []
        training = self._adopted(town_training(self._spec(scenario)))
        spec = training.spec
        recording = teacher_recording(
            scenario, dataset, episodes=self.bc_episodes, seed=spec.seed, variant=self.observations
        )
        directory = new_run_dir(spec.env, spec.seed, root=runs_root(self.runs), name=self.name)
        run = create_run(directory, spec, training=training, command=["surefoot", *sys.argv[1:]])
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
            f"cloned {len(recording.episodes)} episodes, {recording.steps:,} steps: agrees in {best.agreement or 0:.1%}"
        )
        run.recorder.event("cloned", summary)
        print(f"{run.directory.name}: {summary}; `surefoot resume {run.directory.name}` goes on with PPO")
        return 0

    def _anneal(
        self, run: Run, training: Training, recording: Recording, scenario: Scenario, stages: list[Stage]
    ) -> int:
        from surefoot.town.training.teach import anneal_town
        from surefoot.train.algorithms.anneal import AnnealRules, StageResult, verdict

        def record(report: UpdateReport) -> None:
            run.record(report, training.collector.episodes.take_fresh())

        run.labels |= {"data_mode": "rollout"}
        rules = AnnealRules(accuracy=self.anneal_accuracy)
        results: list[StageResult] = []
        for result in anneal_town(training, scenario, recording, stages, rules, on_update=record):
            results.append(result)
            run.labels["anneal_stage"] = result.mode
            figure = f"accuracy {result.accuracy:.3f}" if result.accuracy is not None else f"loss {result.loss:.4f}"
            reasons = " ".join(result.reasons)
            print(f"stage {result.cycle} {result.mode}: {result.status}  {figure}  score {result.score:.3f} {reasons}")
        status = verdict(results)
        document = {"status": status, "stages": [result.to_json() for result in results]}
        (run.directory.path / "anneal_results.json").write_text(json.dumps(document, indent=2) + "\n", "utf-8")
        print(f"{run.directory.name}: anneal {status}")
        return {"PASS": 0, "HOLD": 1, "FAIL": 2}[status] if self.anneal_exit_on_failure else 0

    def _cycles(self, training: Training, mode: Mode, dataset: ReplayDataset | None) -> Cycles:
        from surefoot.train.collect.offpolicy import ReplayRules
        from surefoot.train.collect.replay_cycles import Cycles

        share = {"rollout": 0.0, "replay": 1.0}.get(mode, self.replay_share)
        updates = self.epochs
        if mode == "replay":
            assert dataset is not None
            updates = (self.epochs or 1) * len(dataset)
        return Cycles(
            training,
            replay=share,
            dataset=dataset,
            recent=self.replay_recent if mode == "mixed" and dataset is None else 0,
            rules=ReplayRules(max_lag=self.max_lag, min_sample_size=self.min_sample_size, rho_clip=self.rho_clip),
            updates=updates,
        )

    def _drive(self, scenario: Scenario, cycles: Cycles, mode: str) -> int:
        from surefoot.train.run import create_run, resume_run
        from surefoot.train.rundir.rundir import find_run, new_run_dir, runs_root

        root, spec = runs_root(self.runs), cycles.spec
        directory = (
            new_run_dir(spec.env, spec.seed, root=root, name=self.name)
            if self.resume is None
            else find_run(self.resume, root)
        )
        settings: dict[str, Any] = {
            "training": cycles,
            "command": ["surefoot", *sys.argv[1:]],
            "mirrors": open_mirrors(directory.path, (), tensorboard=False, ppo_log=self.ppo_log),
            "doctor": attending(False, False),
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
        found = measure_policy(
            run.training.policy,
            scenario,
            32,
            seed=seed,
            variant=kwargs.get("variant"),
            central=bool(kwargs.get("central")),
        )
        told = ", ".join(f"{name} {found[name].mean():.3f}" for name in (scenario.measures or ["return"]))
        print(f"{run.directory.name}: {told} over 32 unseen episodes")
        if self.rollout_save_dir is not None:
            made = capture_samples(
                run.training.policy, scenario, scenario.ticks, seed=seed + 1, variant=kwargs.get("variant")
            )
            print(f"samples: {made.save(self.rollout_save_dir)}")

    def _adopted(self, training: Training) -> Training:
        if self.from_run is not None:
            from surefoot.train.rundir.initialize_from import adopt

            adopt(training, run_directory(self.from_run, self.runs).path)
        return training


def load(name: str, auto_seed_agents: bool = False) -> Scenario:
    """A scenario as it was asked for on the command line; a run's own works too."""
    from surefoot.town.scenarios.scenario import Scenario, load_scenario

    path = Path(name)
    if (path / "run.json").is_file():
        from surefoot.train.rundir.rundir import RunDir

        return Scenario.from_json(RunDir(path).read_header()["spec"]["env_kwargs"]["scenario"])
    return load_scenario(name, auto_seed_agents=auto_seed_agents)


def _tell(dataset: ReplayDataset) -> int:
    known = dataset.baseline_metrics
    print(
        f"{len(dataset.source)} samples in {len(dataset)} batches are fit to learn from; --train-ppo learns from them"
    )
    for name in (
        "timesteps",
        "reward_mean",
        "reward_sum",
        "log_prob_mean",
        "rivalry_max_max",
        "rivalry_avoid_count_mean",
    ):
        if name in known:
            print(f"  {name:<26} {known[name]:.4g}")
    return 0
