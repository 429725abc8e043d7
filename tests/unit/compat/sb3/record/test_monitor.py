import json

import pytest
from tests.unit.compat.sb3.small_env import CountingEnv

from surefoot.compat.sb3.record.monitor import LoadMonitorResultsError, Monitor, get_monitor_files


def test_an_episode_is_in_the_info_and_in_the_file(tmp_path):
    env = Monitor(CountingEnv(2), str(tmp_path / "0"))
    with pytest.raises(RuntimeError, match="needs reset"):
        env.step(0)
    env.reset()
    env.step(0)
    info = env.step(0)[4]
    env.close()
    assert (info["episode"]["r"], info["episode"]["l"]) == (2.0, 2)
    first, names, row = (tmp_path / "0.monitor.csv").read_text().splitlines()
    assert set(json.loads(first[1:])) == {"t_start", "env_id"}
    assert names == "r,l,t"
    assert row.startswith("2.0,2,")
    assert len(get_monitor_files(tmp_path)) == 1


def test_a_folder_without_files_is_an_error(tmp_path):
    pytest.importorskip("pandas", reason="pandas is not installed")
    from surefoot.compat.sb3.record.monitor import load_results

    with pytest.raises(LoadMonitorResultsError):
        load_results(tmp_path)
