"""`surefoot town watch` and `film`: a town before your eyes, in the terminal or as a file."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from surefoot.cli.options import at_least_one, run_directory
from surefoot.cli.usage import Usage
from surefoot.cli.verbs.town.train import load

if TYPE_CHECKING:
    from surefoot.town.sim.town_loop import Frame, SimulationLoop

Subject = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="RUN|SCENARIO")]
SIGNS = {"shower": "w", "fridge": "f", "stove": "s", "bed": "b", "bench": "n", "cafe": "c", "grocer": "g", "desk": "d"}


@dataclass(frozen=True, kw_only=True)
class TownWatchArgs:
    """Watch one town run: the map, queues, needs, rivalries, and what happens in words. Ctrl-C ends it.

        surefoot town watch queue_conflict
        surefoot town watch queues --fps 4

    Letters in capitals are people (the first of their name), small ones are things; a quarrel is red.
    """

    subject: Subject
    """A run of `surefoot town train`, whose policy then acts, or a scenario."""
    policy: str = "script"
    """For a scenario: script, random or idle."""
    ticks: int | None = None
    """How long (default: an episode)."""
    fps: float = 8.0
    """Ticks a second; 0 for as fast as it goes."""
    seed: int | None = None
    """Which day."""
    stochastic: bool = False
    """A run's policy samples its actions instead of taking the likeliest."""
    plain: bool = False
    """Only the stories, a line each."""
    runs: Path | None = None
    """Where runs are kept."""

    def run(self) -> int:
        from surefoot.town.view.story import sentence

        at_least_one(ticks=self.ticks)
        loop = open_loop(self.subject, self.policy, self.seed, self.stochastic, self.runs)
        ticks = self.ticks or loop.world.scenario.ticks
        pause = 1.0 / self.fps if self.fps > 0 else 0.0
        if self.plain or not sys.stdout.isatty():
            scenario = loop.world.scenario
            for frame in loop.run(ticks):
                for happening in frame.happened:
                    print(f"{frame.tick:5}  {sentence(happening, scenario)}")
            needs = zip(scenario.agents, loop.world.now.needs[0].round(2).tolist(), strict=True)
            print(f"after {ticks} ticks: " + " ".join(f"{resident.id} {levels}" for resident, levels in needs))
            return 0
        from rich.live import Live

        told: list[str] = []
        with Live(refresh_per_second=30, screen=False) as live:
            for frame in loop.run(ticks):
                live.update(view(loop, frame, told))
                time.sleep(pause)
        return 0


def view(loop: SimulationLoop, frame: Frame, told: list[str]) -> Any:
    """One tick as something rich can print; `told` keeps the last stories."""
    from rich.columns import Columns
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    from surefoot.town.view.story import sentence

    scenario, state = loop.world.scenario, frame.state
    told += [f"{frame.tick:4} {sentence(h, scenario)}" for h in frame.happened if h.kind != "use_done"]
    del told[:-10]
    table = Table(box=None, pad_edge=False)
    for name in ("", "hunger", "hygiene", "energy", "money", "rivalry", "does"):
        table.add_column(name)
    for i, resident in enumerate(scenario.agents):
        bars = [Text("█" * round(float(x) * 8), style="green" if x > 0.4 else "red") for x in state.needs[0, i]]
        table.add_row(
            resident.id, *bars, f"{state.wallet[0, i]:.2f}", f"{state.rivalry[0, i].max():.2f}", _does(loop, frame, i)
        )
    title = f"{scenario.name}  tick {frame.tick}"
    return Columns(
        [Panel(_map(loop, frame), title=title), Panel(table), Panel("\n".join(told) or "quiet", title="stories")]
    )


def _map(loop: SimulationLoop, frame: Frame) -> Any:
    from rich.text import Text

    layout, state = loop.world.layout, frame.state
    quarrels = {h.object for h in frame.happened if h.kind == "queue_conflict"}
    sheet = [["." if open_ else "#" for open_ in row] for row in layout.floor.reshape(layout.height, layout.width)]
    styles: dict[tuple[int, int], str] = {}
    for k, thing in enumerate(layout.scenario.objects):
        x, y = thing.position
        sheet[y][x] = SIGNS.get(thing.type, "o")
        styles[y, x] = "bold white on red" if k in quarrels else "black on yellow" if state.user[0, k] >= 0 else "cyan"
    for a, resident in enumerate(layout.scenario.agents):
        if state.here[0, a]:
            y, x = divmod(int(state.cell[0, a]), layout.width)
            sheet[y][x] = resident.id[0].upper()
            styles[y, x] = "bold red" if state.queued[0, a] >= 0 else "bold green"
    text = Text()
    for y, row in enumerate(sheet):
        for x, sign in enumerate(row):
            text.append(sign, styles.get((y, x), "dim"))
        text.append("\n")
    return text


def _does(loop: SimulationLoop, frame: Frame, agent: int) -> str:
    state, things = frame.state, loop.world.scenario.objects
    if not state.here[0, agent]:
        return "gone"
    if state.using[0, agent] >= 0:
        return things[int(state.using[0, agent])].id
    if state.queued[0, agent] >= 0:
        return f"waits for {things[int(state.queued[0, agent])].id}"
    return loop.world.scenario.actions[int(frame.action[agent])]


@dataclass(frozen=True, kw_only=True)
class TownFilmArgs:
    """Make a film of one town: a GIF, an MP4, or a page that a browser plays (nothing else is needed for it).

    surefoot town film queues -o queues.html
    """

    subject: Subject
    """A run of `surefoot town train`, or a scenario."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("town.html")
    """.html, .gif or .mp4."""
    policy: str = "script"
    """For a scenario: script, random or idle."""
    ticks: int | None = None
    """How long (default: an episode)."""
    fps: int = 8
    """Ticks a second of a GIF or MP4."""
    seed: int | None = None
    """Which day."""
    stochastic: bool = False
    """A run's policy samples its actions."""
    runs: Path | None = None
    """Where runs are kept."""

    def run(self) -> int:
        if self.output.suffix not in (".html", ".gif", ".mp4"):
            raise Usage(f"{self.output} is of no kind known here; a film is .html, .gif or .mp4")
        at_least_one(ticks=self.ticks, fps=self.fps)
        loop = open_loop(self.subject, self.policy, self.seed, self.stochastic, self.runs)
        self.output.parent.mkdir(parents=True, exist_ok=True)
        ticks = self.ticks or loop.world.scenario.ticks
        if self.output.suffix == ".html":
            self._write_page(loop, ticks)
        else:
            self._write_film(loop, ticks)
        print(f"{self.output}: {self.output.stat().st_size / 1e3:,.0f} kB")
        return 0

    def _write_film(self, loop: SimulationLoop, ticks: int) -> None:
        from surefoot.errors import EnvError
        from surefoot.town.view.picture import picture
        from surefoot.train.render import write_gif

        def pictures() -> list[Any]:
            return [picture(loop.world.layout, frame.state, 0, loop.world.happened) for frame in loop.run(ticks)]

        if self.output.suffix == ".gif":
            write_gif(pictures(), self.output, fps=self.fps)
            return
        try:
            import imageio.v2 as imageio
            import imageio_ffmpeg  # noqa: F401  # pyright: ignore[reportUnusedImport, reportMissingImports]
        except ImportError as why:
            raise EnvError(
                'an MP4 needs imageio-ffmpeg: pip install "surefoot[town]"; .gif and .html need nothing'
            ) from why
        imageio.mimwrite(self.output, pictures(), fps=self.fps, macro_block_size=1)  # pyright: ignore[reportArgumentType]

    def _write_page(self, loop: SimulationLoop, ticks: int) -> None:
        from surefoot.town.view import story
        from surefoot.town.view.story import scene, shot

        layout = loop.world.layout
        film = {"scene": scene(layout), "shots": [shot(frame, layout) for frame in loop.run(ticks)]}
        # A story cannot end the script it is written into.
        text = json.dumps(film, separators=(",", ":")).replace("</", "<\\/")
        page = (Path(story.__file__).with_name("page.html")).read_text(encoding="utf-8")
        self.output.write_text(page.replace("{{FILM}}", text), encoding="utf-8")


def open_loop(subject: str, policy: str, seed: int | None, stochastic: bool, runs: Path | None) -> SimulationLoop:
    """A running town: a run's policy, or a behaviour in a scenario."""
    from surefoot.town.scenarios.scenario import shipped
    from surefoot.town.sim.town_loop import SimulationLoop

    if subject in shipped() or subject.endswith((".yaml", ".yml")):
        return SimulationLoop(load(subject), policy, seed=seed)
    from surefoot.cli.verbs.runs import load_policy
    from surefoot.town.scenarios.scenario import Scenario
    from surefoot.town.training.run import PolicyRuntime

    training, _ = load_policy(run_directory(subject, runs), "latest", None)
    kwargs = training.spec.env_kwargs
    if "scenario" not in kwargs:
        raise Usage(f"{subject} is no run of a town; give one, or a scenario: {', '.join(shipped())}")
    scenario = Scenario.from_json(kwargs["scenario"])
    runtime = PolicyRuntime(training.policy, seed=seed or 0, deterministic=not stochastic)
    chosen = training.spec.seed + 1 if seed is None else seed
    return SimulationLoop(scenario, runtime, seed=chosen, variant=kwargs.get("variant"))
