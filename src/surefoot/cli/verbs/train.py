"""`surefoot train` and `surefoot resume`."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from surefoot.cli import options
from surefoot.cli.drive import drive, live_doctor, open_mirrors, print_longer, print_spec, telemetry_options
from surefoot.cli.options import command_line, pairs, run_directory
from surefoot.cli.usage import Usage

if TYPE_CHECKING:
    from surefoot.train.rundir.rundir import RunDir
    from surefoot.train.spec import RunSpec
    from surefoot.train.spec_worlds import WorldMaker
    from surefoot.train.training import Training


@dataclass(frozen=True, kw_only=True)
class TrainArgs:
    """Train a policy with PPO.

        surefoot train CartPole-v1 --name first
        surefoot train Pendulum-v1 --steps 100_000 --set lr=5e-4 --set clip_range=0.1
        surefoot train CartPole-v1 --seeds 5 --jobs 2
        surefoot train my_env:Guess --config best.yaml

    Settings are taken from the preset of the environment, then from --config, then from --set; later ones win. They are
    printed and stored in the run's run.json. `surefoot knobs` lists all settings, `surefoot presets` the presets.
    Ctrl-C finishes the current update, saves a checkpoint and stops; `surefoot resume RUN` continues, bit-exactly if the
    environment can save its state.
    """

    env: options.EnvName
    steps: Annotated[int | None, tyro.conf.arg(aliases=["-n"])] = None
    """Environment steps to train for in total (default: the preset's)."""
    seed: options.OptionalSeed = None
    set: options.Settings = ()
    """Change a setting, such as lr=3e-4 or net_arch=128,128; repeatable. Names of SB3, CleanRL and RL Zoo are accepted. Also
    eval_every=STEPS (0: never), eval_episodes=10, checkpoint_every=STEPS, workers=auto|0|N (processes that step
    environments), overlap=true (collect with --rollout-workers during the update), insecure_cluster=true (a Ray cluster
    without token authentication: anyone who can reach it can run code on it) and record_minibatches=RATE."""
    config: Path | None = None
    """YAML file of settings: flat, or in the format of RL Zoo with one entry per environment."""
    preset: str | None = None
    """Preset to start from instead of the environment's; sb3 has the defaults of Stable-Baselines3."""
    from_run: Annotated[str | None, tyro.conf.arg(name="from", metavar="RUN")] = None
    """Start with the weights of this run. Counters, schedules and the optimizer start fresh."""
    env_arg: options.EnvArgs = ()
    env_backend: options.EnvBackend = "auto"
    rollout_workers: Annotated[str, tyro.conf.arg(metavar="here|local:N|ray:N@ADDRESS")] = "here"
    """Where rollouts are collected: in this process, in N local processes, or by N actors of a Ray cluster (ADDRESS is
    auto, host:port, or here to start Ray on this machine). The environments are divided among them; the batch is the same."""
    ddp: bool = False
    """Divide learning among the processes of torchrun: torchrun --nproc-per-node 2 -m surefoot train ENV --ddp"""
    seeds: int = 1
    """Number of seeds to train (seed, seed + 1, …); prints the interquartile mean of their scores and its interval."""
    jobs: int = 1
    """Seeds to train in parallel, each in its own process."""
    name: options.NewRunName = None
    display: options.Display = "auto"
    track: options.Track = ()
    telemetry: Literal["on", "off"] = "on"
    """Whether to write telemetry.ndjson, and from it the report. The tools of --track get all metrics in any case."""
    ppo_log: options.PpoLog = None
    doctor: options.DoctorMode = "on"
    dry_run: bool = False
    """Print the settings that would be used, and exit."""

    def run(self) -> int:
        from surefoot.train.rundir.rundir import new_run_dir

        options.at_least_one(seeds=self.seeds, jobs=self.jobs)
        of_run, _ = options.split_settings(options.RunOptions, self.set)
        recording, act = telemetry_options(self.telemetry, of_run.record_minibatches), self.doctor == "act"
        make, spec = self.resolve()
        if act:
            from surefoot.train.diagnose.auto_recover import RETAINED_CHECKPOINTS

            spec = replace(spec, keep_checkpoints=max(RETAINED_CHECKPOINTS, spec.keep_checkpoints))
        if self.dry_run:
            print_spec(spec)
            return 0
        print_longer(spec)
        if self.seeds > 1:
            from surefoot.cli.verbs.seeds import train_seeds

            return train_seeds(self, spec)
        from surefoot.train.device import pin_threads
        from surefoot.train.run import create_run

        pin_threads()
        if self.ddp:
            return _train_ddp(self, spec, make)
        training = training_of(spec, make, insecure=of_run.insecure_cluster)
        if self.from_run is not None:
            from surefoot.train.rundir.initialize_from import adopt

            adopt(training, run_directory(self.from_run).path)
        directory = new_run_dir(spec.env, spec.seed, name=self.name)
        mirrors = partial(open_mirrors, directory.path, self.track, self.ppo_log)
        run = create_run(
            directory,
            spec,
            training=training,
            command=command_line(),
            mirrors=mirrors(),
            doctor=live_doctor(self.doctor),
            recording=recording,
        )
        if act:
            run.save()  # a checkpoint to return to if the first updates go wrong
        return drive(run, self.display, mirrors=mirrors, act=act)

    def resolve(self) -> tuple[WorldMaker, RunSpec]:
        """Return the factory of the environments and the complete spec; write nothing."""
        import yaml

        from surefoot.envs.ids import is_library
        from surefoot.train.config import read_settings
        from surefoot.train.spec import make_spec
        from surefoot.train.worlds import env_maker

        settings: dict[str, Any] = read_settings(self.config, self.env) if self.config else {}
        preset, total = settings.pop("preset", None), settings.pop("total_steps", None)
        of_run, of_set = options.split_settings(options.RunOptions, self.set)
        settings |= of_set
        if self.seed is not None:
            settings["seed"] = self.seed
        env_kwargs = {key: yaml.safe_load(value) for key, value in pairs(self.env_arg, "--env-arg").items()}
        if is_library(self.env):
            print(
                f"surefoot train: {self.env} is native code; it runs in this process with your rights", file=sys.stderr
            )
        make = env_maker(self.env, backend=self.env_backend, env_kwargs=env_kwargs or None)
        probe = make(1)
        probe.close()
        spec = make_spec(
            self.env,
            probe.action,
            preset_name=self.preset or preset,
            settings=settings,
            total_steps=total if self.steps is None else self.steps,
            env_kwargs=env_kwargs or None,
            backend=self.env_backend,
            eval_every=of_run.eval_every,
            eval_episodes=of_run.eval_episodes,
            checkpoint_every=of_run.checkpoint_every,
            rollouts=self.rollout_workers,
            overlap=of_run.overlap,
        )
        if probe.num_envs > 1:  # an environment with several agents: `envs` counts its copies
            from surefoot.train.assemble import with_streams

            spec = with_streams(spec, settings, spec.ppo.envs * probe.num_envs)
        return make, spec


@dataclass(frozen=True, kw_only=True)
class ResumeArgs:
    """Continue a run from its newest complete checkpoint.

        surefoot resume first
        surefoot resume first --steps 200_000
        surefoot resume first --verify 6

    If the environment can save and restore its state (Surefoot's, Gymnasium's classic control, MuJoCo, and any environment
    with get_state and set_state), the resumed run gives the same digits as one that was never stopped. --verify checks
    that for a run: it trains some updates without a stop, and again through a checkpoint and a new process, and compares
    the bits. Exit code 1 if they differ.
    """

    run_name: options.Run
    steps: Annotated[int | None, tyro.conf.arg(aliases=["-n"])] = None
    """Train until this many environment steps in total; schedules are stretched to it."""
    verify: Annotated[int, tyro.conf.arg(metavar="UPDATES")] = 0
    """Do not continue; check that resuming is exact, with this many updates (6 if you give no number)."""
    env: options.CodeEnv = None
    env_workers: options.EnvWorkers = None
    display: options.Display = "auto"
    track: options.Track = ()
    telemetry: Literal["as-before", "on", "off"] = "as-before"
    """Whether to write telemetry.ndjson; as-before does what the run was started with."""
    record_minibatches: options.RecordMinibatches = 0.0
    ppo_log: options.PpoLog = None
    doctor: options.DoctorMode = "on"

    def run(self) -> int:
        from surefoot.train.device import pin_threads
        from surefoot.train.run import resume_run
        from surefoot.train.rundir.open_run import read_run

        if self.doctor == "act":
            raise Usage("--doctor act works from the start of a run only; pass it to `surefoot train`")
        pin_threads()
        directory = run_directory(self.run_name)
        if self.verify:
            from surefoot.train.rundir.resume_check import verify_resume

            outcome = verify_resume(directory, updates=self.verify, env=self.env)
            print("\n".join(outcome.lines))
            return 0 if outcome.identical else 1
        recording = telemetry_options(self.telemetry, self.record_minibatches)
        spec, make = read_run(directory.path, self.env, total_steps=self.steps, workers=self.env_workers)
        if spec.learners > 1:
            return _run_ddp(self, directory, spec, make, resume=True)
        run, _ = resume_run(
            directory,
            total_steps=self.steps,
            training=training_of(spec, make),
            command=command_line(),
            mirrors=open_mirrors(directory.path, self.track, self.ppo_log),
            doctor=live_doctor(self.doctor),
            recording=recording,
        )
        if run.training.finished:
            run.close("finished")
            print(
                f"{directory.name} is finished ({run.training.env_steps:,} steps); "
                f"`surefoot resume {directory.name} --steps {2 * run.spec.total_steps}` would make it longer"
            )
            return 0
        return drive(run, self.display)


def training_of(spec: RunSpec, make: WorldMaker, *, insecure: bool = False) -> Training:
    """Return a training that collects rollouts in this process, or by the workers that the spec names."""
    if spec.rollouts == "here":
        from surefoot.train.training import Training

        if spec.overlap:
            raise Usage("overlap needs workers that collect during the update; add --rollout-workers local:2")
        return Training(spec, make=make)
    from surefoot.scale.backend import BackendSpec
    from surefoot.scale.remote_training import RemoteTraining

    placement = BackendSpec.parse(spec.rollouts, insecure=insecure)
    return RemoteTraining(spec, make=make, placement=replace(placement, worlds="surefoot.train.worlds:spec_maker"))


def _train_ddp(args: TrainArgs, spec: RunSpec, make: WorldMaker) -> int:
    """Train in every process of torchrun; after a restart by torchrun, continue from the newest checkpoint."""
    from surefoot.train.rundir.rundir import RunDir, new_run_dir, runs_root

    if args.name is None:
        raise Usage("--ddp needs --name, so that restarted processes find the run again")
    root = runs_root()
    restarted = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
    directory = RunDir(root / args.name)
    if int(os.environ.get("RANK", "0")) == 0 and not restarted:
        directory = new_run_dir(spec.env, spec.seed, root=root, name=args.name)
    return _run_ddp(args, directory, spec, make, resume=restarted and (directory.checkpoints / "latest").exists())


def _run_ddp(args: TrainArgs | ResumeArgs, directory: RunDir, spec: RunSpec, make: WorldMaker, *, resume: bool) -> int:
    from surefoot.learn.checkpoint.checkpoint import load_checkpoint
    from surefoot.scale.process_group import join_group
    from surefoot.scale.shared_training import SharedTraining
    from surefoot.train.run import create_run, resume_run

    group = join_group()
    try:
        resume = bool(group.broadcast(int(resume)))  # the first process decides for all
        training = SharedTraining(spec, group, make=make)
        if group.rank > 0:
            if resume:
                training.set_state(load_checkpoint(directory.checkpoints).parts)
            training.follow()
            return 0
        command, doctor = command_line(), live_doctor(args.doctor)
        if resume:
            run, _ = resume_run(directory, training=training, command=command, doctor=doctor)
        else:
            run = create_run(directory, training.spec, training=training, command=command, doctor=doctor)
        return drive(run, args.display)
    finally:
        group.close()
