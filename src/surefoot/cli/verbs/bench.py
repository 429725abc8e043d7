"""`surefoot bench`: measure the speed of training, where the time is spent, and what would make it faster."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import tyro

from surefoot.cli.options import EnvArgs, EnvBackend, EnvName, Settings, at_least_one
from surefoot.cli.usage import Usage
from surefoot.cli.verbs.train import TrainArgs

if TYPE_CHECKING:
    from surefoot.train.diagnose.speed import Measured
    from surefoot.train.spec import RunSpec

BAR = 40
"""Characters of a bar: with the labels it fits into 80 columns."""
COLOURS = {"env": "green", "policy": "cyan", "update": "magenta", "rest": "bright_black"}


@dataclass(frozen=True, kw_only=True)
class BenchArgs:
    """Train for a few seconds and print the speed: steps per second, where the time is spent, what to change.

        surefoot bench CartPole-v1
        surefoot bench HalfCheetah-v5 --seconds 10 --set envs=16

    Accepts the settings of `surefoot train` and writes no run. The first update is a warm-up and is not measured.
    """

    env: EnvName = "CartPole-v1"
    seconds: float = 5.0
    """Duration of the measurement; at least one complete update."""
    steps: Annotated[int | None, tyro.conf.arg(aliases=["-n"])] = None
    """Measure this many environment steps instead."""
    set: Settings = ()
    """Change a setting, such as envs=64, net_arch=256,256 or path=torch; repeatable."""
    config: Path | None = None
    """YAML file of settings, as for `surefoot train`."""
    preset: str | None = None
    """Preset to start from instead of the environment's."""
    env_arg: EnvArgs = ()
    env_backend: EnvBackend = "auto"
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        from surefoot.train.device import pin_threads
        from surefoot.train.diagnose.speed import advice, measure
        from surefoot.train.training import Training

        if not self.seconds > 0:
            raise Usage(f"--seconds is {self.seconds:g}; it must be positive")
        at_least_one(steps=self.steps)
        args = TrainArgs(
            env=self.env,
            set=self.set,
            config=self.config,
            preset=self.preset,
            env_arg=self.env_arg,
            env_backend=self.env_backend,
        )
        make, spec = args.resolve()
        pin_threads()
        training = Training(spec, make=make)
        try:
            with _progress(spec.env) as watch:
                measured = measure(training, seconds=self.seconds, steps=self.steps, watch=watch)
        finally:
            training.close()
        sentences = advice(measured, training)
        if self.as_json:
            print(json.dumps({**measured.as_dict(), "advice": sentences}))
        else:
            _print(measured, spec, sentences)
        return 0


@contextmanager
def _progress(env: str) -> Generator[Callable[[float], None]]:
    """Show a progress bar on stderr if it is a terminal, one line if it is not."""
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


def _print(measured: Measured, spec: RunSpec, advice: list[str]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    source = "surefoot's" if measured.backend == "surefoot" else "Gymnasium's"
    net = "×".join(str(width) for width in spec.net.hidden)
    cpu_share = measured.cpu_seconds / measured.wall_seconds
    console.print(Text(f"{spec.env}, {source}", "bold"), end="")
    console.print(
        f": {_many(measured.envs, 'env')} × {_many(spec.ppo.rollout_steps, 'step')}, {_many(spec.ppo.epochs, 'epoch')} of "
        f"minibatches of {spec.ppo.minibatch_size_for(spec.ppo.batch_size)[0]}, {net} {spec.net.activation}, "
        f"preset {spec.preset}"
    )
    console.print(
        f"{measured.steps_per_second:,.0f} steps per second, {measured.steps_per_cpu_second:,.0f} per CPU-second "
        f"({cpu_share:.0%} of a core, {_many(measured.threads, 'thread')}; {_many(measured.steps, 'step')}, "
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
    peak = "" if measured.peak_mb is None else f"{measured.peak_mb:,.0f} MB peak; "
    console.print(
        f"  machine {peak}a matrix product reaches {measured.sgemm_gflops:.1f} GFLOP/s, "
        f"the update {measured.update_gflops:.2g}"
    )
    for sentence in advice:
        console.print(f"→ {sentence}")


def _many(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
