"""What a tab can ask for, without a socket; and the page that is shipped."""

import asyncio
import sys
from pathlib import Path

import pytest

from surefoot.errors import ConfigError, GraphError, RunNotFound
from surefoot.server.studio.commands import Studio, warm_up

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def studio(tmp_path):
    made = Studio(tmp_path, tmp_path / "runs", lambda message: told.append(message))
    told: list[dict] = []
    made.told = told  # type: ignore[attr-defined]
    yield made
    made.close()


def ask(studio: Studio, verb: str, **given):
    return asyncio.run(studio.ask(1, verb, given))


def test_changes_are_told_to_all_and_moves_are_told_as_moves(studio) -> None:
    doc = ask(studio, "new", template="cartpole")["doc"]
    ask(studio, "op", doc=doc, op={"op": "move", "id": "env", "at": [1, 2]})
    assert studio.told[-1]["on"] == "moved"
    assert studio.told[-1]["moves"] == {"env": [1, 2]}
    ask(studio, "op", doc=doc, op={"op": "remove", "id": "print"})
    assert studio.told[-1]["on"] == "doc"
    assert ask(studio, "undo", doc=doc)
    assert "print" in studio.told[-1]["graph"]["nodes"]


def test_a_refused_edge_says_why_and_changes_nothing(studio) -> None:
    doc = ask(studio, "new", template="cartpole")["doc"]
    with pytest.raises(GraphError, match="it takes an array but gets an environment"):
        ask(studio, "connect", doc=doc, source="env.sim_handle", target="trainer.dones")
    assert ask(studio, "open", doc=doc)["version"] == 0
    assert ask(studio, "fits", doc=doc, source="step.dones")["trainer.dones"]["ok"]


def test_inside_a_sub_graph_the_same_verbs_work(studio) -> None:
    doc = ask(studio, "new", template="cartpole")["doc"]
    ask(studio, "group", doc=doc, ids=["agent", "action"], name="brain")
    ask(studio, "op", doc=doc, inside="brain", op={"op": "disconnect", "to": "action.policy_output"})
    ask(studio, "connect", doc=doc, inside="brain", source="agent.policy_output", target="action.policy_output")
    assert ask(studio, "open", doc=doc)["check"]["ok"]
    with pytest.raises(GraphError, match="unknown sub-graph"):
        ask(studio, "fits", doc=doc, inside="x", source="a.b")


def test_programs_are_written_out(studio) -> None:
    doc = ask(studio, "new", template="cartpole")["doc"]
    assert "import surefoot" in ask(studio, "export", doc=doc, style="script")["text"].replace("from", "import")
    assert "from surefoot" not in ask(studio, "export", doc=doc, style="standalone")["text"]


@pytest.mark.parametrize(
    ("verb", "given", "error"),
    [
        ("explode", {}, ConfigError),
        ("open", {}, ConfigError),
        ("open", {"doc": 3}, ConfigError),
        ("op", {"doc": "x", "op": {}}, GraphError),
        ("command", {"name": "run"}, GraphError),
        ("command", {"name": "rm"}, GraphError),
        ("breaks", {"breaks": [{"end": "a"}]}, ConfigError),
        ("curves", {"run": "../.."}, RunNotFound),
        ("resume", {"run": "ghost"}, RunNotFound),
        ("apply", {"doc": "x", "rule": "R99"}, GraphError),
        ("new", {"template": "ghost"}, GraphError),
        ("fix", {"doc": "cartpole", "finding": "x"}, GraphError),
        ("pace", {"pace": "fast"}, ConfigError),
        ("breaks", {"breaks": [{"end": "a.b", "test": ">", "limit": "x"}]}, ConfigError),
        ("watch", {"ends": 5}, ConfigError),
        ("watch", {}, ConfigError),
    ],
)
def test_nonsense_is_one_clear_error(studio, verb, given, error) -> None:
    with pytest.raises(error):
        ask(studio, verb, **given)


def test_nodes_inside_a_sub_graph_become_one_and_are_taken_apart_again(studio) -> None:
    doc = ask(studio, "new", template="cartpole")["doc"]
    ask(studio, "group", doc=doc, ids=["agent", "action"], name="brain")
    before = studio.graphs.get(doc).graph.sha256()
    ask(studio, "group", doc=doc, ids=["agent"], name="core", inside="brain")
    graph = studio.graphs.get(doc).graph
    assert graph.graphs["brain"].nodes["core"].type == "SubGraph"
    assert set(graph.graphs) == {"brain", "core"}
    assert ask(studio, "open", doc=doc)["check"]["ok"]
    with pytest.raises(GraphError, match="a sub-graph 'core' already exists"):
        ask(studio, "group", doc=doc, ids=["step"], name="core")
    ask(studio, "ungroup", doc=doc, id="core", inside="brain")
    assert studio.graphs.get(doc).graph.sha256() == before
    for _ in range(2):
        ask(studio, "undo", doc=doc)
    assert studio.graphs.get(doc).graph.sha256() == before


def test_several_seeds_run_one_after_the_other(studio) -> None:
    doc = ask(studio, "new", template="cartpole")["doc"]
    ask(studio, "op", doc=doc, op={"op": "run", "settings": {"total_steps": 256, "seed": 7}})

    async def all_three() -> list[int]:
        await studio.ask(1, "start", {"doc": doc, "seeds": 3})
        for _ in range(2000):
            await asyncio.sleep(0.02)
            if studio.session.has_ended and not studio.queue.waiting:
                break
        return [run["seed"] for run in map(seed_of, await studio.ask(1, "runs", {}))]

    def seed_of(row: dict) -> dict:
        return studio.library.get(row["run"]).read_header()["spec"]

    assert sorted(asyncio.run(all_three())) == [7, 8, 9]
    assert [m["doc"] for m in studio.told if m["on"] == "starting"] == [doc]


def test_a_second_start_waits_for_the_first_and_a_stop_drops_only_its_own_batch(studio) -> None:
    doc = ask(studio, "new", template="cartpole")["doc"]
    ask(studio, "op", doc=doc, op={"op": "run", "settings": {"total_steps": 256}})

    async def both() -> list[str]:
        await studio.ask(1, "start", {"doc": doc, "seeds": 3, "paused": True})
        answer = await studio.ask(1, "start", {"doc": doc, "sweep": {"trainer.epochs": [1, 2]}})
        assert answer == {"run": "", "waiting": 4}
        await studio.ask(1, "unqueue", {"id": studio.queue.waiting[-1].id})
        await studio.ask(1, "command", {"name": "stop"})
        for _ in range(2000):
            await asyncio.sleep(0.02)
            if studio.session.state == "finished" and not studio.queue.waiting:
                break
        return [str(run["state"]) for run in await studio.ask(1, "runs", {})]

    assert len(asyncio.run(both())) == 2
    assert studio.session.graph.nodes["trainer"].params["epochs"] == 1
    assert [len(m["queue"]) for m in studio.told if m["on"] == "queue"][-1] == 0
    run = studio.session.keeper.directory.name
    assert ask(studio, "tag", run=run, tags=["good", " good ", "a,b", ""]) == {"tags": ["good", "a b"]}
    assert next(row["tags"] for row in ask(studio, "runs") if row["run"] == run) == ["good", "a b"]


def test_a_warm_studio_has_run_an_update() -> None:
    warm_up()
    assert "torch" in sys.modules
