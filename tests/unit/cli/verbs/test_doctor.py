"""`surefoot doctor`: what it prints and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from surefoot.cli.main import main
from surefoot.telemetry.schema import Episodes
from surefoot.telemetry.writer import Recorder


def write(where: Path, name: str, ratio_error: float) -> Path:
    path = where / name
    path.mkdir()
    clock = iter(range(1_700_000_000, 1_800_000_000))
    with Recorder(path, name, clock=lambda: float(next(clock))) as recorder:
        recorder.header(env="X-v0", seed=0, config={"ppo": {"lr": 1e-3}}, total_steps=3000)
        for update in range(1, 31):
            m = {"policy_loss": 0.01 * update, "approx_kl": 0.01, "first_ratio_error": ratio_error, "lr": 1e-3}
            m |= {"minibatches": 4.0, "policy_lag": 0.0, "approx_kl_max": 0.02 + 1e-4 * update, "value_loss": update}
            m |= {"approx_kl": 0.01 + 1e-5 * update}
            episodes = Episodes.of([10.0 + update, 12.0 + update], [40, 60])
            recorder.update(env_steps=100 * update, updates=update, m=m, episodes=episodes)
    return path


def test_a_healthy_run_ends_with_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["doctor", str(write(tmp_path, "well", 0.0))]) == 0
    assert "no problems found" in capsys.readouterr().out


def test_a_sick_run_ends_with_1_and_says_where_to_begin(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = write(tmp_path, "sick", 0.5)
    assert main(["doctor", str(path / "telemetry.ndjson")]) == 1
    out = capsys.readouterr().out
    assert "ERROR R02 The learning policy is not the acting policy ← start here" in out
    assert "update 3, 300 env steps" in out
    assert "dropout" in out


def test_scripts_get_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = write(tmp_path, "sick", 0.5)
    assert main(["doctor", str(path), "--json"]) == 1
    (told,) = json.loads(capsys.readouterr().out)["runs"].values()
    assert set(told["findings"][0]) == {
        *("rule", "severity", "status", "since_update", "since_env_steps"),
        *("title", "evidence", "causes", "patch", "primary"),
    }


def test_a_rule_of_ones_own_is_tried_on_a_stored_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = write(tmp_path, "well", 0.0)
    rules = tmp_path / "own.yaml"
    levels = "{warn: {metric: value_loss, limit: 20}}"
    rules.write_text(
        f"rules: {{MINE: {{title: Too much, sign: above, levels: {levels}, patch: {{lr: {{times: 0.5}}}}}}}}"
    )
    assert main(["doctor", str(path), "--rules", str(rules)]) == 1
    out = capsys.readouterr().out
    assert "WARN MINE Too much" in out
    assert "--set lr=0.0005" in out


def test_no_such_run_is_refused_and_no_run_is_a_wrong_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["doctor", "nowhere", "--runs", str(tmp_path)]) == 2
    assert main(["doctor"]) == 64
    assert main(["doctor", "lint"]) == 64


def test_settings_are_looked_at_before_a_run(capsys: pytest.CaptureFixture[str]):
    assert main(["doctor", "lint", "CartPole-v1", "--set", "minibatch_size=4"]) == 1
    assert "L4" in capsys.readouterr().out


def test_evidence_that_a_log_does_not_have_is_null_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    rows = ["time/total_timesteps,rollout/ep_rew_mean,train/approx_kl", *(f"{256 * i},0.0,0.01" for i in range(1, 41))]
    (tmp_path / "progress.csv").write_text("\n".join(rows))
    main(["doctor", str(tmp_path), "--json"])

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    (run,) = json.loads(capsys.readouterr().out, parse_constant=refuse)["runs"].values()
    assert any(f["rule"] == "R10" and f["evidence"]["advantage_std"] is None for f in run["findings"])


def test_the_log_of_a_policy_built_anew_in_every_cycle_is_seen_through(tmp_path, capsys):
    """As a soak that froze was: from the second cycle on every row repeated an earlier one."""
    sample = Path(__file__).parents[3] / "samples/telemetry/v1.1/full.ndjson"
    rows = [json.loads(line) for line in sample.read_text().splitlines()][:2]
    log = tmp_path / "soak.jsonl"
    with log.open("w") as file:
        for cycle in range(12):
            for i, row in enumerate(rows):
                epoch = 2 * cycle + i + 1
                now = {"epoch": epoch, "cycle_id": cycle, "steps": 160 * epoch, "log_stream_offset": epoch}
                file.write(json.dumps(row | now) + "\n")
    assert main(["doctor", str(log), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)["runs"][str(log)]["findings"]
    assert told[0]["rule"] == "R17"
    assert told[0]["primary"]


def test_a_record_without_an_update_is_not_called_healthy(tmp_path, capsys):
    log = tmp_path / "empty.ndjson"
    log.write_text("")
    assert main(["doctor", str(log)]) == 0
    assert "no update is recorded yet" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["root:x:0:0:root:/root:/bin/bash\n", "\0\1\2", "a;b\n"])
def test_a_file_that_is_no_record_is_not_called_a_broken_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
):
    (tmp_path / "file").write_text(text)
    assert main(["doctor", str(tmp_path / "file")]) == 2
    assert "neither a record of Surefoot nor a log that is known; progress.csv" in capsys.readouterr().err
    assert main(["doctor", str(tmp_path)]) == 2
    assert "no log of another library; progress.csv" in capsys.readouterr().err
