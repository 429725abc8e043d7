"""`surefoot bench`: what this machine does on an env, where the time goes, and what would change that."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from surefoot.cli.options import Backend, OptionalSeed, Pairs, PrintJson, Settings
from surefoot.cli.usage import Usage
from surefoot.cli.verbs.train import TrainArgs

if TYPE_CHECKING:
    from surefoot.train.diagnose.speed import Measured
    from surefoot.train.spec import RunSpec

BAR = 40
COLOURS = {"env": "green", "policy": "cyan", "update": "magenta", "rest": "bright_black"}


@dataclass(frozen=True, kw_only=True)
class BenchArgs:
    """Train for a few seconds and tell how fast it goes here: steps a second, where the time goes, what to change.

        surefoot bench CartPole-v1
        surefoot bench HalfCheetah-v5 --seconds 10 --set envs=16

    Takes the settings that `surefoot train` takes, and keeps nothing. One update of warm-up is not counted.
    """

    env: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="ENV")] = "CartPole-v1"
    """A Gymnasium id, or an env of your own: module:function, or ./library.so for one in C."""
    seconds: float = 5.0
    """How long to measure; at least one whole update."""
    steps: Annotated[int | None, tyro.conf.arg(aliases=["-n"])] = None
    """Measure this many env steps instead."""
    seed: OptionalSeed = None
    set: Settings = ()
    """Change a setting: --set envs=64 --set net_arch=256,256 --set path=torch"""
    config: Path | None = None
    """A YAML file of settings, as for train."""
    preset: str | None = None
    """Start from this preset instead of the env family's."""
    env_arg: Annotated[Pairs, tyro.conf.arg(metavar="KEY=VALUE")] = ()
    """An argument for the env's constructor."""
    backend: Backend = "auto"
    threads: int = 1
    """Threads for torch."""
    as_json: PrintJson = False

    def run(self) -> int:
        from surefoot.train.device import pin_threads
        from surefoot.train.diagnose.speed import advice, measure
        from surefoot.train.training import Training

        if not self.seconds > 0:
            raise Usage(f"seconds is {self.seconds:g}; it must be positive")
        if self.steps is not None and self.steps < 1:
            raise Usage(f"steps is {self.steps}; it must be positive")
        asked = TrainArgs(
            env=self.env,
            seed=self.seed,
            set=self.set,
            config=self.config,
            preset=self.preset,
            env_arg=self.env_arg,
            backend=self.backend,
        )
        make, spec = asked.resolve()
        pin_threads(self.threads)
        training = Training(spec, make=make)
        try:
            with _progress(spec.env) as watch:
                measured = measure(training, seconds=self.seconds, steps=self.steps, watch=watch)
        finally:
            training.close()
        told = advice(measured, training)
        if self.as_json:
            print(json.dumps({**measured.as_dict(), "advice": told}))
        else:
            _print(measured, spec, told)
        return 0


@contextmanager
def _progress(env: str) -> Generator[Callable[[float], None]]:
    """A bar on stderr while it is a terminal, a sentence where it is not."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    if not sys.stderr.isatty():
        print(f"measuring {env} …", file=sys.stderr)
        yield lambda share: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(BAR), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(f"measuring {env}", total=1.0)
        yield lambda share: progress.update(task, completed=share)


def _print(measured: Measured, spec: RunSpec, told: list[str]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    whose = "surefoot's own" if measured.backend == "surefoot" else "Gymnasium's"
    net = "×".join(str(width) for width in spec.net.hidden)
    got = measured.cpu_seconds / measured.wall_seconds
    console.print(Text(f"{spec.env}, {whose}", "bold"), end="")
    console.print(
        f": {_many(measured.envs, 'env')} × {_many(spec.ppo.rollout_steps, 'step')}, {_many(spec.ppo.epochs, 'epoch')} of "
        f"minibatches of {spec.ppo.minibatch_size_for(spec.ppo.batch_size)[0]}, {net} {spec.net.activation}, "
        f"preset {spec.preset}"
    )
    console.print(
        f"{measured.steps_per_second:,.0f} steps a second, {measured.steps_per_cpu_second:,.0f} per CPU-second "
        f"({got:.0%} of a core, {_many(measured.threads, 'thread')}; {_many(measured.steps, 'step')}, "
        f"{_many(measured.updates, 'update')}, {_many(measured.gradient_steps, 'gradient step')} "
        f"in {measured.wall_seconds:.1f} s)"
    )
    for part in COLOURS:
        filled = round(BAR * measured.share(part))
        line = Text(f"  {part:<7} ")
        line.append("█" * filled, COLOURS[part])
        line.append("░" * (BAR - filled), "bright_black")
        line.append(f" {measured.share(part):>4.0%}")
        console.print(line)
    console.print(f"  path    {measured.path}: {measured.path_reason}")
    peak = "" if measured.peak_mb is None else f"{measured.peak_mb:,.0f} MB at most; "
    console.print(
        f"  machine {peak}a matrix product reaches {measured.sgemm_gflops:.1f} GFLOP/s, "
        f"the update {measured.update_gflops:.2g}"
    )
    for sentence in told:
        console.print(f"→ {sentence}")


def _many(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
