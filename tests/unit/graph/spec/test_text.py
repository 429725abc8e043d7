"""Graphs as JSON: canonical, and closed to whatever else comes along."""

import json

import pytest

from surefoot.errors import GraphError
from surefoot.graph.spec.check import check
from surefoot.graph.spec.model import ABSENT, Delay, Graph
from surefoot.graph.spec.text import MOST_BYTES, canonical, from_json, load_graph, parse_graph, save_graph, to_json
from surefoot.graph.templates import NAMES, template, template_text


def bare(**content: object) -> str:
    return json.dumps({"format": "surefoot.graph", "version": 1, **content})


@pytest.mark.parametrize("name", NAMES)
def test_a_template_is_its_own_canonical_text_and_holds_together(name: str) -> None:
    assert canonical(template(name)) == template_text(name)
    assert check(template(name)).findings == []
    assert set(template(name).layout) == set(template(name).nodes)


def test_the_order_in_which_a_graph_was_built_leaves_no_trace() -> None:
    one, other = Graph(), Graph()
    for graph, ids in ((one, "ab"), (other, "ba")):
        for id in ids:
            graph.add(id, "FloatConstant", value=1.5)
    assert canonical(one) == canonical(other)
    assert one.sha256() == other.sha256()


def test_layout_and_words_do_not_change_what_a_graph_means() -> None:
    one, other = template("cartpole"), template("cartpole")
    other.layout["env"], other.about, other.name = (7.0, 7.0), "otherwise", "x"
    assert one.sha256() == other.sha256() != template("pendulum").sha256()


def test_a_delay_without_and_with_a_first_value_survives(tmp_path) -> None:
    graph = template("cartpole")
    save_graph(graph, tmp_path / "g.json")
    again = load_graph(tmp_path / "g.json")
    delays = {str(edge.target): edge.delay for edge in again.edges if edge.delay is not None}
    assert delays == {"either.b": Delay(ABSENT), "step.trigger": Delay("ready")}
    assert from_json({"format": "surefoot.graph", "version": 1, **to_json(graph)}).sha256() == graph.sha256()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[]", "JSON list"),
        ("{}", "format is"),
        ('{"format": "surefoot.graph"}', "version is"),
        (bare(nodes=[]), "nodes is a list"),
        (bare(nodes={"a b": {"type": "OR"}}), "called 'a b'"),
        (bare(nodes={"__import__('os')": {"type": "OR"}}), "64 letters, digits and _"),
        (
            bare(nodes={"a": {"type": "OR", "code": "x"}}),
            "node a has no field 'code'; its fields are mode, params, ranges, type",
        ),
        (bare(nodes={"a": {"type": "OR", "params": {"mode": "first"}}}), "must be one of fby"),
        (bare(nodes={"a": {"type": "OR", "params": {"modus": "fby"}}}), "did you mean mode"),
        (bare(nodes={"a": {"type": "PPOTrainerNode", "params": {"epochs": 1e400}}}), "not a finite number"),
        (
            bare(nodes={"e": {"type": "Environment", "params": {"env_id": "os:system"}}}),
            "module:Name and paths are refused",
        ),
        (bare(nodes={"e": {"type": "Environment", "params": {"env_id": "../x.so"}}}), "refused"),
        (bare(nodes={"c": {"type": "Checkpoint", "params": {"folder": "../../x"}}}), "below the run's directory"),
        (bare(nodes={"c": {"type": "Recorder", "params": {"folder": "/etc"}}}), "below the run's directory"),
        (bare(edges=[{"from": "a", "to": "b.c"}]), "write node.port"),
        (bare(edges=[{"from": "a.b", "to": "b.c", "weight": 1}]), "no field 'weight'"),
        (bare(run={"seed": -1}), "run.seed"),
        (bare(run={"path": "gpu"}), "run.path"),
        (bare(extra=1), "no field 'extra'"),
        (bare(layout={"a": ["x", 1]}), "must be \\[x, y\\]"),
        ('{"format": "surefoot.graph", "version": 1, "name": "a", "name": "b"}', "occurs twice"),
        ('{"format": "surefoot.graph", "version": 1, "run": {"seed": NaN}}', "NaN is not a finite number"),
        ("[" * 100_000, "nested more than"),
        ('{"a": "' + "\\ud800" + '"}', "not JSON|format is"),
    ],
)
def test_bad_input_is_one_clear_error(text: str, message: str) -> None:
    with pytest.raises(GraphError, match=message) as error:
        parse_graph(text)
    assert "\n" not in str(error.value)


def test_a_million_nodes_are_refused_before_they_are_parsed(tmp_path) -> None:
    file = tmp_path / "huge.json"
    file.write_text('{"format":"surefoot.graph","nodes":{' + '"n":{"type":"OR"},' * 1_000_000 + "}}")
    with pytest.raises(GraphError, match="at most"):
        load_graph(file)
    many = bare(nodes={f"n{k}": {"type": "OR"} for k in range(3000)})
    assert len(many) < MOST_BYTES
    with pytest.raises(GraphError, match="3,000 nodes"):
        parse_graph(many)


def test_a_byte_order_mark_is_no_part_of_a_graph(tmp_path) -> None:
    (tmp_path / "marked.json").write_text(canonical(template("cartpole")), encoding="utf-8-sig")
    assert load_graph(tmp_path / "marked.json") == template("cartpole")


def test_a_workflow_of_another_tool_is_pointed_to_the_importer() -> None:
    with pytest.raises(GraphError, match="graph import"):
        parse_graph('{"last_node_id": 6, "nodes": [], "links": []}')


def test_ranges_for_a_search_are_kept_and_change_nothing_else() -> None:
    graph = template("cartpole")
    before = graph.sha256()
    graph.nodes["trainer"].ranges = {"lr": {"low": 1e-4, "high": 1e-2, "log": True}}
    graph.nodes["agent"].ranges = {"activation": {"choices": ["tanh", "relu"]}}
    again = parse_graph(canonical(graph))
    assert again.nodes["trainer"].ranges == graph.nodes["trainer"].ranges
    assert canonical(again) == canonical(graph)
    assert again.sha256() == before


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ({"rollout_step": {"low": 1, "high": 2}}, "did you mean rollout_steps"),
        ({"lr": [1, 2]}, r"write \{low, high\} or \{choices\}"),
        ({"lr": {"low": 0.1}}, r"write \{low, high\} or \{choices\}"),
        ({"gamma": {"low": 0.9, "high": 2.0}}, "gamma is 2.0; it must be"),
        ({"gamma": {"low": 0.9, "high": 0.5}}, "low must be below high"),
        ({"epochs": {"choices": []}}, r"write \{low, high\} or \{choices\}"),
    ],
)
def test_a_range_that_cannot_be_is_one_sentence(ranges: dict, message: str) -> None:
    content = json.loads(canonical(template("cartpole")))
    content["nodes"]["trainer"]["ranges"] = ranges
    with pytest.raises(GraphError, match=message):
        parse_graph(json.dumps(content))
