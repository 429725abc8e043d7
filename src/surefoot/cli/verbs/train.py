"""`surefoot train` and `surefoot resume`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from surefoot.cli.usage import Usage
from surefoot.errors import ConfigError, TelemetryError

if TYPE_CHECKING:
    from surefoot.cli.dashboard.history import Header
    from surefoot.telemetry.doctor.live import Attending
    from surefoot.telemetry.writer import Mirror
    from surefoot.train.collect.replay_cycles import Cycles
    from surefoot.train.run import Run
    from surefoot.train.rundir.recorder import Keep
    from surefoot.train.spec import RunSpec
    from surefoot.train.training import Training, WorldMaker

Display = Literal["auto", "live", "lines", "quiet"]
Pairs = Annotated[tuple[str, ...], tyro.conf.UseAppendAction]
Track = Annotated[
    tuple[Literal["tensorboard", "wandb", "trackio", "mlflow"], ...],
    tyro.conf.UseAppendAction,
    tyro.conf.arg(metavar="tensorboard|wandb|trackio|mlflow"),
]


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
    set: Annotated[Pairs, tyro.conf.arg(aliases=["-s"], metavar="KEY=VALUE")] = ()
    """Change a setting: --set lr=3e-4 --set net_arch=128,128. SB3's, CleanRL's and the zoo's names work too."""
    config: Path | None = None
    """A YAML file of settings: flat, or in RL Zoo's form with one entry an env."""
    preset: str | None = None
    """Start from this preset instead of the env family's; sb3 for Stable-Baselines3's defaults."""
    from_run: Annotated[str | None, tyro.conf.arg(name="from", metavar="RUN")] = None
    """Begin with the weights of this run, cloned or trained; counters, schedules and the optimiser start fresh."""
    env_arg: Annotated[Pairs, tyro.conf.arg(metavar="KEY=VALUE")] = ()
    """An argument for the env's constructor: --env-arg gravity=5.0"""
    backend: Literal["auto", "surefoot", "gymnasium", "envpool"] = "auto"
    """Whose env: auto takes our own vectorised one for the classics, and Atari with the details of PPO."""
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
    runs: Path | None = None
    """Where runs are kept (default $SUREFOOT_RUNS or ./runs)."""
    display: Display = "auto"
    """live dashboard, plain lines, or quiet."""
    tensorboard: bool = False
    """Mirror the numbers to TensorBoard, in the run's directory."""
    track: Track = ()
    """Mirror the numbers to another tool while training, offline, in the run's directory; may be given several times."""
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
        keep = _keep(self.record, self.minibatches)
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
            from surefoot.train.rundir.rundir import find_run

            adopt(training, find_run(self.from_run, runs_root(self.runs)).path)
        directory = new_run_dir(spec.env, spec.seed, root=runs_root(self.runs), name=self.name)
        mirrors = partial(_mirrors, directory.path, self.track, tensorboard=self.tensorboard, ppo_log=self.ppo_log)
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
        """The world asked for and the whole spec, before anything is written."""
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
        env_kwargs = {key: _literal(value) for key, value in pairs(self.env_arg, "--env-arg").items()}
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
    runs: Path | None = None
    """Where runs are kept (default $SUREFOOT_RUNS or ./runs)."""
    display: Display = "auto"
    """live dashboard, plain lines, or quiet."""
    tensorboard: bool = False
    """Mirror the numbers to TensorBoard, in the run's directory."""
    track: Track = ()
    """Mirror the numbers to another tool while training, offline, in the run's directory; may be given several times."""
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
        from surefoot.train.rundir.rundir import find_run, runs_root

        pin_threads(self.threads)
        directory = find_run(self.run_name, runs_root(self.runs))
        if self.verify:
            from surefoot.train.rundir.resume_check import verify_resume

            outcome = verify_resume(directory, updates=self.verify_updates)
            print("\n".join(outcome.lines))
            return 0 if outcome.identical else 1
        keep = _keep(self.record, self.minibatches)
        spec, make = opened(directory.path, self.env, total_steps=self.steps, workers=self.workers)
        if spec.learners > 1:
            from surefoot.cli.verbs.ddp import resume_together

            return resume_together(self, directory, spec, make)
        training = training_of(spec, make)
        run, _ = resume_run(
            directory,
            total_steps=self.steps,
            training=training,
            command=["surefoot", *sys.argv[1:]],
            mirrors=_mirrors(directory.path, self.track, tensorboard=self.tensorboard, ppo_log=self.ppo_log),
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


def attending(at_length: bool, off: bool, *, act: bool = False) -> Attending | None:
    """The doctor who looks on, unless nobody wants one."""
    from surefoot.telemetry.doctor.live import Attending

    if off and (at_length or act):
        raise Usage(f"--no-doctor and {'--doctor' if at_length else '--act'} were both given; leave one of them out")
    return None if off else Attending(at_length=at_length)


def open_training(path: Path, env: str | None) -> Training:
    """The training a run directory describes, with fresh weights; `env` names code that only the user may name."""
    spec, make = opened(path, env)
    return training_of(replace(spec, rollouts="here", overlap=False, learners=1), make)


def opened(
    path: Path, env: str | None, *, total_steps: int | None = None, workers: str | None = None
) -> tuple[RunSpec, WorldMaker]:
    """What a run directory describes, and what makes its worlds."""
    from surefoot.envs.ids import is_code
    from surefoot.train.rundir.rundir import RunDir
    from surefoot.train.spec import RunSpec
    from surefoot.train.worlds import env_maker

    spec = RunSpec.from_json(RunDir(path).read_spec())
    if total_steps is not None:
        spec = replace(spec, total_steps=total_steps)
    if workers is not None:
        spec = replace(spec, collect=spec.collect.replace(workers=workers))
    if is_code(spec.env) and env is None:
        raise ConfigError(f"{path.name} was trained on {spec.env}, which is code: say so again with --env {spec.env}")
    return spec, env_maker(env or spec.env, backend=spec.backend, env_kwargs=spec.env_kwargs or None)


def training_of(spec: RunSpec, make: WorldMaker, *, insecure: bool = False) -> Training:
    """A training of this process, or one whose rollouts are made elsewhere."""
    if spec.rollouts == "here":
        from surefoot.train.training import Training

        if spec.overlap:
            raise Usage("--overlap needs workers to walk meanwhile: say --rollouts local:2")
        return Training(spec, make=make)
    from surefoot.scale.backend_spec import Placement
    from surefoot.scale.remote_training import FarTraining

    placement = Placement.parse(spec.rollouts, insecure=insecure)
    return FarTraining(spec, make=make, placement=replace(placement, worlds="surefoot.train.worlds:spec_maker"))


def drive(run: Run, display: Display, *, mirrors: Callable[[], list[Mirror]] = list, act: bool = False) -> int:
    """Train a run to its end behind a screen, and leave its report. With `act`, the doctor may take it back and on."""
    from surefoot.cli.dashboard.screen import make_screen
    from surefoot.train.diagnose.auto_recover import Patient
    from surefoot.train.interrupt import GentleStop

    screen = make_screen(display)
    patient = Patient(run, act=act, mirrors=mirrors, command=["surefoot", *sys.argv[1:]])
    ending = "finished"
    try:
        with GentleStop() as stop:
            screen.open(header_of(run))
            for moment in patient.moments(lambda: stop.requested):
                screen.show(moment)
            if stop.requested or patient.given_up:
                ending = "stopped by the doctor" if patient.given_up else "interrupted"
        patient.run.close("finished" if ending == "finished" else "interrupted", patient.given_up or "")
    except BaseException as error:
        screen.close(f"stopped by {type(error).__name__}")
        from surefoot.errors import Diverged

        patient.run.close("diverged" if isinstance(error, Diverged) else "error", str(error))
        raise
    _leave_report(patient.run)
    screen.close(ending)
    return 1 if patient.given_up else 0


def _leave_report(run: Run) -> None:
    from surefoot.telemetry.export.page import write_report

    if run.recorder.path is None:
        return
    write_report(run.directory.path, run.directory.report)


def header_of(run: Run) -> Header:
    """What the screen says before the first update."""
    import math

    from surefoot.cli.dashboard.history import Header
    from surefoot.data.spaces import Discrete, MultiDiscrete
    from surefoot.envs.make import backend_of
    from surefoot.envs.workers.process_world import ProcessWorld

    spec, world = run.spec, run.training.world
    whose = {"surefoot": "surefoot's own", "envpool": "EnvPool's"}.get(backend_of(world), "Gymnasium's")
    entropy = None
    if isinstance(world.action, Discrete):
        entropy = math.log(world.action.n)
    elif isinstance(world.action, MultiDiscrete):
        entropy = sum(math.log(n) for n in world.action.nvec)
    shared = f" in {world.workers + 1} processes" if isinstance(world, ProcessWorld) else ""
    return Header(
        env=spec.env,
        run_dir=str(run.directory.path),
        settings=brief(spec),
        seed=spec.seed,
        path_note=path_note(run.training),
        world_note=f"{whose} {spec.env}, {world.num_envs} env{'s' if world.num_envs > 1 else ''}{shared}",
        preset=spec.preset,
        target=TARGETS.get(spec.env),
        target_kl=spec.ppo.target_kl,
        max_grad_norm=spec.ppo.max_grad_norm,
        max_entropy=entropy,
        recorded=run.recorder.path is not None,
    )


def path_note(training: Training | Cycles) -> str:
    """Which implementation learns, and why it is that one."""
    import torch

    learner = training.learner
    if learner.path == "native":
        return f"native path: {learner.path_reason}"
    threads = torch.get_num_threads()
    return f"torch path on {training.device.type}, {threads} thread{'s' if threads > 1 else ''}: {learner.path_reason}"


TARGETS = {
    "CartPole-v1": 475.0,
    "CartPole-v0": 195.0,
    "Acrobot-v1": -100.0,
    "MountainCar-v0": -110.0,
    "MountainCarContinuous-v0": 90.0,
    "Pendulum-v1": -200.0,
    "LunarLander-v3": 200.0,
    "BipedalWalker-v3": 300.0,
}
"""Mean returns at which a task is usually called solved; a line in the picture, nothing else."""


def brief(spec: RunSpec) -> dict[str, str]:
    """The settings people ask for first."""
    ppo = spec.ppo.to_json()
    names = ("lr", "gamma", "lam", "clip", "epochs", "minibatch_size", "steps", "envs", "ent_coef")
    shown = {name: _short(ppo[name]) for name in names}
    return shown | {"net": "x".join(str(width) for width in spec.net.hidden) + f" {spec.net.activation}"}


def _short(value: Any) -> str:
    """A knob's value in a word or two; a linear schedule as the zoo writes it."""
    match value:
        case {"kind": "linear", "start": start, "end": end}:
            return f"lin_{start:g}" + (f"_{end:g}" if end else "")
        case {"kind": kind}:
            return f"{kind} schedule"
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def print_spec(spec: RunSpec) -> None:
    """Everything a run would be made from, as YAML that --config reads."""
    import yaml

    plain = spec.to_json()
    print(f"# {spec.env}, preset {spec.preset}, {spec.total_steps:,} steps in {spec.total_updates:,} updates")
    flat = {"total_steps": spec.total_steps, **plain["ppo"], **plain["net"], **plain["collect"]}
    print(yaml.safe_dump(flat, sort_keys=False), end="")


def pairs(given: tuple[str, ...], flag: str) -> dict[str, str]:
    """{"lr": "3e-4"} from ("lr=3e-4",)."""
    found: dict[str, str] = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise Usage(f"{flag} {shlex.quote(text)} is not KEY=VALUE, such as {flag} lr=3e-4")
        if key in found:
            raise Usage(f"{flag} {key} is given twice; give it once")
        found[key] = value
    return found


def _literal(text: str) -> Any:
    import yaml

    return yaml.safe_load(text)


def _keep(record: str, minibatches: float) -> Keep:
    from surefoot.train.rundir.recorder import Keep

    if not 0.0 <= minibatches <= 1.0:
        raise Usage(f"--minibatches is {minibatches:g}; it is a share of the gradient steps, 0 (none) to 1 (all)")
    return Keep(record={"on": True, "off": False}.get(record), minibatch_rate=minibatches)


def _mirrors(path: Path, track: Track, *, tensorboard: bool, ppo_log: Path | None) -> list[Mirror]:
    from surefoot.compat.townlet.record_writer import FlatMirror
    from surefoot.telemetry.export.trackers import open_mirror

    tools = list(dict.fromkeys(track))
    if tensorboard and "tensorboard" not in tools:
        tools.append("tensorboard")
    try:
        mirrors = [open_mirror(tool, path / tool, run=path.name) for tool in tools]
    except TelemetryError:
        with suppress(OSError):  # a package is missing: leave no empty run behind
            path.rmdir()
        raise
    return [*mirrors, FlatMirror(ppo_log)] if ppo_log is not None else mirrors
