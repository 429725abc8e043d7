"""The shared-reward teams and the relay, with rewards computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.envs.builtin.multi_agent_toys import SHARED_REWARD, Relay, SharedReward
from surefoot.envs.make import make_world
from surefoot.errors import ConfigError, EnvError


def test_a_team_shares_one_reward_right_answers_plus_noise():
    world = SharedReward("team", 8, central=True, team=4, cues=4, noise=3.0)
    view = world.reset(0)
    cue = view.obs["obs"].argmax(axis=1)
    noise = view.obs["state"].reshape(8, 4, 5)[:, :, 4].sum(axis=1)
    answer = cue.copy()
    answer[5] = (answer[5] + 1) % 4
    step = world.step(answer)
    assert step.reward[:4] == pytest.approx(1.0 + noise[:4], abs=1e-6)
    assert step.reward[4:] == pytest.approx(0.75 + noise[4:], abs=1e-6)
    assert step.terminated.all()
    assert step.stats["success"].tolist() == [1, 1, 1, 1, 1, 0, 1, 1]


def test_the_state_is_all_cues_and_noise_terms_and_the_same_for_the_whole_team():
    world = SharedReward("team", 8, central=True, team=4)
    view = world.reset(3)
    state = view.obs["state"].reshape(8, 4, 5)
    for stream in range(8):
        assert np.array_equal(state[stream], state[stream // 4 * 4])
        assert np.array_equal(state[stream, stream % 4, :4], view.obs["obs"][stream])


def test_noise_has_its_standard_deviation_and_is_not_observed():
    world = SharedReward("team", 4000, noise=3.0)
    view = world.reset(0)
    reward = world.step(view.obs["obs"].argmax(axis=1)).reward[::4]
    assert reward.mean() == pytest.approx(1.0, abs=0.4)
    assert reward.std() == pytest.approx(3.0, rel=0.1)
    assert list(world.observation) == ["obs"]


def test_the_last_team_may_be_smaller():
    world = SharedReward("team", 5, central=True, team=4, noise=0.0)
    cue = world.reset(0).obs["obs"].argmax(axis=1)
    step = world.step((cue + 1) % 4)
    assert step.reward.tolist() == [0.0] * 5
    view = step.view
    assert not view.obs["state"][4].reshape(4, 5)[1:].any(), "three members are missing"
    step = world.step(view.obs["obs"].argmax(axis=1))
    assert step.reward.tolist() == [1.0] * 5


@pytest.mark.parametrize("name", SHARED_REWARD)
def test_a_team_is_made_by_its_id_and_continues_from_its_state(name: str):
    world, again = make_world(name, 8), make_world(name, 8)
    world.reset(5)
    world.step(np.zeros(8, np.int64))
    again.set_state(world.state())
    for _ in range(5):
        one, two = world.step(np.arange(8) % 4), again.step(np.arange(8) % 4)
        assert one.reward.tolist() == two.reward.tolist()
        for part in one.view.obs:
            assert np.array_equal(one.view.obs[part], two.view.obs[part])
    with pytest.raises(EnvError, match="from 0 to below 4"):
        world.step(np.full(8, 4))


def test_a_relay_pays_for_the_cue_and_says_what_perfect_play_is_worth():
    relay = Relay(runners=3, life=3, stride=2, laps=1)
    obs, _ = relay.reset(seed=0)
    total = dict.fromkeys(relay.possible_agents, 0.0)
    while relay.agents:
        obs, reward, _, _, _ = relay.step({agent: obs[agent][1:].argmax() for agent in relay.agents})
        for agent, amount in reward.items():
            total[agent] += amount
    assert total == dict.fromkeys(relay.possible_agents, 3.0)
    assert relay.value(0.5) == pytest.approx(1 + 0.5 + 0.25)
    assert relay.value(0.5, age=2) == pytest.approx(1.0)


@pytest.mark.parametrize(("life", "stride"), [(6, 2), (1, 2), (3, 0)])
def test_a_relay_whose_runners_would_meet_themselves_is_refused(life: int, stride: int):
    with pytest.raises(ConfigError, match="stride must be at most life"):
        Relay(runners=3, life=life, stride=stride)
