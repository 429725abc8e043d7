from __future__ import annotations

import json
import os
import re

import pytest

from surefoot.errors import RunError, RunNotFound
from surefoot.train.rundir.rundir import RunDir, find_run, list_runs, new_run_dir, runs_root


def a_run(root, name):
    directory = new_run_dir("CartPole-v1", 0, root=root, name=name)
    directory.header.write_text(json.dumps({"spec": {}}))
    return directory


def test_a_new_run_is_named_after_env_time_and_seed(tmp_path):
    directory = new_run_dir("surefoot/CartPoleContinuous-v0", 3, root=tmp_path)
    assert re.fullmatch(r"surefoot-CartPoleContinuous-v0-\d{8}-\d{6}-s3", directory.name)
    assert directory.path.is_dir()


def test_two_runs_of_the_same_second_do_not_share_a_directory(tmp_path, monkeypatch):
    monkeypatch.setattr("time.strftime", lambda form: "20260101-000000")
    names = [new_run_dir("E-v0", 0, root=tmp_path).name for _ in range(3)]
    assert names == ["E-v0-20260101-000000-s0", "E-v0-20260101-000000-s0-2", "E-v0-20260101-000000-s0-3"]


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "a b", "a\nb", "😀"])
def test_a_name_that_is_a_path_is_refused(tmp_path, name):
    with pytest.raises(RunError, match="not a valid name for a run"):
        new_run_dir("E-v0", 0, root=tmp_path, name=name)


def test_a_name_may_use_any_script_and_has_one_form(tmp_path):
    assert new_run_dir("E-v0", 0, root=tmp_path, name="été-試験-2").name == "été-試験-2"
    decomposed = "e\N{COMBINING ACUTE ACCENT}te\N{COMBINING ACUTE ACCENT}"
    assert new_run_dir("E-v0", 0, root=tmp_path, name=decomposed).name == "\u00e9t\u00e9"


def test_a_name_that_is_too_long_is_cited_in_part_with_the_limit(tmp_path):
    with pytest.raises(RunError, match=r"^'x{40}'… has 250 bytes; the name of a run has at most 200$"):
        new_run_dir("E-v0", 0, root=tmp_path, name="x" * 250)


def test_a_named_run_is_not_written_over(tmp_path):
    a_run(tmp_path, "mine")
    with pytest.raises(RunError, match="surefoot resume"):
        new_run_dir("E-v0", 0, root=tmp_path, name="mine")


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="--runs DIR"):
        new_run_dir("E-v0", 0, root=tmp_path / "file")


def test_a_run_is_found_by_name_by_directory_and_by_its_header(tmp_path):
    run = a_run(tmp_path, "mine")
    assert find_run("mine", tmp_path) == find_run(run.path, tmp_path) == find_run(run.header, tmp_path) == run


def test_a_wrong_name_gets_the_right_one_suggested(tmp_path):
    a_run(tmp_path, "cartpole-one")
    with pytest.raises(RunNotFound, match="did you mean cartpole-one"):
        find_run("cartpole-on", tmp_path)


def test_without_runs_one_is_told_where_to_look(tmp_path):
    with pytest.raises(RunNotFound, match="surefoot runs"):
        find_run("x", tmp_path / "nowhere")


def test_runs_are_listed_oldest_first_and_other_directories_are_not(tmp_path):
    for age, name in ((100, "b"), (200, "a")):
        os.utime(a_run(tmp_path, name).header, (1e9 - age, 1e9 - age))
    (tmp_path / "not-a-run").mkdir()
    assert [run.name for run in list_runs(tmp_path)] == ["a", "b"]
    assert list_runs(tmp_path / "nowhere") == []


def test_runs_are_kept_where_told_then_where_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.delenv("SUREFOOT_RUNS", raising=False)
    assert str(runs_root()) == "runs"
    monkeypatch.setenv("SUREFOOT_RUNS", "elsewhere")
    assert str(runs_root()) == "elsewhere"
    assert runs_root(tmp_path) == tmp_path


@pytest.mark.parametrize("text", ["", "[]", "{}", "{", "\xff"])
def test_a_header_that_is_none_is_refused_in_a_sentence(tmp_path, text):
    directory = RunDir(tmp_path)
    directory.header.write_bytes(text.encode("latin-1"))
    with pytest.raises(RunError, match=r"run\.json"):
        directory.read_header()


def test_a_directory_without_a_header_is_no_run(tmp_path):
    with pytest.raises(RunNotFound, match="not a run"):
        RunDir(tmp_path).read_header()


def test_a_header_that_is_nested_too_deeply_is_one_sentence(tmp_path):
    (tmp_path / "run.json").write_text('{"spec": ' + "[" * 100_000 + "]" * 100_000 + "}")
    with pytest.raises(RunError, match="run.json cannot be read"):
        RunDir(tmp_path).read_header()
