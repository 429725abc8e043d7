import csv
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from surefoot.errors import TelemetryError
from surefoot.telemetry.export.formats import TensorBoardMirror, to_csv, to_monitor_csv, to_tensorboard
from surefoot.telemetry.schema import Episodes
from surefoot.telemetry.writer import Recorder

Open = Callable[..., Recorder]


@pytest.fixture
def run(tmp_path: Path, open_recorder: Open, clock: Any) -> Path:
    """Two updates of 100 steps, 2 seconds apart."""
    with open_recorder() as recorder:
        recorder.header(env="CartPole-v1", seed=1, config={})
        for number in (1, 2):
            clock.now += 2
            recorder.episode(return_=number * 4.0, length=9, env=0, env_steps=number * 100 - 1, terminated=True)
            recorder.update(
                env_steps=number * 100,
                updates=number,
                m={"entropy": 0.5, "value_loss": 3.0, "approx_kl": 0.25, "samples": 100, "loss": None},
                episodes=Episodes.of([number * 4.0], [9]),
            )
        recorder.eval(returns=[6.0, 10.0], lengths=[9, 9])
    return tmp_path


def scalars(folder: Path) -> dict[str, list[tuple[int, float]]]:
    events = EventAccumulator(str(folder))
    events.Reload()
    return {tag: [(s.step, s.value) for s in events.Scalars(tag)] for tag in events.Tags()["scalars"]}


def test_tensorboard_has_both_families_of_names(run: Path, tmp_path: Path):
    tags = scalars(to_tensorboard(run, tmp_path / "tb"))
    assert tags["train/approx_kl"] == tags["losses/approx_kl"] == [(100, 0.25), (200, 0.25)]
    assert tags["rollout/ep_rew_mean"] == tags["charts/episodic_return"] == [(100, 4.0), (200, 8.0)]
    assert tags["eval/mean_reward"] == tags["eval/episodic_return"] == [(200, 8.0)]
    assert tags["time/fps"] == tags["charts/SPS"] == [(100, 50.0), (200, 50.0)]
    assert tags["surefoot/samples"] == [(100, 100.0), (200, 100.0)]


def test_numbers_are_scaled_to_their_other_meaning(run: Path, tmp_path: Path):
    tags = scalars(to_tensorboard(run, tmp_path / "tb"))
    assert tags["train/entropy_loss"][0][1] == -0.5  # SB3 logs the loss, CleanRL the entropy
    assert tags["losses/entropy"][0][1] == 0.5
    assert tags["train/value_loss"][0][1] == 6.0  # SB3 logs the whole squared error
    assert tags["losses/value_loss"][0][1] == 3.0


def test_a_number_that_was_not_finite_is_no_point(run: Path, tmp_path: Path):
    assert "train/loss" not in scalars(to_tensorboard(run, tmp_path / "tb"))


def test_a_mirror_follows_a_run_and_hides_what_is_made_again(tmp_path: Path, open_recorder: Open, clock: Any):
    for first, purge in ((1, None), (2, 150)):
        recorder = open_recorder(mirrors=[TensorBoardMirror(tmp_path / "tb", purge_step=purge)])
        for number in (first, first + 1):
            clock.now += 1
            recorder.update(env_steps=number * 100, updates=number, m={"lr": float(first)})
        recorder.close("interrupted")
    # The second file sorts after the first by its name's counter, as it would by its time.
    assert scalars(tmp_path / "tb")["train/learning_rate"] == [(100, 1.0), (200, 2.0), (300, 2.0)]


def test_a_missing_tensorboard_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "tensorboard.compat.proto.event_pb2", None)
    with pytest.raises(TelemetryError, match=r'pip install "surefoot\[tensorboard\]"'):
        TensorBoardMirror(tmp_path / "tb")


def test_progress_csv_has_a_row_an_update(run: Path, tmp_path: Path):
    with to_csv(run, tmp_path / "progress.csv").open() as file:
        first, second = csv.DictReader(file)
    assert (first["time/total_timesteps"], first["train/approx_kl"], first["rollout/ep_rew_mean"]) == (
        "100",
        "0.25",
        "4.0",
    )
    assert (first["eval/mean_reward"], second["eval/mean_reward"]) == ("", "8.0")
    assert not any(name.startswith(("losses/", "charts/")) for name in first)


def test_a_monitor_file_has_a_row_an_episode(run: Path, tmp_path: Path):
    head, columns, *rows = to_monitor_csv(run, tmp_path / "monitor.csv").read_text().splitlines()
    assert json.loads(head.removeprefix("#")) == {"t_start": 1_700_000_000.0, "env_id": "CartPole-v1"}
    assert columns == "r,l,t"
    assert rows == ["4.0,9,2.0", "8.0,9,4.0"]
