"""`surefoot eval`, `play`, `report` and `runs`: look at trained policies."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import tyro

from surefoot.cli.options import CheckpointName, CodeEnv, Run, Stochastic, run_directory
from surefoot.cli.usage import Usage, as_usage
from surefoot.errors import EnvError, SurefootError

if TYPE_CHECKING:
    from surefoot.envs.api import World
    from surefoot.train.rundir.rundir import RunDir
    from surefoot.train.training import Training


@dataclass(frozen=True, kw_only=True)
class EvalArgs:
    """Evaluate a run's policy over complete episodes and print its score.

        surefoot eval first --episodes 100
        surefoot eval first --checkpoint best --stochastic

    Episodes use seeds that training did not use. The policy is deterministic unless --stochastic is given.
    """

    run_name: Run
    episodes: int = 100
    """Episodes to play."""
    checkpoint: CheckpointName = "latest"
    stochastic: Stochastic = False
    seed: int | None = None
    """Seed of the episodes (default: the run's evaluation seed plus one)."""
    env: str | None = None
    """Evaluate in another environment with the same spaces; required for runs trained on module:function or a C library."""
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        from surefoot.train.evaluate import EVAL_SEED_OFFSET, play

        directory = run_directory(self.run_name)
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


# Steps after which an episode that does not end is stopped, and the speed of pictures: that of Gymnasium's classic control.
LONGEST, FRAMES_PER_SECOND = 1000, 30


@dataclass(frozen=True, kw_only=True)
class PlayArgs:
    """Play episodes with a run's policy: show them in the terminal and save them as a GIF.

    surefoot play first
    surefoot play first --episodes 3 --out first.gif
    """

    run_name: Run
    episodes: int = 1
    """Episodes to play."""
    checkpoint: CheckpointName = "latest"
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """File of the GIF (default: episode.gif in the run's directory)."""
    stochastic: Stochastic = False
    seed: int = 12345
    """Seed of the episodes."""
    env: CodeEnv = None

    def run(self) -> int:
        from surefoot.train.render import MissingPillow, film, show_in_terminal, write_gif

        directory = run_directory(self.run_name)
        training, step = load_policy(directory, self.checkpoint, self.env)
        world = _renderable(self.env or training.spec.env, training.make, training.spec.env_kwargs)
        frames, returns = film(
            training.policy,
            world,
            self.episodes,
            seed=self.seed,
            deterministic=not self.stochastic,
            longest=LONGEST,
        )
        world.close()
        if sys.stdout.isatty():
            show_in_terminal(frames, fps=FRAMES_PER_SECOND)
        try:
            saved = f"→ {write_gif(frames, self.out or directory.path / 'episode.gif', fps=FRAMES_PER_SECOND)}"
        except MissingPillow as error:
            if self.out is not None:
                raise
            saved = f"(no GIF: {error})"
        text = ", ".join(f"{value:.1f}" for value in returns)
        print(f"{directory.name}, checkpoint {step}: return {text} in {len(frames)} frames {saved}")
        return 0


@dataclass(frozen=True, kw_only=True)
class ReportArgs:
    """Write report.html, one page that works without a server or a network, and print a summary.

        surefoot report walk
        surefoot report walk-s0 walk-s1 walk-s2 -o compare.html

    The page shows returns, PPO metrics with their normal ranges, findings on the time axis, where the time was spent, and
    the settings. Drag over a curve to zoom in. Several runs share one page: their returns are drawn in one plot, and the
    first run is shown in full. Exit codes: 0 written, 2 the run does not exist.
    """

    names: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="RUN")] = ()
    """Directories or names of runs, or .ndjson and .jsonl files, also of telemetry 1.x."""
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """File of the page (default: report.html beside the telemetry of the first run)."""
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        from surefoot.cli.verbs.telemetry.telemetry import record_of
        from surefoot.telemetry.export.page import summary_lines, write_report

        if not self.names:
            raise Usage("no RUN given; `surefoot report RUN` writes its report.html")
        first, *others = [record_of(name) for name in self.names]
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
    """List runs with their environment, state, steps, score and most serious finding; the oldest first.

        surefoot runs
        surefoot runs cartpole state=finished sort=score limit=20
        surefoot runs "walk-s?" --json

    Rows of runs that do not change are kept in .runs-index.json in the directory of runs; it can be deleted.
    """

    words: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="WORD")] = ()
    """Part or pattern of a run's name or environment, or COLUMN=VALUE; sort=COLUMN or sort=-COLUMN; limit=N, the last N."""
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        from surefoot.train.rundir.run_index import RunIndex, select
        from surefoot.train.rundir.rundir import runs_root

        root = runs_root()
        with as_usage():
            every = RunIndex(root).rows()
            rows = select(every, self.words)
        if self.as_json:
            print(json.dumps(rows))
        elif not every:
            print(f"no runs under {root}; `surefoot train CartPole-v1` creates one")
        elif not rows:
            print(f"none of {len(every)} runs under {root} is selected by {' '.join(self.words)}")
        else:
            # A pipe gets one complete line per run.
            width = shutil.get_terminal_size().columns if sys.stdout.isatty() else 1_000
            print("\n".join(_table(rows, width)))
        return 0


def _table(rows: list[dict[str, Any]], width: int) -> list[str]:
    """Return the lines of the table of runs, at most `width` wide; rich's own table takes seconds for thousands of rows."""
    from rich.cells import cell_len, set_cell_size

    lines = [("run", "env", "state", "steps", "score", "finding")]
    for row in rows:
        score = "–" if row["score"] is None else f"{row['score']:.1f}"
        lines.append((row["run"], row["env"], row["state"], f"{row['env_steps']:,}", score, row["finding"] or "–"))
    wide = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    text: list[str] = []
    for line in lines:
        cells = [
            (cell.rjust if at in (3, 4) else cell.ljust)(wide[at] + len(cell) - cell_len(cell))
            for at, cell in enumerate(line)
        ]
        full = "  ".join(cells).rstrip()
        text.append(full if cell_len(full) <= width else set_cell_size(full, width - 1) + "…")
    return text


def load_policy(directory: RunDir, checkpoint: str, env: str | None) -> tuple[Training, int]:
    """Return a training with the weights of a checkpoint, and the checkpoint's number; print what was skipped."""
    from surefoot.train.rundir.open_run import load_run_policy

    training, loaded = load_run_policy(directory, checkpoint, env)
    for sentence in loaded.skipped:
        print(sentence)
    return training, loaded.step


def _renderable(env: str, make: Any, env_kwargs: dict[str, Any]) -> World:
    """Return one environment that can be rendered; Gymnasium needs a render_mode when it creates one."""
    from surefoot.envs.gym.atari import is_atari
    from surefoot.envs.gym.single_envs import EnvsWorld
    from surefoot.envs.ids import is_code
    from surefoot.envs.make import backend_of, make_world
    from surefoot.train.worlds import env_maker

    world: World = make(1)
    if backend_of(world) == "surefoot":
        return world
    if is_code(env):
        if not isinstance(world, EnvsWorld) or "rgb_array" not in world.envs[0].metadata.get("render_modes", ()):
            return world
        try:
            drawn = env_maker(env, env_kwargs={**env_kwargs, "render_mode": "rgb_array"})(1)
        except SurefootError:  # a function without a render_mode, or a library in C
            return world
        world.close()
        return drawn
    world.close()
    if is_atari(env):  # EnvPool cannot render; this one has the same game and preprocessing
        return make_world(env, 1)
    try:
        return make_world(env, 1, backend="gymnasium", env_kwargs={**env_kwargs, "render_mode": "rgb_array"})
    except EnvError as why:
        raise EnvError(f"{env} cannot be rendered here: {why}") from why
