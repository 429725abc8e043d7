"""One copy of an env with many agents: who is there, who ended, who is played by others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from surefoot.envs.agents.stepping import ParallelCopy, RandomOthers, is_many_agents
from surefoot.envs.builtin.multi_agent_toys import Relay
from surefoot.errors import EnvError


def test_an_env_with_agents_is_one_and_its_class_is_not():
    assert is_many_agents(Relay())
    assert not is_many_agents(Relay)


def test_an_agent_that_ends_is_reported_once_and_no_longer_seen():
    copy = ParallelCopy(Relay(runners=3, life=2, stride=1, laps=1), ("runner_0", "runner_1", "runner_2"), lambda *_: 0)
    assert set(copy.reset(0).obs) == {"runner_0"}
    copy.step({"runner_0": 0})
    moment = copy.step({"runner_0": 0, "runner_1": 0})
    assert moment.ended["runner_0"][0] is True
    assert set(moment.obs) == {"runner_1", "runner_2"}
    assert not moment.over


def test_agents_that_are_left_out_are_played_by_the_others():
    asked: list[Any] = []
    copy = ParallelCopy(Relay(runners=3, life=3, stride=2), ("runner_1",), lambda agent, *_: asked.append(agent) or 0)
    copy.reset(0)
    copy.step({})
    assert asked == ["runner_0"]


def test_an_agent_that_leaves_without_an_end_is_an_error():
    env = Relay()
    copy = ParallelCopy(env, env.possible_agents, lambda *_: 0)
    copy.reset(0)

    def leave(actions: Any) -> Any:
        env.agents = []
        return {}, {}, {}, {}, {}

    env.step = leave  # type: ignore[method-assign]
    with pytest.raises(EnvError, match="runner_0 left the env without having ended"):
        copy.step({"runner_0": 0})


def test_random_others_take_allowed_actions_only():
    others = RandomOthers(Relay(cues=4))
    mask = np.array([0, 1, 0, 1], np.int8)
    assert {int(others("runner_0", None, {"action_mask": mask})) for _ in range(40)} == {1, 3}
