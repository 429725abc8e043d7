"""Settings that do not go together are told before anything is trained."""

from __future__ import annotations

from typing import Any

import pytest
from torch import nn

from surefoot.envs.make import make_world
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.train.diagnose.lint import lint
from surefoot.train.spec import RunSpec, make_spec


def spec(env: str = "CartPole-v1", **settings: Any) -> RunSpec:
    base = {"envs": 2, "rollout_steps": 64, "minibatch_size": 64, "epochs": 4} | settings
    return make_spec(env, make_world(env, 1).action, preset_name="sb3", settings=base, total_steps=10_000)


def rules(run: RunSpec) -> dict[str, str]:
    return {f.rule: f.severity for f in lint(run, make_world(run.env, run.ppo.envs))}


def test_settings_that_go_together_have_nothing_said_against_them():
    assert rules(spec()) == {}


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        ("L1", {"minibatch_size": 50}),
        ("L2", {"epochs": 10}),
        ("L4", {"minibatch_size": 4}),
        ("L9", {"ent_coef": 0.5}),
        ("S01", {"lr": 0.1}),
        ("S02", {"gamma": 0.5}),
        ("S03", {"ent_coef": 0.5}),
        ("S04", {"clip": 5.0}),
        ("S05", {"lam": 0.1}),
        ("S06", {"vf_coef": 100.0}),
        ("S07", {"max_grad_norm": 1e-4}),
        ("S08", {"epochs": 100}),
        ("S09", {"epochs": 1, "minibatch_size": 128}),
        ("S13", {"hidden": "2"}),
        ("L7", {"lr": {"kind": "piecewise", "points": [[0, 0.001], [0.1, 0]]}}),
    ],
)
def test_each_is_told(rule: str, settings: dict[str, Any]):
    assert rule in rules(spec(**settings))


def test_a_discount_that_forgets_most_of_an_episode_is_told():
    assert "L5" in rules(spec("Pendulum-v1", gamma=0.5))
    assert "L5" not in rules(spec("Pendulum-v1", gamma=0.95))


def test_published_settings_are_the_source_of_what_is_told():
    (finding,) = [f for f in lint(spec(lr=0.1), make_world("CartPole-v1", 2)) if f.rule == "S01"]
    assert finding.severity == "warn"
    assert "RL Zoo" in finding.causes[0]
    assert finding.patch == {"lr": 3e-4}
    assert finding.since_update == 0


def test_large_returns_that_nothing_scales_are_told():
    assert "L8" in rules(spec("Pendulum-v1", gamma=0.999))
    assert "L8" not in rules(spec("Pendulum-v1", gamma=0.999, normalize_reward=True))


def test_dropout_is_told():
    class Torso(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1))

        def forward(self, obs: Any) -> Any:
            return self.layers(obs["obs"])

    world = make_world("CartPole-v1", 2)
    policy = ActorCritic(world.observation, world.action, NetConfig(allow_stateful_norm=True), torso=Torso())
    (finding,) = [f for f in lint(spec(), world, policy) if f.rule == "L3"]
    assert finding.severity == "error"
    assert "Dropout" in finding.title


def test_the_minibatch_size_it_proposes_divides_the_rollout():
    (finding,) = [f for f in lint(spec(minibatch_size=50), make_world("CartPole-v1", 2)) if f.rule == "L1"]
    assert 128 % finding.patch.get("minibatch_size", 1) == 0
