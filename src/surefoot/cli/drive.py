"""Train a run behind a progress display; shared by `train`, `resume`, `town train` and `prompts train`."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot.cli.options import Display, DoctorMode, Track, command_line
from surefoot.cli.usage import Usage
from surefoot.errors import TelemetryError

if TYPE_CHECKING:
    from surefoot.cli.dashboard.history import RunHeader
    from surefoot.telemetry.doctor.doctor import LiveDoctor
    from surefoot.telemetry.writer import Mirror
    from surefoot.train.collect.replay_cycles import Cycles
    from surefoot.train.progress_event import EvalPoint
    from surefoot.train.run import Run
    from surefoot.train.rundir.recorder import RecordingOptions
    from surefoot.train.spec import RunSpec
    from surefoot.train.training import Training

# Mean returns at which a task counts as solved: the reward thresholds of Gymnasium's registry, and customary values
# where it has none (Pendulum). They are only drawn as a line in the plot of returns.
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

STOPPING = "stopping after this update, with a checkpoint; press Ctrl-C again to stop immediately, without one"


def drive(run: Run, display: Display, *, mirrors: Callable[[], list[Mirror]] = list, act: bool = False) -> int:
    """Train a run to its end behind a progress display and write its report; return the exit code.

    With `act`, the doctor may return to a checkpoint and change settings.
    """
    from surefoot.cli.dashboard.screen import make_screen
    from surefoot.errors import Diverged
    from surefoot.telemetry.export.page import write_report
    from surefoot.train.diagnose.auto_recover import RecoveringRun
    from surefoot.train.interrupt import GentleStop

    screen = make_screen(display)
    recovering = RecoveringRun(run, act=act, mirrors=mirrors, command=command_line())
    ending = "finished"
    try:
        with GentleStop(announce=STOPPING) as stop:
            screen.open(header_of(run))
            for moment in recovering.moments(lambda: stop.requested):
                screen.show(moment)
            if stop.requested or recovering.stop_reason:
                ending = "stopped by the doctor" if recovering.stop_reason else "interrupted"
        recovering.run.close("finished" if ending == "finished" else "interrupted", recovering.stop_reason or "")
    except BaseException as error:
        screen.close(f"stopped by {type(error).__name__}")
        recovering.run.close("diverged" if isinstance(error, Diverged) else "error", str(error))
        raise
    if recovering.run.recorder.path is not None:
        write_report(recovering.run.directory.path, recovering.run.directory.report)
    screen.close(ending)
    for verdict in recovering.verdicts:
        print(f"doctor: {verdict}")
    return 1 if recovering.stop_reason else 0


def live_doctor(mode: DoctorMode) -> LiveDoctor | None:
    """Return the doctor that observes a run; None if it is off."""
    from surefoot.telemetry.doctor.doctor import LiveDoctor

    return None if mode == "off" else LiveDoctor(at_length=mode == "full")


def telemetry_options(telemetry: str, minibatch_rate: float) -> RecordingOptions:
    """Return which telemetry a run writes; `as-before` leaves that to the resumed run."""
    from surefoot.train.rundir.recorder import RecordingOptions

    if not 0.0 <= minibatch_rate <= 1.0:
        raise Usage(f"--record-minibatches is {minibatch_rate:g}; it is a share of the gradient steps, 0 to 1")
    return RecordingOptions(record={"on": True, "off": False}.get(telemetry), minibatch_rate=minibatch_rate)


def open_mirrors(path: Path, track: Track, ppo_log: Path | None) -> list[Mirror]:
    """Return the mirrors of the telemetry in `path`: the tools of --track, and the flat file of --ppo-log."""
    from surefoot.compat.townlet.record_writer import FlatMirror
    from surefoot.telemetry.export.trackers import open_mirror

    try:
        mirrors = [open_mirror(tool, path / tool, run=path.name) for tool in dict.fromkeys(track)]
    except TelemetryError:
        with suppress(OSError):  # a package is missing: do not leave an empty run behind
            path.rmdir()
        raise
    return [*mirrors, FlatMirror(ppo_log)] if ppo_log is not None else mirrors


def header_of(run: Run) -> RunHeader:
    """Return what the display shows before the first update."""
    from surefoot.cli.dashboard.history import RunHeader
    from surefoot.data.spaces import Discrete, MultiDiscrete
    from surefoot.envs.gym.mujoco import MujocoWorld
    from surefoot.envs.make import backend_of
    from surefoot.envs.workers.process_world import ProcessWorld

    spec, world = run.spec, run.training.world
    source = {"surefoot": "surefoot's", "envpool": "EnvPool's"}.get(backend_of(world), "Gymnasium's")
    entropy = None
    if isinstance(world.action, Discrete):
        entropy = math.log(world.action.n)
    elif isinstance(world.action, MultiDiscrete):
        entropy = sum(math.log(n) for n in world.action.nvec)
    processes = f" in {world.workers + 1} processes" if isinstance(world, ProcessWorld) else ""
    if isinstance(world, MujocoWorld) and world.threads:
        processes = f" in {world.threads + 1} threads"
    return RunHeader(
        env=spec.env,
        run_dir=str(run.directory.path),
        settings=brief(spec),
        seed=spec.seed,
        path_note=path_note(run.training),
        world_note=f"{source} {spec.env}, {world.num_envs} env{'s' if world.num_envs > 1 else ''}{processes}",
        preset=spec.preset,
        target=TARGETS.get(spec.env),
        target_kl=spec.ppo.target_kl,
        max_grad_norm=spec.ppo.max_grad_norm,
        max_entropy=entropy,
        recorded=run.recorder.path is not None,
        earlier=earlier_evaluations(run) if run.training.env_steps else (),
    )


def earlier_evaluations(run: Run) -> tuple[EvalPoint, ...]:
    from surefoot.errors import SurefootError
    from surefoot.telemetry.reader import read_records
    from surefoot.telemetry.schema import EvaluationRecord
    from surefoot.train.progress_event import EvalPoint

    points, best = list[EvalPoint](), -math.inf
    with suppress(SurefootError):  # a run without a record has none
        for record in read_records(run.directory.path):
            if not isinstance(record, EvaluationRecord) or record.return_mean is None:
                continue
            numbers = (record.return_std, record.return_min, record.return_max)
            std, low, high = (math.nan if x is None else x for x in numbers)
            mean, count = record.return_mean, record.episodes
            points.append(
                EvalPoint(
                    env_steps=record.env_steps,
                    mean=mean,
                    std=std,
                    minimum=low,
                    maximum=high,
                    episodes=count,
                    is_best=mean > best,
                )
            )
            best = max(best, mean)
    return tuple(points)


def print_longer(spec: RunSpec) -> None:
    """Print a warning if complete rollouts make a run more than a tenth longer than its steps."""
    rollout, asked = spec.ppo.batch_size, spec.total_steps
    trained = -(-asked // rollout) * rollout
    if trained > 1.1 * asked:
        size = f"a rollout is {spec.ppo.envs} envs × {spec.ppo.rollout_steps:,} steps"
        message = (
            f"this run trains {trained:,} steps instead of {asked:,}: {size}; --set rollout_steps=N makes it shorter"
        )
        print(message, file=sys.stderr)


def path_note(training: Training | Cycles) -> str:
    """Return which implementation learns, and the reason."""
    import torch

    learner = training.learner
    if learner.path == "native":
        return f"native path: {learner.path_reason}"
    threads = torch.get_num_threads()
    return f"torch path on {training.device.type}, {threads} thread{'s' if threads > 1 else ''}: {learner.path_reason}"


def brief(spec: RunSpec) -> dict[str, str]:
    """Return the settings that the display shows, as short texts; a linear schedule in RL Zoo's notation."""
    from surefoot.learn.schedule_text import as_zoo_text

    ppo = spec.ppo.to_json()

    def text(value: Any) -> str:
        if isinstance(value, dict):
            value = f"{value['kind']} schedule" if value["kind"] != "linear" else as_zoo_text(value)
        return f"{value:g}" if isinstance(value, float) else str(value)

    names = ("lr", "gamma", "lam", "clip", "epochs", "minibatch_size", "rollout_steps", "envs", "ent_coef")
    net = "x".join(str(width) for width in spec.net.hidden) + f" {spec.net.activation}"
    return {name: text(ppo[name]) for name in names} | {"net": net}


def print_spec(spec: RunSpec) -> None:
    """Print all settings of a run as YAML that --config reads."""
    import yaml

    plain = spec.to_json()
    print(f"# {spec.env}, preset {spec.preset}, {spec.total_steps:,} steps in {spec.total_updates:,} updates")
    flat = {"total_steps": spec.total_steps, **plain["ppo"], **plain["net"], **plain["collect"]}
    print(yaml.safe_dump(flat, sort_keys=False), end="")
