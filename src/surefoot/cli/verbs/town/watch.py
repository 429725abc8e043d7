"""`surefoot town watch` and `film`: show a town in the terminal, or save it as a film."""

from __future__ import annotations

import difflib
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from surefoot.cli.options import Stochastic, at_least_one, run_directory
from surefoot.cli.usage import Usage
from surefoot.cli.verbs.town.samples import load
from surefoot.errors import RunNotFound

if TYPE_CHECKING:
    from surefoot.town.sim.town_loop import Frame, SimulationLoop

BEHAVIOURS = ("script", "random", "idle")
Subject = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="RUN|SCENARIO")]
SYMBOLS = {
    "shower": "w",
    "fridge": "f",
    "stove": "s",
    "bed": "b",
    "bench": "n",
    "cafe": "c",
    "grocer": "g",
    "desk": "d",
}


@dataclass(frozen=True, kw_only=True)
class TownWatchArgs:
    """Watch a town in the terminal: map, queues, needs, rivalries and events. Ctrl-C stops it.

        surefoot town watch queue_conflict
        surefoot town watch queues --fps 4

    Capital letters are agents (the first letter of the name), small letters are objects; conflicts are red.
    """

    subject: Subject
    """A run of `surefoot town train`, whose policy acts, or a scenario."""
    policy: str = "script"
    """Behavior of the agents of a scenario: script, random or idle."""
    ticks: int | None = None
    """Duration (default: one episode)."""
    fps: float = 8.0
    """Ticks per second; 0 means no limit."""
    seed: int | None = None
    """Random seed."""
    stochastic: Stochastic = False
    plain: bool = False
    """Print only the events, one line each."""

    def run(self) -> int:
        from surefoot.town.scenarios.scenario import NEEDS
        from surefoot.town.view.story import sentence

        at_least_one(ticks=self.ticks)
        loop = open_loop(self.subject, self.policy, self.seed, self.stochastic)
        ticks = self.ticks or loop.world.scenario.ticks
        pause = 1.0 / self.fps if self.fps > 0 else 0.0
        if self.plain or not sys.stdout.isatty():
            scenario = loop.world.scenario
            for frame in loop.run(ticks):
                for happening in frame.happened:
                    print(f"{frame.tick:5}  {sentence(happening, scenario)}")
            needs = zip(scenario.agents, loop.world.now.needs[0].round(2).tolist(), strict=True)
            print(f"needs after {ticks} ticks ({', '.join(NEEDS)}; 1 is satisfied):")
            print("  " + "  ".join(f"{resident.id} {levels}" for resident, levels in needs))
            return 0
        from rich.live import Live

        stories: list[str] = []
        with Live(refresh_per_second=30, screen=False) as live:
            for frame in loop.run(ticks):
                live.update(view(loop, frame, stories))
                time.sleep(pause)
        return 0


def view(loop: SimulationLoop, frame: Frame, stories: list[str]) -> Any:
    """Return one tick as a rich renderable; `stories` collects the last ten events."""
    from rich.columns import Columns
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    from surefoot.town.view.story import sentence

    scenario, state = loop.world.scenario, frame.state
    stories += [f"{frame.tick:4} {sentence(h, scenario)}" for h in frame.happened if h.kind != "use_done"]
    del stories[:-10]
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
        [Panel(_map(loop, frame), title=title), Panel(table), Panel("\n".join(stories) or "no events", title="events")]
    )


def _map(loop: SimulationLoop, frame: Frame) -> Any:
    from rich.text import Text

    layout, state = loop.world.layout, frame.state
    quarrels = {h.object for h in frame.happened if h.kind == "queue_conflict"}
    sheet = [["." if open_ else "#" for open_ in row] for row in layout.floor.reshape(layout.height, layout.width)]
    styles: dict[tuple[int, int], str] = {}
    for k, thing in enumerate(layout.scenario.objects):
        x, y = thing.position
        sheet[y][x] = SYMBOLS.get(thing.type, "o")
        styles[y, x] = "bold white on red" if k in quarrels else "black on yellow" if state.user[0, k] >= 0 else "cyan"
    for a, resident in enumerate(layout.scenario.agents):
        if state.present[0, a]:
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
    if not state.present[0, agent]:
        return "gone"
    if state.using[0, agent] >= 0:
        return things[int(state.using[0, agent])].id
    if state.queued[0, agent] >= 0:
        return f"waits for {things[int(state.queued[0, agent])].id}"
    return loop.world.scenario.actions[int(frame.action[agent])]


@dataclass(frozen=True, kw_only=True)
class TownFilmArgs:
    """Save a film of a town as a GIF, an MP4, or a page that any browser plays.

        surefoot town film queues -o queues.html
        surefoot town film queues --policy script -o both.html
        surefoot town film queue_conflict --policy script --policy random -o both.html

    A page shows the map, needs, money, queues, scores and events, follows an agent, and shows two policies side by side
    in the same town.
    """

    subject: Subject
    """A run of `surefoot town train`, or a scenario."""
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("town.html")
    """File to write: .html, .gif or .mp4."""
    policy: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """script, random, idle or a run; pass it twice for two policies side by side. A run's own policy is always shown
    (default for a scenario: script)."""
    ticks: int | None = None
    """Duration (default: one episode)."""
    fps: int = 8
    """Ticks per second of a GIF or MP4."""
    seed: int | None = None
    """Random seed."""
    stochastic: Stochastic = False

    def run(self) -> int:
        if self.out.suffix not in (".html", ".gif", ".mp4"):
            raise Usage(f"{self.out} has an unknown extension; use .html, .gif or .mp4")
        at_least_one(ticks=self.ticks, fps=self.fps)
        loops = self._loops()
        if len(loops) > (2 if self.out.suffix == ".html" else 1):
            most = (
                "a page shows two policies" if self.out.suffix == ".html" else "only a page (.html) shows two policies"
            )
            raise Usage(f"there are {len(loops)} policies ({', '.join(loops)}); {most}")
        self.out.parent.mkdir(parents=True, exist_ok=True)
        first = next(iter(loops.values()))
        ticks = self.ticks or first.world.scenario.ticks
        if self.out.suffix == ".html":
            from surefoot.town.view.story import film_page

            films = {name: loop.run(ticks) for name, loop in loops.items()}
            self.out.write_text(film_page(first.world.layout, films), encoding="utf-8")
        else:
            self._write_film(first, ticks)
        print(f"{self.out}: {self.out.stat().st_size / 1e3:,.0f} kB")
        return 0

    def _loops(self) -> dict[str, SimulationLoop]:
        """Return a simulation per policy, all with the same town and seed, by the name that the page shows."""
        from surefoot.town.scenarios.scenario import shipped

        if self.subject in shipped() or self.subject.endswith((".yaml", ".yml")):
            loops: dict[str, SimulationLoop] = {}
            scenario = load(self.subject)
        else:
            loops = {self.subject: open_loop(self.subject, "script", self.seed, self.stochastic)}
            scenario = loops[self.subject].world.scenario
        seed = next(iter(loops.values())).seed if loops else self.seed
        for name in self.policy or (() if loops else ("script",)):
            if name in BEHAVIOURS:
                from surefoot.town.sim.town_loop import SimulationLoop

                loops[name] = SimulationLoop(scenario, name, seed=seed)
                continue
            loops[name] = open_loop(name, "script", scenario.seed if seed is None else seed, self.stochastic)
            if loops[name].world.scenario != scenario:
                raise Usage(f"{name} is not a run in the town {scenario.name}; side by side needs the same town")
        return loops

    def _write_film(self, loop: SimulationLoop, ticks: int) -> None:
        from surefoot.errors import EnvError
        from surefoot.town.view.picture import picture
        from surefoot.train.render import write_gif

        def pictures() -> list[Any]:
            return [picture(loop.world.layout, frame.state, 0, loop.world.happened) for frame in loop.run(ticks)]

        if self.out.suffix == ".gif":
            write_gif(pictures(), self.out, fps=self.fps)
            return
        try:
            import imageio.v2 as imageio
            import imageio_ffmpeg  # noqa: F401  # pyright: ignore[reportUnusedImport, reportMissingImports]
        except ImportError as why:
            raise EnvError(
                'an MP4 needs imageio-ffmpeg: pip install "surefoot[town]"; .gif and .html work without it'
            ) from why
        imageio.mimwrite(self.out, pictures(), fps=self.fps, macro_block_size=1)  # pyright: ignore[reportArgumentType]


def open_loop(subject: str, policy: str, seed: int | None, stochastic: bool) -> SimulationLoop:
    """Return a simulation loop of a run's policy, or of a behavior in a scenario."""
    from surefoot.town.scenarios.scenario import shipped
    from surefoot.town.sim.town_loop import SimulationLoop

    if subject in shipped() or subject.endswith((".yaml", ".yml")):
        return SimulationLoop(load(subject), policy, seed=seed)
    from surefoot.cli.verbs.runs import load_policy
    from surefoot.town.scenarios.scenario import Scenario
    from surefoot.town.training.run import PolicyRuntime

    try:
        directory = run_directory(subject)
    except RunNotFound as why:
        close = difflib.get_close_matches(subject, shipped(), n=1)
        advice = f"did you mean {close[0]}?" if close else f"the scenarios are {', '.join(shipped())}"
        raise RunNotFound(f"{subject!r} is neither a run nor a scenario; {advice}") from why
    training, _ = load_policy(directory, "latest", None)
    kwargs = training.spec.env_kwargs
    if "scenario" not in kwargs:
        raise Usage(f"{subject} is not a run of a town; pass one, or a scenario: {', '.join(shipped())}")
    scenario = Scenario.from_json(kwargs["scenario"])
    runtime = PolicyRuntime(training.policy, seed=seed or 0, deterministic=not stochastic)
    town_seed = training.spec.seed + 1 if seed is None else seed
    return SimulationLoop(scenario, runtime, seed=town_seed, variant=kwargs.get("variant"))
