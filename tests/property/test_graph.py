"""Random graphs: written out and read back they are the same, engines agree on them, and every change can be undone."""

import random
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings

from surefoot.graph.export.script import to_script
from surefoot.graph.import_.program import from_program
from surefoot.graph.run.compiled import Compiled
from surefoot.graph.run.interpreter import Interpreter
from surefoot.graph.spec.check import check
from surefoot.graph.spec.history import History
from surefoot.graph.spec.model import Delay, Graph
from surefoot.graph.spec.text import canonical
from surefoot.graph.templates import template

NAMES = [
    "a",
    "b",
    "act",
    "lambda",
    "print",
    "config",
    "tick",
    "class",
    "None_",
    "x1",
    "sum",
    "either",
    "match",
    "_",
    "train",
    "Or",
    "self",
]
NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)


@st.composite
def graphs(draw: Any, code: bool = True) -> Graph:
    """Counters that feed arithmetic, conditions, merges and plots, with delays wherever one may stand."""
    graph = Graph(draw(st.text(max_size=8)), about=draw(st.text(max_size=8)))
    graph.run.total_steps, graph.run.seed = draw(st.integers(1, 12)), draw(st.integers(0, 9))
    names = iter(f"{draw(st.sampled_from(NAMES))}{k if k else ''}" for k in range(1000))

    def add(type: str, **params: Any) -> str:
        id = next(name for name in names if name not in graph.nodes)
        at = draw(st.none() | st.tuples(st.integers(-500, 500), st.integers(-500, 500)))
        graph.add(id, type, at, **params)
        return id

    ticks: list[str] = []
    """Outputs that come in every tick."""
    for _ in range(draw(st.integers(1, 3))):
        first, one = add("FloatConstant", value=draw(NUMBERS)), add("FloatConstant", value=draw(NUMBERS))
        either, total = add("OR"), add("Math", operation=draw(st.sampled_from(["add", "maximum", "subtract"])))
        graph.connect(f"{first}.value", f"{either}.a")
        graph.connect(f"{total}.result", f"{either}.b", Delay())
        graph.connect(f"{either}.output", f"{total}.a")
        graph.connect(f"{one}.value", f"{total}.b")
        ticks += [f"{either}.output", f"{total}.result"]
    for _ in range(draw(st.integers(0, 5))):
        kind = draw(st.sampled_from(["math", "delayed", "plot", "condition", "code"]))
        source = draw(st.sampled_from(ticks))
        if kind == "math":
            id = add("Math", operation=draw(st.sampled_from(["multiply", "minimum", "abs"])), other=draw(NUMBERS))
            graph.connect(source, f"{id}.a")
            ticks.append(f"{id}.result")
        elif kind == "delayed":
            id = add("Math", operation="add")
            graph.connect(source, f"{id}.a", Delay(draw(NUMBERS)))
            graph.connect(draw(st.sampled_from(ticks)), f"{id}.b")
            ticks.append(f"{id}.result")
        elif kind == "plot":
            graph.connect(source, f"{add('Plot')}.value")
        elif kind == "condition":
            mean, test, merge, plot = (
                add("Math", operation="mean"),
                add("Condition", limit=draw(NUMBERS)),
                add("OR", mode="priority", queue=True),
                add("Plot"),
            )
            graph.connect(source, f"{mean}.a")
            graph.connect(f"{mean}.result", f"{test}.value")
            graph.connect(f"{test}.trigger", f"{merge}.a")
            graph.connect(f"{test}.trigger", f"{merge}.b", Delay())
            graph.connect(f"{merge}.output", f"{plot}.value")
        elif code:
            id = add(
                "Code",
                source="y = x + 1\nz = [y]",
                inputs=["x"],
                outputs=draw(st.sampled_from([[], ["y"], ["y", "z"]])),
            )
            graph.connect(source, f"{id}.x")
    return graph


@st.composite
def loops(draw: Any) -> Graph:
    """A template with some numbers changed and perhaps a watcher more."""
    graph = template(draw(st.sampled_from(["cartpole", "multi_env", "pendulum", "hierarchical"])))
    trainer = graph.nodes["trainer"].params
    trainer["epochs"] = draw(st.integers(1, 20))
    trainer["target_kl"] = draw(st.none() | st.floats(0.001, 1.0))
    if draw(st.booleans()):
        graph.remove("print")
    if draw(st.booleans()):
        graph.add("save", "Checkpoint", every=draw(st.integers(1, 100)))
        graph.connect("trainer.training_complete", "save.trigger")
        graph.connect("trainer.learner", "save.learner")
    return graph


@settings(max_examples=500, deadline=None)
@given(graphs() | graphs() | graphs() | loops(), st.booleans())
def test_a_graph_written_out_and_read_back_is_the_same_graph(graph: Graph, fuse: bool) -> None:
    assert check(graph).errors == []
    text = to_script(graph, fuse=fuse)
    found = from_program(text)
    assert canonical(found.graph) == canonical(graph)
    assert found.notes == []
    assert to_script(found.graph, fuse=fuse) == text


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_the_compiled_program_sees_what_the_interpreter_sees(graph: Graph) -> None:
    run = Interpreter(graph, trust=True)
    run.run()
    program = Compiled(graph, trust=True)
    program.run()
    for id, node in graph.nodes.items():
        if node.type == "Plot":
            assert list(run.nodes[id].values) == list(program.nodes[id].values), id


@settings(max_examples=3, deadline=None)
@given(st.integers(0, 10**6))
def test_a_thousand_changes_are_undone_to_the_byte(seed: int) -> None:
    rng = random.Random(seed)
    history = History(template("cartpole"))
    before = canonical(history.graph)
    done = 0
    while done < 1000:
        try:
            history.do(_change(history.graph, rng))
            done += 1
        except ValueError:
            continue
    assert canonical(history.graph) != before
    after = canonical(history.graph)
    while history.undo():
        pass
    assert canonical(history.graph) == before
    while history.redo():
        pass
    assert canonical(history.graph) == after


def _change(graph: Graph, rng: random.Random) -> dict[str, Any]:
    ids = sorted(graph.nodes) or ["none"]
    id = rng.choice(ids)
    ports = [str(edge.target) for edge in graph.edges] or ["a.b"]
    new = f"n{rng.randrange(10**6)}"
    return rng.choice(
        [
            {"op": "add", "id": new, "type": rng.choice(["OR", "Math", "Print", "Step"]), "at": [rng.randrange(99), 5]},
            {"op": "add", "id": new, "type": "FloatConstant", "params": {"value": rng.random()}},
            {"op": "remove", "id": id},
            {"op": "move", "id": id, "at": [rng.randrange(99), rng.randrange(99)]},
            {"op": "rename", "id": id, "to": new},
            {"op": "connect", "from": f"{id}.x", "to": f"{rng.choice(ids)}.{rng.choice('abc')}", "delay": {}},
            {"op": "connect", "from": f"{id}.x", "to": f"{rng.choice(ids)}.{rng.choice('abc')}"},
            {"op": "disconnect", "to": rng.choice(ports)},
            {"op": "run", "settings": {"seed": rng.randrange(9)}},
            {"op": "set", "id": id, "params": {"mode": rng.choice(["fby", "priority"])}},
        ]
    )
