"""Many agents learn: those that come and go, and those that play against themselves."""

from __future__ import annotations

import pytest

from surefoot import PPO, evaluate_policy
from surefoot.envs.agents.pettingzoo import agents_world
from surefoot.envs.builtin.connect_four import Connect
from surefoot.envs.builtin.multi_agent_toys import Relay
from surefoot.train.algorithms.opponents import SelfPlayConfig, player_of
from surefoot.train.algorithms.selfplay import SelfPlay, play_match


def test_a_relay_is_learned_and_valued_though_runners_come_and_go():
    model = PPO("MlpPolicy", Relay, n_envs=8, gamma=0.9, seed=1)
    model.learn(40_000)
    assert evaluate_policy(model, agents_world(Relay, 4), 60) == (5.0, 0.0)
    world = agents_world(Relay, 4)
    view = world.reset(0)
    from torch import from_numpy

    from surefoot.nets.policy import PolicyInput

    # At their first step, the runners that are there: perfect play is worth (1 - 0.9^5) / 0.1 = 4.0951.
    value = model.policy.value(PolicyInput(obs={"obs": from_numpy(view.obs["obs"])}))[::3]
    assert value.detach().numpy() == pytest.approx(Relay().value(0.9), rel=0.1)


def test_self_play_beats_the_policy_it_began_with():
    play = SelfPlay(
        Connect(4, 5, 3),
        total_steps=60_000,
        config=SelfPlayConfig(every=10_000),
        settings={"envs": 64, "rollout_steps": 32, "minibatch_size": 256, "epochs": 4, "lr": 1e-3, "ent_coef": 0.02},
    )
    for report in play:
        assert report.first_ratio_error <= 1e-5
    first = player_of(play.policy, play.pool.past[0].weights)
    assert play_match(play.game, play.policy, first, 1000).interval[0] > 0.6


def test_a_model_trained_with_agents_goes_on_from_where_it_was_saved(tmp_path):
    one = PPO("MlpPolicy", Relay, n_envs=4, n_steps=16, seed=2)
    one.learn(1000)
    one.save(tmp_path / "model")
    two = PPO.load(tmp_path / "model", env=Relay)
    assert (two.spec.ppo.envs, two.spec.ppo.rollout_steps) == (12, 16)
    for model in (one, two):
        model.learn(1000, reset_num_timesteps=False)
    assert one.recent_return == two.recent_return
    for a, b in zip(one.policy.parameters(), two.policy.parameters(), strict=True):
        assert a.equal(b)


def test_the_command_line_trains_resumes_and_evaluates_an_env_with_agents(tmp_path, monkeypatch, capsys):
    from surefoot.cli.main import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUREFOOT_RUNS", str(tmp_path / "runs"))
    (tmp_path / "own_relay.py").write_text("from surefoot.envs.builtin.multi_agent_toys import Relay as relay\n")
    assert (
        main(["train", "own_relay:relay", "--name", "r", "--steps", "2000", "--set", "envs=4", "--display", "quiet"])
        == 0
    )
    assert main(["resume", "r", "--steps", "3000", "--env", "own_relay:relay", "--display", "quiet"]) == 0
    assert main(["eval", "r", "--env", "own_relay:relay", "--episodes", "20"]) == 0
    assert "over 20 deterministic episodes" in capsys.readouterr().out
