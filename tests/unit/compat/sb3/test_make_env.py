from tests.unit.compat.sb3.small_env import CountingEnv

from surefoot.compat.sb3.make_env import make_vec_env
from surefoot.compat.sb3.record.monitor import Monitor


def test_all_arguments_arrive(tmp_path):
    env = make_vec_env(
        CountingEnv,
        2,
        seed=7,
        monitor_dir=tmp_path,
        env_kwargs={"length": 2},
        monitor_kwargs={"allow_early_resets": False},
    )
    env.reset()
    assert env.get_attr("length") == [2, 2]
    assert [env.get_attr("seeds")[i] for i in (0, 1)] == [[7], [8]]
    assert env.env_is_wrapped(Monitor) == [True, True]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0.monitor.csv", "1.monitor.csv"]
