"""TensorBoard's files are read without TensorBoard; a file of its own writer is the judge."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot.errors import TelemetryError
from surefoot.telemetry.foreign.event_file import read_events


def written(directory: Path) -> Path:
    writer = pytest.importorskip("torch.utils.tensorboard").SummaryWriter(str(directory))
    writer.add_scalar("losses/approx_kl", 0.25, 7)
    writer.add_scalar("charts/episodic_return", -3.0, 2**40)
    writer.add_text("hyperparameters", "|gamma|0.9|", 0)
    writer.close()
    return next(directory.glob("*tfevents*"))


def test_scalars_and_texts_of_tensorboards_writer_come_back(tmp_path: Path):
    events = list(read_events(written(tmp_path)))
    assert (7, "losses/approx_kl", 0.25) in events
    assert (2**40, "charts/episodic_return", -3.0) in events
    assert any(tag.startswith("hyperparameters") and value == "|gamma|0.9|" for _, tag, value in events)


def test_a_torn_end_is_left_out(tmp_path: Path):
    path = written(tmp_path)
    whole = list(read_events(path))
    path.write_bytes(path.read_bytes()[:-5])
    assert list(read_events(path)) == whole[:-1]


def test_another_file_is_refused(tmp_path: Path):
    (path := tmp_path / "x").write_bytes(b"this is certainly not an event file of TensorBoard")
    with pytest.raises(TelemetryError, match="not a TensorBoard event file"):
        list(read_events(path))
