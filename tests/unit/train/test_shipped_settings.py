"""The settings files under examples/ are what they say they are."""

from __future__ import annotations

from pathlib import Path

from surefoot.data.spaces import Box
from surefoot.train.config import read_settings
from surefoot.train.spec import make_spec

SETTINGS = Path(__file__).resolve().parents[3] / "examples" / "settings"


def test_the_half_cheetah_file_is_the_mujoco_preset_written_out():
    env, action = "HalfCheetah-v5", Box((6,), -1.0, 1.0)
    settings = read_settings(SETTINGS / "half-cheetah.yaml", env)
    total = settings.pop("total_steps")
    from_file = make_spec(env, action, preset_name="sb3", settings=settings, total_steps=total)
    by_default = make_spec(env, action)
    assert (from_file.ppo, from_file.net, from_file.collect) == (by_default.ppo, by_default.net, by_default.collect)
    assert from_file.total_steps == by_default.total_steps == 1_000_000
