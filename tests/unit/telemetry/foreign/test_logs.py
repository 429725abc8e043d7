"""Logs of SB3, CleanRL and RLlib become records that the doctor examines."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from surefoot.errors import TelemetryError
from surefoot.telemetry.doctor.doctor import examine_records
from surefoot.telemetry.foreign.logs import find_log, gradient_steps, read_log
from surefoot.telemetry.schema import UpdateRecord


def sb3_csv(path: Path, *, kl: float = 0.01, rate: float = 3e-4, rows: int = 40) -> Path:
    names = [
        "time/total_timesteps",
        "rollout/ep_rew_mean",
        "train/approx_kl",
        "train/entropy_loss",
        "train/learning_rate",
    ]
    names += ["train/explained_variance", "train/value_loss", "train/clip_range"]
    lines = [",".join(names)]
    for k in range(1, rows + 1):
        # The first row of SB3 has no losses yet.
        losses = [kl + 1e-3 * k, -0.6 - 1e-3 * k, rate, 0.5, 2.0, 0.2] if k > 1 else [""] * 6
        lines.append(",".join(map(str, [2048 * k, 20 + 0.1 * (k % 3), *losses])))
    path.write_text("\n".join(lines) + "\n")
    return path


def first_rule(path: Path) -> str | None:
    examination = examine_records(read_log(path).records())
    return next((f.rule for f in examination.findings if f.primary), None)


def test_a_table_of_sb3_has_our_names_signs_and_the_scale_of_the_targets(tmp_path: Path):
    log = read_log(sb3_csv(tmp_path / "progress.csv"))
    row = log.rows[5]
    assert row["entropy"] == pytest.approx(0.606)
    assert row["env_steps"] == 2048 * 6
    assert row["target_std"] == pytest.approx((2.0 / 0.5) ** 0.5)
    assert log.missing()


def test_a_learning_rate_that_replaces_the_policy_is_named(tmp_path: Path):
    assert first_rule(sb3_csv(tmp_path / "progress.csv", kl=3.0)) == "R03X"
    assert first_rule(sb3_csv(tmp_path / "progress.csv", kl=3.0, rate=0.3)) == "S01"


def sb3_model(path: Path, **changes: object) -> Path:
    """A model as SB3 saves it: its settings are the JSON text `data` of a zip file; schedules are objects in it."""
    values = {"gamma": 0.99, "ent_coef": 0.0, "n_steps": 64, "n_envs": 4, "batch_size": 64, "n_epochs": 4}
    values |= {"clip_range": {":type:": "<class 'function'>", ":serialized:": "gASV"}, "vf_coef": 0.5, **changes}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", json.dumps(values))
    return path


def test_the_model_beside_a_log_of_sb3_has_its_settings(tmp_path: Path):
    log = sb3_csv(tmp_path / "progress.csv")
    assert first_rule(log) == "R07"
    sb3_model(tmp_path / "model.zip")
    settings = read_log(log).settings
    losses = {"gamma": 0.99, "ent_coef": 0.0, "vf_coef": 0.5}
    assert settings == losses | {"rollout_steps": 64, "envs": 4, "minibatch_size": 64, "epochs": 4}
    assert gradient_steps(settings) == 16
    sb3_model(tmp_path / "model.zip", vf_coef=0.0)
    assert first_rule(log) == "S06"


@pytest.mark.parametrize("content", [b"not a zip", b""])
def test_another_zip_beside_a_log_is_ignored(tmp_path: Path, content: bytes):
    (tmp_path / "other.zip").write_bytes(content)
    assert read_log(sb3_csv(tmp_path / "progress.csv")).settings == {}


@pytest.mark.parametrize(
    ("settings", "steps"),
    [
        ({}, None),
        ({"epochs": 4}, None),
        ({"epochs": 4, "minibatches": 4}, 16),
        ({"epochs": 2, "minibatch_size": 100, "envs": 4, "rollout_steps": 64}, 6),
        ({"epochs": 2, "minibatch_size": 100, "envs": 4}, None),
    ],
)
def test_the_gradient_steps_of_an_update_follow_from_the_settings(settings: dict[str, int], steps: int | None):
    assert gradient_steps(settings) == steps


def test_a_discount_in_the_model_is_judged_by_the_length_of_episodes(tmp_path: Path):
    log = sb3_csv(tmp_path / "progress.csv")
    text = log.read_text().splitlines()
    lines = [f"{line},{'rollout/ep_len_mean' if i == 0 else 20}" for i, line in enumerate(text)]
    log.write_text("\n".join(lines) + "\n")
    sb3_model(tmp_path / "model.zip", gamma=0.5)
    assert first_rule(log) == "S02"


def test_rllibs_nested_results_and_params_are_read(tmp_path: Path):
    stats = {"mean_kl_loss": 0.01, "entropy": 0.5, "vf_explained_var": 0.3, "vf_loss": 1.0}
    rows = [
        {
            "num_env_steps_sampled_lifetime": 4000 * k,
            "env_runners": {"episode_return_mean": 20.0},
            "learners": {"default_policy": stats},
        }
        for k in range(1, 31)
    ]
    (tmp_path / "result.json").write_text("\n".join(json.dumps(row) for row in rows) + '\n{"torn')
    (tmp_path / "params.json").write_text(json.dumps({"gamma": 0.3, "env": "CartPole-v1"}))
    log = read_log(tmp_path / "result.json")
    assert len(log.rows) == 30
    assert log.rows[0]["approx_kl"] == 0.01
    assert log.settings == {"gamma": 0.3, "env": "CartPole-v1"}


def test_cleanrls_events_have_episodes_between_losses(tmp_path: Path):
    writer = pytest.importorskip("torch.utils.tensorboard").SummaryWriter(str(tmp_path))
    writer.add_text("hyperparameters", "|param|value|\n|-|-|\n|gamma|0.99|\n|clip_coef|7|")
    for k in range(1, 31):
        for episode in range(3):
            writer.add_scalar("charts/episodic_return", 20.0 + episode, 512 * k - episode)
        writer.add_scalar("losses/approx_kl", 0.01, 512 * k)
        writer.add_scalar("losses/value_loss", 1.0, 512 * k)
    writer.close()
    log = read_log(find_log(tmp_path) or tmp_path)
    assert [row["return"] for row in log.rows] == [21.0] * 30
    assert log.settings["clip"] == 7.0
    assert first_rule(next(tmp_path.glob("*tfevents*"))) == "S04"


def test_a_run_of_cleanrl_that_learns_at_once_is_compared_with_its_first_episodes_only(tmp_path: Path):
    writer = pytest.importorskip("torch.utils.tensorboard").SummaryWriter(str(tmp_path))
    for k in range(1, 41):
        for episode in range(4):
            writer.add_scalar("charts/episodic_return", min(20.0 * k, 200.0) + 10.0 * (k % 2), 512 * k - episode)
        writer.add_scalar("losses/approx_kl", 0.01, 512 * k)
        writer.add_scalar("losses/value_loss", 1.0, 512 * k)
    writer.close()
    log = read_log(find_log(tmp_path) or tmp_path)
    counts = [record.episodes.count for record in log.records() if isinstance(record, UpdateRecord) and record.episodes]
    assert counts == [4] * 40
    assert first_rule(next(tmp_path.glob("*tfevents*"))) is None


def test_the_newest_table_of_a_directory_is_found_and_others_are_refused(tmp_path: Path):
    assert find_log(tmp_path) is None
    (tmp_path / "a").mkdir()
    sb3_csv(tmp_path / "a" / "progress.csv")
    assert find_log(tmp_path) == tmp_path / "a" / "progress.csv"
    (tmp_path / "progress.csv").write_text("a,b\n1,2\n")
    with pytest.raises(TelemetryError, match="no row with a number of steps"):
        read_log(tmp_path / "progress.csv")
    with pytest.raises(TelemetryError, match="no log that is known"):
        read_log(tmp_path / "x.txt")


def test_a_table_of_any_name_and_without_groups_is_read_if_it_is_named(tmp_path: Path):
    table = tmp_path / "run-7.csv"
    table.write_text("total timesteps,ep_rew_mean,entropy_loss,value_loss\n2048,1.5,-0.6,2.0\n\n4096,2.5,-0.5,1.0\n")
    log = read_log(table)
    assert [row["return"] for row in log.rows] == [1.5, 2.5]
    assert [row["entropy"] for row in log.rows] == [0.6, 0.5]
    assert find_log(table) == table
    assert find_log(tmp_path) is None  # a table of unknown name in a directory may be anything


def test_a_header_that_is_repeated_with_new_columns_is_no_row(tmp_path: Path):
    table = tmp_path / "progress.csv"
    table.write_text(
        "train/value_loss,time/total timesteps\n2,512\ntrain/value_loss,time/total timesteps,lr\n1,1024,3\n"
    )
    assert [(row["env_steps"], row["value_loss"]) for row in read_log(table).rows] == [(512, 2), (1024, 1)]


def test_a_table_about_something_else_is_refused(tmp_path: Path):
    for text in ("r,l,t\n1,2,3\n", "a;b\n1;2\n", ""):
        (tmp_path / "monitor.csv").write_text(text)
        with pytest.raises(TelemetryError, match="no row with a number of steps and a metric"):
            read_log(tmp_path / "monitor.csv")


def test_the_tags_of_an_old_ray_tune_are_known(tmp_path: Path):
    with pytest.importorskip("torch.utils.tensorboard").SummaryWriter(str(tmp_path)) as writer:
        for step in (500, 900):
            writer.add_scalar("ray/tune/episode_reward_mean", 1.0, step)
            writer.add_scalar("ray/tune/info/learner/vf_loss", 2.0, step)
    rows = read_log(next(tmp_path.glob("*tfevents*"))).rows
    assert [(row["env_steps"], row["return"], row["value_loss"]) for row in rows] == [(500, 1.0, 2.0), (900, 1.0, 2.0)]
