"""A run as one row: running, stopped, not recorded, unreadable."""

import json
from pathlib import Path

from surefoot.learn.checkpoint.atomic_files import RunLock
from surefoot.telemetry.doctor.findings import Finding
from surefoot.telemetry.writer import Recorder
from surefoot.train.rundir.run_summary import is_locked, row_of
from surefoot.train.rundir.rundir import RunDir


def a_run(path: Path, **header: object) -> RunDir:
    (path / "run.json").write_text(json.dumps({"spec": {"env": "CartPole-v1"}, **header}))
    return RunDir(path)


def test_a_run_without_a_record_that_wanted_none_is_not_recorded(tmp_path: Path) -> None:
    row = row_of(a_run(tmp_path, record=False))
    assert (row["env"], row["state"], row["finding"]) == ("CartPole-v1", "not recorded", None)


def test_a_record_without_an_end_is_running_only_while_it_is_locked(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    recorder = Recorder(run.telemetry, "run")
    recorder.header(env="CartPole-v1", seed=0, config={})
    recorder.sync()
    assert row_of(run)["state"] == "stopped without an end"
    with RunLock(tmp_path):
        assert is_locked(run)
        assert row_of(run)["state"] == "running"
    recorder.close("finished", "")
    assert row_of(run)["state"] == "finished"


def test_the_finding_is_the_cause_also_if_it_opened_after_its_consequence(tmp_path: Path) -> None:
    run = a_run(tmp_path)
    recorder = Recorder(run.telemetry, "run")
    recorder.header(env="CartPole-v1", seed=0, config={})
    for rule, update in (("R09", 10), ("R27", 12)):
        finding = Finding(rule=rule, severity="error", title=f"title of {rule}", since_update=update, primary=True)
        recorder.finding(**finding.to_json())
    recorder.close("finished", "")
    assert row_of(run)["finding"] == "title of R27"
