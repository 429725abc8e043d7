"""`surefoot train` and `surefoot resume`."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from surefoot.cli.drive import attending, drive, open_mirrors, print_spec, recording
from surefoot.cli.options import Backend, Display, Pairs, Runs, Settings, Track, pairs, run_directory
from surefoot.cli.usage import Usage

if TYPE_CHECKING:
    from surefoot.train.spec import RunSpec
    from surefoot.train.training import Training, WorldMaker


@dataclass(frozen=True, kw_only=True)
class TrainArgs:
    """Train a policy with PPO.

        surefoot train CartPole-v1 --name first
        surefoot train Pendulum-v1 --steps 100_000 --set lr=5e-4 --set clip_range=0.1
        surefoot train CartPole-v1 --seeds 5 --jobs 2
        surefoot train my_env:Guess --config best.yaml

    Settings come from the preset of the env's family, then --config, then --set; what was chosen is printed and kept
    in the run's run.json. `surefoot knobs` lists every setting, `surefoot presets` the shipped ones.
    Ctrl-C finishes the update, saves and stops; `surefoot resume RUN` goes on to the last bit.
    """

    env: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="ENV")]
    """A Gymnasium id such as CartPole-v1 or HalfCheetah-v5, or an env of your own: module:function, or
    ./library.so for one in C."""
    steps: Annotated[int | None, tyro.conf.arg(aliases=["-n"])] = None
    """Env steps to train for; the preset says if you do not."""
    seed: int | None = None
    """Everything random follows from it; 0 if neither you nor --config says."""
    set: Settings = ()
    """Change a setting: --set lr=3e-4 --set net_arch=128,128. SB3's, CleanRL's and the zoo's names work too."""
    config: Path | None = None
    """A YAML file of settings: flat, or in RL Zoo's form with one entry an env."""
    preset: str | None = None
    """Start from this preset instead of the env family's; sb3 for Stable-Baselines3's defaults."""
    from_run: Annotated[str | None, tyro.conf.arg(name="from", metavar="RUN")] = None
    """Begin with the weights of this run, cloned or trained; counters, schedules and the optimiser start fresh."""
    env_arg: Annotated[Pairs, tyro.conf.arg(metavar="KEY=VALUE")] = ()
    """An argument for the env's constructor: --env-arg gravity=5.0"""
    backend: Backend = "auto"
    workers: Annotated[str | None, tyro.conf.arg(metavar="auto|0|N")] = None
    """Processes that step Gymnasium's envs besides this one, with the same digits (default: auto measures what pays)."""
    rollouts: Annotated[str, tyro.conf.arg(metavar="here|local:N|ray:N@ADDRESS")] = "here"
    """Who makes the rollouts: this process, N processes of this machine, or N actors of a Ray cluster (ADDRESS is auto,
    host:port, or here to start Ray on this machine). The streams are shared out; the batch stays the same."""
    overlap: bool = False
    """Workers of --rollouts walk while the learner learns; every rollout is then one policy old."""
    insecure_cluster: bool = False
    """Let --rollouts use a Ray cluster that asks for no token: whoever reaches it can run code there."""
    ddp: bool = False
    """Learn with all processes that torchrun started: torchrun --nproc-per-node 2 -m surefoot train ENV --ddp"""
    seeds: int = 1
    """Train this many seeds (seed, seed + 1, …), then print IQM and interval over them."""
    jobs: int = 1
    """Seeds trained side by side, each in a process of its own."""
    eval_every: int | None = None
    """Env steps between evaluations (default: ten in a run; 0 for none)."""
    eval_episodes: int | None = None
    """Episodes of each evaluation, deterministic, on seeds of their own (default 10)."""
    checkpoint_every: int | None = None
    """Env steps between checkpoints (default: twenty in a run)."""
    name: str | None = None
    """The run's name; default <env>-<date>-<time>-s<seed>."""
    runs: Runs = None
    display: Display = "auto"
    tensorboard: bool = False
    """Mirror the numbers to TensorBoard, in the run's directory."""
    track: Track = ()
    record: Literal["on", "off"] = "on"
    """off: write no record at all, and so no report; the tools of --track still get every number."""
    minibatches: Annotated[float, tyro.conf.arg(metavar="RATE")] = 0.0
    """Share of the gradient steps that get a line of their own in the record, evenly spaced: 0 for none, 1 for all."""
    ppo_log: Annotated[Path | None, tyro.conf.arg(aliases=["--ppo-ndjson"])] = None
    """Also write the flat form of telemetry 1.1 to this file, one object an epoch; an old file is gone on with."""
    doctor: bool = False
    """Tell what the doctor finds at length as it comes, advice too. It looks on in any case, and writes into the record."""
    no_doctor: bool = False
    """Do not look on."""
    act: bool = False
    """Let the doctor act on a grave finding: go back to the checkpoint before it, and on with the settings it names."""
    threads: int = 1
    """Threads for torch. More than one rarely helps small networks, and changes the last digits."""
    dry_run: bool = False
    """Print the settings that would be used, and stop."""

    def run(self) -> int:
        from surefoot.train.rundir.rundir import new_run_dir, runs_root

        if self.seeds < 1 or self.jobs < 1:
            raise Usage(f"seeds is {self.seeds} and jobs is {self.jobs}; both must be at least 1")
        keep = recording(self.record, self.minibatches)
        make, spec = self.resolve()
        if self.act:
            from surefoot.train.diagnose.auto_recover import KEPT

            spec = replace(spec, keep_checkpoints=max(KEPT, spec.keep_checkpoints))
        if self.dry_run:
            print_spec(spec)
            return 0
        if self.seeds > 1:
            from surefoot.cli.verbs.seeds import train_seeds

            return train_seeds(self, spec)
        from surefoot.train.device import pin_threads
        from surefoot.train.run import create_run

        pin_threads(self.threads)
        if self.ddp:
            from surefoot.cli.verbs.ddp import train_together

            return train_together(self, spec, make)
        training = training_of(spec, make, insecure=self.insecure_cluster)
        if self.from_run is not None:
            from surefoot.train.rundir.initialize_from import adopt

            adopt(training, run_directory(self.from_run, self.runs).path)
        directory = new_run_dir(spec.env, spec.seed, root=runs_root(self.runs), name=self.name)
        mirrors = partial(open_mirrors, directory.path, self.track, tensorboard=self.tensorboard, ppo_log=self.ppo_log)
        run = create_run(
            directory,
            spec,
            training=training,
            command=["surefoot", *sys.argv[1:]],
            mirrors=mirrors(),
            doctor=attending(self.doctor, self.no_doctor, act=self.act),
            keep=keep,
        )
        if self.act:
            run.save()  # a place to go back to, should the first updates go wrong
        return drive(run, self.display, mirrors=mirrors, act=self.act)

    def resolve(self) -> tuple[WorldMaker, RunSpec]:
        """Return the maker of the worlds and the complete spec; nothing is written."""
        import yaml

        from surefoot.train.config import read_settings
        from surefoot.train.spec import make_spec
        from surefoot.train.worlds import env_maker

        settings: dict[str, Any] = read_settings(self.config, self.env) if self.config else {}
        preset, total = settings.pop("preset", None), settings.pop("total_steps", None)
        settings |= pairs(self.set, "--set")
        if self.seed is not None:
            settings["seed"] = self.seed
        if self.workers is not None:
            settings["workers"] = self.workers
        env_kwargs = {key: yaml.safe_load(value) for key, value in pairs(self.env_arg, "--env-arg").items()}
        make = env_maker(self.env, backend=self.backend, env_kwargs=env_kwargs or None)
        probe = make(1)
        probe.close()
        spec = make_spec(
            self.env,
            probe.action,
            preset_name=self.preset or preset,
            settings=settings,
            total_steps=total if self.steps is None else self.steps,
            env_kwargs=env_kwargs or None,
            backend=self.backend,
            eval_every=self.eval_every,
            eval_episodes=self.eval_episodes,
            checkpoint_every=self.checkpoint_every,
            rollouts=self.rollouts,
            overlap=self.overlap,
        )
        if probe.num_envs > 1:  # an env with several agents: envs counts its copies
            from surefoot.train.assemble import with_streams

            spec = with_streams(spec, settings, spec.ppo.envs * probe.num_envs)
        return make, spec


@dataclass(frozen=True, kw_only=True)
class ResumeArgs:
    """Go on with a run from its newest whole checkpoint.

        surefoot resume first
        surefoot resume first --steps 200_000
        surefoot resume first --verify

    For worlds whose state can be saved (all of ours, Gymnasium's classics, MuJoCo, any env with get_state and
    set_state) the resumed run gives the same digits as one that was never stopped; --verify proves it.
    """

    run_name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="RUN")]
    """A run's directory or name."""
    steps: Annotated[int | None, tyro.conf.arg(aliases=["-n"])] = None
    """Train until this many env steps in all; schedules are stretched to it."""
    verify: bool = False
    """Do not go on: train a few updates straight and through a save, a new process and a load, and compare the bits."""
    verify_updates: int = 6
    """Updates of each way."""
    env: str | None = None
    """The module:function or library the run was trained on; code is never taken from a run's files."""
    workers: Annotated[str | None, tyro.conf.arg(metavar="auto|0|N")] = None
    """Processes that step Gymnasium's envs besides this one (default: as the run was told); the digits stay the same."""
    runs: Runs = None
    display: Display = "auto"
    tensorboard: bool = False
    """Mirror the numbers to TensorBoard, in the run's directory."""
    track: Track = ()
    record: Literal["as-before", "on", "off"] = "as-before"
    """Whether to write a record: as-before does what the run was started with."""
    minibatches: Annotated[float, tyro.conf.arg(metavar="RATE")] = 0.0
    """Share of the gradient steps that get a line of their own in the record, evenly spaced: 0 for none, 1 for all."""
    ppo_log: Annotated[Path | None, tyro.conf.arg(aliases=["--ppo-ndjson"])] = None
    """Also write the flat form of telemetry 1.1 to this file, one object an epoch; an old file is gone on with."""
    doctor: bool = False
    """Tell what the doctor finds at length, as in `surefoot train`."""
    no_doctor: bool = False
    """Do not look on."""
    threads: int = 1
    """Threads for torch; as many as before, if the digits matter."""

    def run(self) -> int:
        from surefoot.train.device import pin_threads
        from surefoot.train.run import resume_run
        from surefoot.train.rundir.open_run import read_run

        pin_threads(self.threads)
        directory = run_directory(self.run_name, self.runs)
        if self.verify:
            from surefoot.train.rundir.resume_check import verify_resume

            outcome = verify_resume(directory, updates=self.verify_updates)
            print("\n".join(outcome.lines))
            return 0 if outcome.identical else 1
        keep = recording(self.record, self.minibatches)
        spec, make = read_run(directory.path, self.env, total_steps=self.steps, workers=self.workers)
        if spec.learners > 1:
            from surefoot.cli.verbs.ddp import resume_together

            return resume_together(self, directory, spec, make)
        training = training_of(spec, make)
        run, _ = resume_run(
            directory,
            total_steps=self.steps,
            training=training,
            command=["surefoot", *sys.argv[1:]],
            mirrors=open_mirrors(directory.path, self.track, tensorboard=self.tensorboard, ppo_log=self.ppo_log),
            doctor=attending(self.doctor, self.no_doctor),
            keep=keep,
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
    """Return a training of this process, or one whose rollouts are made by workers."""
    if spec.rollouts == "here":
        from surefoot.train.training import Training

        if spec.overlap:
            raise Usage("--overlap needs workers to walk meanwhile: say --rollouts local:2")
        return Training(spec, make=make)
    from surefoot.scale.backend import BackendSpec
    from surefoot.scale.remote_training import RemoteTraining

    placement = BackendSpec.parse(spec.rollouts, insecure=insecure)
    return RemoteTraining(spec, make=make, placement=replace(placement, worlds="surefoot.train.worlds:spec_maker"))
