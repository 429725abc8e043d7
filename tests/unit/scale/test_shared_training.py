"""What a training of several processes refuses, and how parts are sent; tests/e2e trains with several."""

from __future__ import annotations

from typing import Any, cast

import pytest

from surefoot.errors import ConfigError
from surefoot.learn.config import PPOConfig
from surefoot.nets.config import NetConfig
from surefoot.scale.process_group import ProcessGroup
from surefoot.scale.shared_training import SharedTraining, _split
from surefoot.train.config import CollectConfig
from surefoot.train.spec import RunSpec


class Group:
    rank, size = 0, 2


def a_spec(envs: int, collect: CollectConfig | None = None, **more: Any) -> RunSpec:
    return RunSpec(
        env="CartPole-v1",
        preset="sb3",
        ppo=PPOConfig(envs=envs),
        net=NetConfig(),
        collect=collect or CollectConfig(),
        total_steps=64,
        eval_every=0,
        checkpoint_every=1000,
        **more,
    )


@pytest.mark.parametrize("settings", [{"rollouts": "local:2"}, {"collect": CollectConfig(curiosity="rnd")}])
def test_curiosity_and_rollouts_elsewhere_are_refused(settings: dict[str, Any]):
    spec = a_spec(2, **settings)
    with pytest.raises(ConfigError, match="supports neither curiosity nor rollouts other than here"):
        SharedTraining(spec, cast(ProcessGroup, Group()))


def test_more_processes_than_streams_are_refused():
    with pytest.raises(ConfigError, match="2 workers share envs=1"):
        SharedTraining(a_spec(1), cast(ProcessGroup, Group()))


def test_parts_with_their_lengths_in_front_are_split_again():
    parts = [b"one", b"", b"three"]
    assert _split(b"".join(len(part).to_bytes(8, "little") + part for part in parts)) == parts
