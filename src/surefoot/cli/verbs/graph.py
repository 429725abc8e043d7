"""`surefoot graph …`: check, run, export, import, compare and draw node graphs."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import tyro

from surefoot.cli.usage import Usage

if TYPE_CHECKING:
    from surefoot.graph.spec.model import Graph

GraphFile = Annotated[
    tyro.conf.Positional[str],
    tyro.conf.arg(metavar="GRAPH", help="JSON file of a graph, or name of a template (`surefoot graph templates`)."),
]
Out = Annotated[Path | None, tyro.conf.arg(aliases=["-o"], help="File to write (default: standard output).")]


def read_graph(name: str) -> Graph:
    """Return the graph in a file, or the template of that name."""
    from surefoot.compat.dnne import register
    from surefoot.graph.spec.text import load_graph
    from surefoot.graph.templates import NAMES, template

    register()
    # A name without a suffix is meant as a template; `template` suggests the nearest one.
    is_template = name in NAMES or not Path(name).suffix
    return template(name) if is_template and not Path(name).exists() else load_graph(name)


# Ticks between checkpoints of --keep: a second or a few.
KEEP_EVERY = 1000


@dataclass(frozen=True, kw_only=True)
class GraphCheckArgs:
    """Check the types, shapes, rates and cycles of a graph without running it.

        surefoot graph check cartpole
        surefoot graph check my.json --json

    Prints the source of code nodes. Exit codes: 0 no errors (hints are allowed), 1 errors, 2 it could not be read.
    """

    graph: GraphFile
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        from surefoot.graph.spec.check import check

        checked = check(read_graph(self.graph))
        if self.as_json:
            print(json.dumps(checked.to_json(), indent=1))
            return int(bool(checked.errors))
        for finding in checked.findings:
            print(finding)
        for id, node in sorted(checked.flat.nodes.items()):
            if node.type == "Code":
                print(f"source code of the node {id}:\n{node.params.get('source', '')}")
        if not checked.errors:
            print(f"{self.graph}: {len(checked.flat.nodes)} nodes, {len(checked.flat.edges)} edges, no errors")
        return int(bool(checked.errors))


@dataclass(frozen=True, kw_only=True)
class GraphRunArgs:
    """Run a graph. All engines give the same digits.

        surefoot graph run cartpole
        surefoot graph run my.json --engine interpreter --steps 20_000 --watch trainer.loss_info
        surefoot graph run my.json --engine interpreter --keep checkpoints

    The interpreter executes node by node, queues runs environments in separate processes, and compiled runs the program
    that `surefoot graph export` writes. --json prints ticks, seconds and the sha256 of all weights at the end.
    Exit codes: 0 success, 2 failed or refused.
    """

    graph: GraphFile
    engine: Literal["compiled", "interpreter", "queues"] = "compiled"
    """Engine that runs the graph."""
    steps: Annotated[int | None, tyro.conf.arg(aliases=["-n"])] = None
    """Environment steps (default: the graph's)."""
    seed: int | None = None
    """Random seed (default: the graph's)."""
    path: Literal["auto", "native", "torch"] | None = None
    """Implementation of the learner (default: the graph's)."""
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """Directory that Recorder and Checkpoint nodes write to (default: the current directory)."""
    watch: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NODE.PORT...")] = ()
    """Outputs to print during the run; interpreter only."""
    keep: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Directory of checkpoints. Continues exactly from an existing one; Ctrl-C saves and stops. Interpreter only."""
    trust: bool = False
    """Allow code nodes to run. Read them first: `surefoot graph check` prints them."""
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        from surefoot.graph.run.compiled import Compiled
        from surefoot.graph.run.interpreter import Interpreter
        from surefoot.graph.run.queues import QueueEngine
        from surefoot.train.device import pin_threads

        if self.watch and self.engine != "interpreter":
            raise Usage("--watch needs --engine interpreter")
        if self.keep is not None and (self.engine != "interpreter" or self.watch):
            raise Usage("--keep needs --engine interpreter and no --watch")
        pin_threads()
        options = {"total_steps": self.steps, "seed": self.seed, "path": self.path}
        settings: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
        kinds = {"compiled": Compiled, "interpreter": Interpreter, "queues": QueueEngine}
        engine = kinds[self.engine](read_graph(self.graph), into=self.out or Path(), trust=self.trust, **settings)
        begin = time.perf_counter()
        try:
            ticks = self._go(engine)
        finally:
            engine.close()
        seconds, digest = round(time.perf_counter() - begin, 3), engine.sha256()
        document = {"ticks": ticks, "seconds": seconds, "sha256": digest}
        print(json.dumps(document) if self.as_json else f"{ticks:,} ticks in {seconds:.1f} s, weights {digest[:16]}")
        return 0

    def _go(self, engine: Any) -> int:
        if self.keep is not None:
            from surefoot.graph.run.snapshot import run_and_keep

            return run_and_keep(engine, self.keep, KEEP_EVERY, say=print)
        if not self.watch:
            return engine.run()
        from surefoot.graph.run.live_values import run_and_print

        return run_and_print(engine, self.watch)


@dataclass(frozen=True, kw_only=True)
class GraphExportArgs:
    """Export a graph as a readable Python program.

        surefoot graph export cartpole -o train.py
        surefoot graph export cartpole --style standalone -o alone.py

    script imports surefoot and is as fast as it; standalone is one file that needs only torch, numpy and gymnasium. Both
    give the same digits as the graph (standalone: as path torch). `surefoot graph import` reads both back.
    """

    graph: GraphFile
    style: Literal["script", "standalone"] = "script"
    """Kind of program."""
    out: Out = None

    def run(self) -> int:
        from surefoot.graph.export.script import to_script
        from surefoot.graph.export.standalone import to_standalone

        text = (to_script if self.style == "script" else to_standalone)(read_graph(self.graph))
        return _write(text, self.out)


@dataclass(frozen=True, kw_only=True)
class GraphImportArgs:
    """Convert a program of `surefoot graph export`, or a ComfyUI workflow of PPO nodes, to a graph. No code is run.

        surefoot graph import train.py -o again.json
        surefoot graph import Cartpole_PPO.json -o mine.json

    Code that matches no node becomes a code node and is reported on stderr.
    """

    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FILE")]
    """A .py program, or the .json of a workflow."""
    out: Out = None

    def run(self) -> int:
        from surefoot.compat.dnne import register
        from surefoot.errors import GraphError
        from surefoot.graph.import_.program import from_json_text, import_program
        from surefoot.graph.spec.text import MOST_BYTES, canonical

        register()
        if self.file.suffix == ".json":
            try:
                if self.file.stat().st_size > MOST_BYTES:
                    raise GraphError(f"{self.file} has more than {MOST_BYTES:,} bytes, the largest file that is read")
                result = from_json_text(self.file.read_text(encoding="utf-8-sig"))
            except (OSError, UnicodeDecodeError) as why:
                raise GraphError(f"cannot read {self.file}: {why}") from why
        else:
            result = import_program(self.file)
        for note in result.notes:
            print(note, file=sys.stderr)
        return _write(canonical(result.graph), self.out)


@dataclass(frozen=True, kw_only=True)
class DiffArgs:
    """Show the differences between two graphs: nodes, parameters, edges and run settings, but not positions.

        surefoot graph diff before.json after.json

    Exit codes: 0 no difference, 1 they differ, 2 one could not be read.
    """

    before: Annotated[GraphFile, tyro.conf.arg(metavar="BEFORE")]
    """JSON file of a graph, or name of a template."""
    after: Annotated[GraphFile, tyro.conf.arg(metavar="AFTER")]
    """The graph to compare with."""
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        from surefoot.graph.diff import difference_line, differences

        changes = differences(read_graph(self.before), read_graph(self.after))
        print(
            json.dumps(changes, indent=1)
            if self.as_json
            else "\n".join(map(difference_line, changes)) or "no difference"
        )
        return int(bool(changes))


@dataclass(frozen=True, kw_only=True)
class RenderArgs:
    """Draw a graph as an SVG image.

    surefoot graph render cartpole -o cartpole.svg
    """

    graph: GraphFile
    out: Out = None

    def run(self) -> int:
        from surefoot.graph.export.svg import to_svg

        return _write(to_svg(read_graph(self.graph)), self.out)


@dataclass(frozen=True, kw_only=True)
class NodesArgs:
    """List the node types with a summary; --json prints their ports, parameters, help texts and presets.

    surefoot graph nodes
    surefoot graph nodes --json
    """

    as_json: ClassVar[bool] = False

    def run(self) -> int:
        from surefoot.compat.dnne import register
        from surefoot.graph.nodes import REGISTRY

        register()
        if self.as_json:
            print(json.dumps(REGISTRY.to_json(), indent=1))
            return 0
        for node in map(REGISTRY.get, REGISTRY.names()):
            print(f"{node.name:<22} {node.category:<14} {node.summary}")
        return 0


@dataclass(frozen=True, kw_only=True)
class TemplatesArgs:
    """List the shipped graphs; with a name, print that graph as JSON, to start your own from.

    surefoot graph templates
    surefoot graph templates cartpole > mine.json
    """

    name: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="NAME")] = None
    """Graph to print."""

    def run(self) -> int:
        from surefoot.graph.templates import NAMES, template, template_text

        if self.name is not None:
            print(template_text(self.name), end="")
            return 0
        for name in NAMES:
            print(f"{name:<14} {template(name).about}")
        return 0


def _write(text: str, out: Path | None) -> int:
    if out is None:
        print(text, end="")
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
        print(f"→ {out}")
    return 0
