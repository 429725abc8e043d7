"""The files of a graph's run: a stopped run is resumed from its checkpoint, to the same digits."""

import time

from surefoot.server.studio.run_library import Library

from .session_cases import small, started, stopped_at


def test_a_stopped_run_is_taken_up_from_its_checkpoint(tmp_path) -> None:
    graph = small()
    graph.run.total_steps = 8 * 8 * 400
    session, heard = started(graph, tmp_path, paused=True)
    for number in (1, 2, 3):
        session.command("update")
        stopped_at(heard, f"update {number}")
    session.close()
    library = Library(tmp_path)
    name = library.rows()[0]["run"]
    again, heard = started(library.graph_of(name), tmp_path, paused=True, resume=library.get(name))
    again.command("update")
    stopped_at(heard, "update 4")
    assert again.to_json()["tick"] == 32
    again.close()
    assert library.curves(name)["x"]["updates"][-1] == 4
    assert library.compare([name], "approx_kl")["groups"][0]["count"] == 1


def test_a_run_that_is_stopped_in_mid_rollout_ends_with_the_weights_of_one_that_is_not(tmp_path) -> None:
    whole, heard = started(small(), tmp_path / "whole")
    heard.until(whole, "finished")
    whole.close()
    first, heard = started(small(), tmp_path / "parts", paused=True)
    first.command("update")
    stopped_at(heard, "update 1")
    for number in range(3):
        first.command("tick")
        while first.to_json()["tick"] < 9 + number:
            time.sleep(0.005)
    first.close()
    library = Library(tmp_path / "parts")
    (row,) = library.rows()
    second, heard = started(library.graph_of(row["run"]), tmp_path / "parts", resume=library.get(row["run"]))
    heard.until(second, "finished")
    second.close()
    assert second.engine.sha256() == whole.engine.sha256()
    assert first.engine.sha256() != whole.engine.sha256()
