"""`surefoot graph …`: check, run, export, import, compare and draw node graphs."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from surefoot.cli.options import Json, PrintJson
from surefoot.cli.usage import Usage

if TYPE_CHECKING:
    from surefoot.graph.spec.model import Graph

GraphFile = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="GRAPH")]
Out = Annotated[Path | None, tyro.conf.arg(aliases=["-o"])]


def read_graph(name: str) -> Graph:
    """From a file of ours, or the name of a template."""
    from surefoot.compat.dnne import register
    from surefoot.graph.spec.text import load_graph
    from surefoot.graph.templates import NAMES, template

    register()
    return template(name) if name in NAMES and not Path(name).is_file() else load_graph(name)


@dataclass(frozen=True, kw_only=True)
class GraphCheckArgs:
    """Say whether a graph holds together: types, shapes, rates, cycles. Nothing in it is run.

        surefoot graph check cartpole
        surefoot graph check my.json --json

    Exit codes: 0 it does, 1 it does not (lints alone are fine), 2 it could not be read.
    """

    graph: GraphFile
    """A graph's JSON file, or the name of a template (surefoot graph templates)."""
    as_json: Json = False
    """Print JSON: findings, order, and the type and rate of every output."""

    def run(self) -> int:
        import json

        from surefoot.graph.spec.check import check

        checked = check(read_graph(self.graph))
        if self.as_json:
            print(json.dumps(checked.to_json(), indent=1))
            return int(bool(checked.errors))
        for finding in checked.findings:
            print(finding)
        for id, node in sorted(checked.flat.nodes.items()):
            if node.type == "Code":
                print(f"code of its own in {id}:\n{node.params.get('source', '')}")
        if not checked.errors:
            print(f"{self.graph}: {len(checked.flat.nodes)} nodes, {len(checked.flat.edges)} edges, it holds together")
        return int(bool(checked.errors))


@dataclass(frozen=True, kw_only=True)
class GraphRunArgs:
    """Run a graph.

        surefoot graph run cartpole
        surefoot graph run my.json --engine interpreter --steps 20_000 --watch trainer.loss_info
        surefoot graph run my.json --engine interpreter --keep checkpoints

    All engines give the same digits: interpreter fires node by node, queues puts environments into processes of their
    own, compiled runs the program that export writes.
    Exit codes: 0 it ran, 2 it failed or was refused.
    """

    graph: GraphFile
    """A graph's JSON file, or the name of a template."""
    engine: Literal["compiled", "interpreter", "queues"] = "compiled"
    """How it is run."""
    steps: Annotated[int | None, tyro.conf.arg(aliases=["-n"])] = None
    """Env steps (default: the graph's own)."""
    seed: int | None = None
    """Everything random follows from it (default: the graph's own)."""
    path: Literal["auto", "native", "torch"] | None = None
    """Which implementation learns (default: the graph's own)."""
    out: Out = None
    """Where Recorder and Checkpoint nodes write (default: here)."""
    watch: tuple[str, ...] = ()
    """Outputs to show while it runs, as node.port; interpreter only."""
    keep: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Keep checkpoints there; if there is one, go on from it to the last bit. Ctrl-C stops and keeps. interpreter only."""
    keep_every: int = 1000
    """Ticks between two of them."""
    trust: bool = False
    """Let code nodes run. Read them first: surefoot graph check shows them."""
    threads: int = 1
    """Threads for torch."""
    as_json: Json = False
    """End with one line of JSON: ticks, seconds, sha256 of all weights."""

    def run(self) -> int:
        import json
        import time

        from surefoot.train.device import pin_threads

        if self.watch and self.engine != "interpreter":
            raise Usage("--watch needs --engine interpreter")
        if self.keep is not None and (self.engine != "interpreter" or self.keep_every < 1 or self.watch):
            raise Usage("--keep needs --engine interpreter, a --keep-every of at least 1, and no --watch")
        pin_threads(self.threads)
        engine = self._engine()
        begin = time.perf_counter()
        try:
            ticks = self._go(engine)
        finally:
            engine.close()
        told: dict[str, Any] = {
            "ticks": ticks,
            "seconds": round(time.perf_counter() - begin, 3),
            "sha256": engine.sha256(),
        }
        print(
            json.dumps(told)
            if self.as_json
            else f"{ticks:,} ticks in {told['seconds']:.1f} s, weights {told['sha256'][:16]}"
        )
        return 0

    def _engine(self) -> Any:
        from surefoot.graph.run.compiled import Compiled
        from surefoot.graph.run.interpreter import Interpreter
        from surefoot.graph.run.queues import QueueEngine

        said = {"total_steps": self.steps, "seed": self.seed, "path": self.path}
        settings: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
        kinds = {"compiled": Compiled, "interpreter": Interpreter, "queues": QueueEngine}
        return kinds[self.engine](read_graph(self.graph), into=self.out or Path(), trust=self.trust, **settings)

    def _go(self, engine: Any) -> int:
        if self.keep is not None:
            from surefoot.graph.run.snapshot import run_and_keep

            return run_and_keep(engine, self.keep, self.keep_every, say=print)
        if not self.watch:
            return engine.run()
        for end in self.watch:
            engine.live.watch(end)
        while not engine.finished:
            engine.run(max(1, engine.plan.ticks // 20))
            for end in self.watch:
                seen = engine.live.seen(end)
                print(f"tick {engine.ticks:,}  {end}  {seen[-1] if seen else 'nothing yet'}", flush=True)
        return engine.ticks


@dataclass(frozen=True, kw_only=True)
class GraphExportArgs:
    """Write a graph out as the program a person would have written.

        surefoot graph export cartpole -o train.py
        surefoot graph export cartpole --style standalone -o alone.py

    script imports surefoot and has its speed; standalone is one file that needs torch, numpy and gymnasium alone.
    Both give the digits of the graph (standalone those of path torch), and import reads both back.
    """

    graph: GraphFile
    """A graph's JSON file, or the name of a template."""
    style: Literal["script", "standalone"] = "script"
    """Which sort of program."""
    out: Out = None
    """The file (default: printed)."""

    def run(self) -> int:
        from surefoot.graph.export.script import to_script
        from surefoot.graph.export.standalone import to_standalone

        text = (to_script if self.style == "script" else to_standalone)(read_graph(self.graph))
        return _give(text, self.out)


@dataclass(frozen=True, kw_only=True)
class GraphImportArgs:
    """Read a program of `graph export`, or a ComfyUI workflow of PPO nodes, as a graph. Nothing is run.

        surefoot graph import train.py -o again.json
        surefoot graph import Cartpole_PPO.json -o mine.json

    What stands for no node becomes a code node and is named in the report, which goes to stderr.
    """

    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    """A .py program or a workflow's .json."""
    out: Out = None
    """The graph's file (default: printed)."""

    def run(self) -> int:
        from surefoot.compat.dnne import register
        from surefoot.errors import GraphError
        from surefoot.graph.import_.formats import from_json_text
        from surefoot.graph.import_.program import import_program
        from surefoot.graph.spec.text import MOST_BYTES, canonical

        register()
        if self.file.suffix == ".json":
            try:
                if self.file.stat().st_size > MOST_BYTES:
                    raise GraphError(f"{self.file} has more than {MOST_BYTES:,} bytes")
                found = from_json_text(self.file.read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError) as why:
                raise GraphError(f"cannot read {self.file}: {why}") from why
        else:
            found = import_program(self.file)
        for note in found.notes:
            print(note, file=sys.stderr)
        return _give(canonical(found.graph), self.out)


@dataclass(frozen=True, kw_only=True)
class DiffArgs:
    """Tell two graphs apart: nodes, parameters, edges, run settings; not where they are drawn.

        surefoot graph diff before.json after.json

    Exit codes: 0 they mean the same, 1 they differ, 2 one could not be read.
    """

    before: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="BEFORE")]
    """A graph's JSON file, or the name of a template."""
    after: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="AFTER")]
    """Another."""
    as_json: PrintJson = False

    def run(self) -> int:
        import json

        from surefoot.graph.diff import difference_line, differences

        entries = differences(read_graph(self.before), read_graph(self.after))
        lines = "\n".join(map(difference_line, entries)) or "the same"
        print(json.dumps(entries, indent=1) if self.as_json else lines)
        return int(bool(entries))


@dataclass(frozen=True, kw_only=True)
class RenderArgs:
    """Draw a graph as an SVG picture.

    surefoot graph render cartpole -o cartpole.svg
    """

    graph: GraphFile
    """A graph's JSON file, or the name of a template."""
    svg: bool = False
    """Deprecated, has no effect: SVG is the only format."""
    out: Out = None
    """The file (default: printed)."""

    def run(self) -> int:
        from surefoot.graph.export.svg import to_svg

        if self.svg:
            print("--svg has no effect: SVG is the only format; the option goes in the next release", file=sys.stderr)
        return _give(to_svg(read_graph(self.graph)), self.out)


@dataclass(frozen=True, kw_only=True)
class NodesArgs:
    """List the kinds of nodes with what they do; --json has ports, parameters, help and presets of each.

    surefoot graph nodes
    surefoot graph nodes --json
    """

    as_json: Json = False
    """Print the whole catalogue as JSON."""

    def run(self) -> int:
        import json

        from surefoot.compat.dnne import register
        from surefoot.graph.nodes import REGISTRY

        register()
        if self.as_json:
            print(json.dumps(REGISTRY.to_json(), indent=1))
            return 0
        for name in REGISTRY.names():
            declared = REGISTRY.get(name)
            print(f"{name:<22} {declared.category:<14} {declared.summary}")
        return 0


@dataclass(frozen=True, kw_only=True)
class TemplatesArgs:
    """List the graphs that come with the package; with a name, print that one's JSON to begin your own with.

    surefoot graph templates
    surefoot graph templates cartpole > mine.json
    """

    name: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="NAME")] = None
    """Which one to print."""

    def run(self) -> int:
        from surefoot.graph.templates import NAMES, template, template_text

        if self.name is not None:
            print(template_text(self.name), end="")
            return 0
        for name in NAMES:
            print(f"{name:<14} {template(name).about}")
        return 0


def _give(text: str, out: Path | None) -> int:
    if out is None:
        print(text, end="")
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
        print(f"→ {out}")
    return 0
