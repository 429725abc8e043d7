from pathlib import Path

import numpy as np
import pytest

from surefoot.telemetry.export import parquet
from surefoot.telemetry.export.formats import to_parquet
from surefoot.telemetry.export.parquet import write_parquet

SAMPLES = Path(__file__).parents[3] / "samples" / "telemetry"

# pyarrow 26 reads these bytes as {"env_steps": [8, 16, 24], "loss": [0.5, nan, -1.25]}, int64 and double.
READ_BY_PYARROW = (
    "504152311500153015302c150615001506150600000800000000000000100000000000000018000000000000001500153015302c150615001506"
    "15060000000000000000e03f000000000000f87f000000000000f4bf1502193c4806736368656d61150400150425001809656e765f7374657073"
    "00150a250018046c6f7373001606191c192c26081c150419250006191809656e765f7374657073150016061652165226080000265a1c150a1925"
    "00061918046c6f73731500160616521652265a000016a401160600280873757265666f6f74007e00000050415231"
)


def test_the_bytes_are_those_that_arrow_reads(tmp_path: Path):
    columns = {"env_steps": np.array([8, 16, 24]), "loss": np.array([0.5, np.nan, -1.25])}
    assert write_parquet(tmp_path / "x.parquet", columns).read_bytes().hex() == READ_BY_PYARROW


def test_the_footer_is_found_from_the_end(tmp_path: Path):
    data = to_parquet(SAMPLES / "v2.0" / "full.ndjson", tmp_path / "x.parquet").read_bytes()
    assert data[:4] == data[-4:] == b"PAR1"
    length = int.from_bytes(data[-8:-4], "little")
    footer = data[-8 - length : -8]
    assert all(name in footer for name in (b"env_steps", b"approx_kl", b"episodes.return_mean", b"seconds.env"))
    assert np.array([64, 128, 192, 256, 320, 384], "<i8").tobytes() in data


def test_many_rows_are_several_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(parquet, "ROWS", 2)
    data = write_parquet(tmp_path / "x.parquet", {"x": np.arange(5)}).read_bytes()
    assert np.array([0, 1], "<i8").tobytes() in data
    assert np.arange(5, dtype="<i8").tobytes() not in data


def test_arrow_reads_what_we_write(tmp_path: Path):
    pq = pytest.importorskip("pyarrow.parquet")
    x, y = np.arange(-3, 40), np.linspace(0, 1, 43)
    table = pq.read_table(write_parquet(tmp_path / "x.parquet", {"x": x, "y": y}))
    np.testing.assert_array_equal(table.column("x").to_numpy(), x)
    np.testing.assert_array_equal(table.column("y").to_numpy(), y)
