"""`surefoot eval`, `play`, `report` and `runs`: looking at what was trained."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from surefoot.cli.options import CheckpointName, Json, PrintJson, Run, Runs, Stochastic, run_directory
from surefoot.cli.usage import Usage
from surefoot.errors import EnvError

if TYPE_CHECKING:
    from surefoot.envs.api import World
    from surefoot.train.rundir.rundir import RunDir
    from surefoot.train.training import Training


@dataclass(frozen=True, kw_only=True)
class EvalArgs:
    """Play whole episodes with a run's policy and print the score.

        surefoot eval first --episodes 100
        surefoot eval first --checkpoint best --stochastic

    Episodes come from seeds that training never used. The policy is deterministic unless --stochastic.
    """

    run_name: Run
    episodes: int = 100
    """How many."""
    checkpoint: CheckpointName = "latest"
    stochastic: Stochastic = False
    seed: int | None = None
    """Seed of the evaluation (default: the run's own evaluation seed plus one)."""
    env: str | None = None
    """Another env with the same spaces, or the module:function or library the run was trained on."""
    as_json: PrintJson = False
    runs: Runs = None

    def run(self) -> int:
        from surefoot.train.evaluate import EVAL_SEED_OFFSET, play

        directory = run_directory(self.run_name, self.runs)
        training, step = load_policy(directory, self.checkpoint, self.env)
        seed = training.spec.seed + EVAL_SEED_OFFSET + 1 if self.seed is None else self.seed
        world = training.make(max(1, min(self.episodes, 25)))
        played = play(
            training.policy, world, self.episodes, seed=seed, deterministic=not self.stochastic, device=training.device
        )
        world.close()
        numbers = {
            "run": directory.name,
            "env": training.spec.env,
            "checkpoint": step,
            "episodes": self.episodes,
            "deterministic": not self.stochastic,
            "seed": seed,
            "mean": played.mean,
            "std": played.std,
            "min": min(played.returns),
            "max": max(played.returns),
            "length": sum(played.lengths) / len(played.lengths),
        }
        if self.as_json:
            print(json.dumps({**numbers, "returns": played.returns}))
        else:
            print(
                f"{directory.name}, checkpoint {step}: {played.mean:.1f} ± {played.std:.1f} over {self.episodes} "
                f"{'sampled' if self.stochastic else 'deterministic'} episodes "
                f"(min {numbers['min']:.1f}, max {numbers['max']:.1f}, mean length {numbers['length']:.0f})"
            )
        return 0


@dataclass(frozen=True, kw_only=True)
class PlayArgs:
    """Watch a run's policy: in the terminal if it is one, and as a GIF.

    surefoot play first
    surefoot play first --episodes 3 --out first.gif
    """

    run_name: Run
    episodes: int = 1
    """How many to play, one after the other."""
    checkpoint: CheckpointName = "latest"
    out: Path | None = None
    """Where the GIF goes (default: episode.gif in the run's directory)."""
    stochastic: Stochastic = False
    seed: int = 12345
    """Seed of the episodes."""
    fps: int = 30
    """Pictures a second."""
    longest: int = 1000
    """Stop an episode after this many steps."""
    env: str | None = None
    """The module:function or library the run was trained on."""
    runs: Runs = None

    def run(self) -> int:
        import sys

        from surefoot.train.render import film, show_in_terminal, write_gif

        directory = run_directory(self.run_name, self.runs)
        training, step = load_policy(directory, self.checkpoint, self.env)
        world = _with_pictures(training.spec.env, training.make, training.spec.env_kwargs)
        frames, returns = film(
            training.policy,
            world,
            self.episodes,
            seed=self.seed,
            deterministic=not self.stochastic,
            longest=self.longest,
        )
        world.close()
        if sys.stdout.isatty():
            show_in_terminal(frames, fps=self.fps)
        out = write_gif(frames, self.out or directory.path / "episode.gif", fps=self.fps)
        told = ", ".join(f"{value:.1f}" for value in returns)
        print(f"{directory.name}, checkpoint {step}: return {told} in {len(frames)} pictures → {out}")
        return 0


@dataclass(frozen=True, kw_only=True)
class ReportArgs:
    """Write report.html, one page that needs neither server nor network, and print a summary.

    Return, the numbers of PPO with their healthy bands, findings on the time axis, where the time went, settings. Drag
    over a curve to look closer. Several runs share a page: their returns are drawn over each other, the first in full.

        surefoot telemetry view walk
        surefoot telemetry view walk-s0 walk-s1 walk-s2 -o compare.html

    Exit codes: 0 written, 2 there is no such run.
    """

    names: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="RUN")] = ()
    """Runs' directories or names, or .ndjson and .jsonl files, of telemetry 1.x too."""
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """Where the page goes (default: report.html beside the first run's record)."""
    as_json: Json = False
    """Print JSON: where the page is."""
    runs: Runs = None

    def run(self) -> int:
        from surefoot.cli.verbs.telemetry.telemetry import record_of
        from surefoot.telemetry.export.page import summary_lines, write_report

        if not self.names:
            raise Usage("no RUN given; `surefoot telemetry view RUN` writes its report.html")
        first, *others = [record_of(name, self.runs) for name in self.names]
        page = write_report(first, self.out, others=others)
        if self.as_json:
            print(json.dumps({"runs": [str(first), *map(str, others)], "page": str(page)}))
            return 0
        for source in (first, *others):
            print("\n".join(summary_lines(source)))
        print(f"→ {page}")
        return 0


@dataclass(frozen=True, kw_only=True)
class RunsArgs:
    """List runs, the oldest first.

    surefoot runs
    surefoot runs --json
    """

    runs: Runs = None
    as_json: PrintJson = False

    def run(self) -> int:
        from surefoot.train.rundir.run_summary import row_of
        from surefoot.train.rundir.rundir import list_runs, runs_root

        root = runs_root(self.runs)
        rows = [row_of(run) for run in list_runs(root)]
        if self.as_json:
            print(json.dumps(rows))
            return 0
        if not rows:
            print(f"no runs under {root}; `surefoot train CartPole-v1` makes one")
            return 0
        from rich.console import Console
        from rich.table import Table

        table = Table(box=None, pad_edge=False)
        for column in ("run", "env", "state", "steps", "score", "finding"):
            table.add_column(
                column, justify="right" if column in ("steps", "score") else "left", no_wrap=column == "run"
            )
        for row in rows:
            score = "–" if row["score"] is None else f"{row['score']:.1f}"
            table.add_row(row["run"], row["env"], row["state"], f"{row['env_steps']:,}", score, row["finding"] or "–")
        Console(highlight=False).print(table)
        return 0


def load_policy(directory: RunDir, checkpoint: str, env: str | None) -> tuple[Training, int]:
    """Return a training with a checkpoint's weights in it, and the checkpoint's number; print what was skipped."""
    from surefoot.train.rundir.open_run import load_run_policy

    training, loaded = load_run_policy(directory, checkpoint, env)
    for sentence in loaded.skipped:
        print(sentence)
    return training, loaded.step


def _with_pictures(env: str, make: Any, env_kwargs: dict[str, Any]) -> World:
    """One stream that can draw itself: ours do, Gymnasium's must be asked when they are made."""
    from surefoot.envs.gym.atari import is_atari
    from surefoot.envs.ids import is_code
    from surefoot.envs.make import backend_of, make_world

    world: World = make(1)
    if backend_of(world) == "surefoot" or is_code(env):
        return world
    world.close()
    if is_atari(env):  # trained with another backend: the same game, seen alike
        return make_world(env, 1)
    try:
        return make_world(env, 1, backend="gymnasium", env_kwargs={**env_kwargs, "render_mode": "rgb_array"})
    except EnvError as why:
        raise EnvError(f"{env} cannot be drawn here: {why}") from why
