"""The runs on disk."""

import pytest

from surefoot.errors import RunError, RunNotFound
from surefoot.server.studio.run_library import Library

from .session_cases import small, started


def test_a_run_of_the_studio_finishes_and_is_an_ordinary_run(tmp_path) -> None:
    session, heard = started(small(), tmp_path)
    heard.until(session, "finished")
    session.close()
    assert session.to_json()["updates"] == 6
    assert [row["update"] for row in session.curves.to_json()] == [1, 2, 3, 4, 5, 6]
    (row,) = Library(tmp_path).rows()
    assert (row["state"], row["env"], row["env_steps"], row["graph"]) == ("finished", "CartPole-v1", 384, True)
    page = Library(tmp_path).curves(row["run"])
    assert page["x"]["updates"][-1] == 6
    assert "CartPole-v1" in Library(tmp_path).report(row["run"])
    assert heard.all[-1]["state"] == "finished"


@pytest.mark.parametrize("name", ["..", ".", "a/b", "nobody", ""])
def test_a_name_that_is_no_run_here_is_refused(tmp_path, name) -> None:
    with pytest.raises(RunNotFound):
        Library(tmp_path).get(name)


def test_comparing_no_runs_is_refused(tmp_path) -> None:
    with pytest.raises(RunError, match="select runs"):
        Library(tmp_path).compare([], "return")


def test_tags_that_are_no_list_are_refused(tmp_path) -> None:
    with pytest.raises(RunError, match="must be a list of words"):
        Library(tmp_path).tag("run", 5)  # type: ignore[arg-type]


def test_a_run_is_moved_to_the_trash_unless_it_is_running(tmp_path) -> None:
    session, heard = started(small(), tmp_path, paused=True)
    heard.until(session, "paused")
    library = Library(tmp_path)
    (row,) = library.rows()
    with pytest.raises(RunError, match="is running"):
        library.move_to_trash(row["run"])
    session.close()
    library.move_to_trash(row["run"])
    assert library.rows() == []
    assert len(list((tmp_path / ".trash").iterdir())) == 1
