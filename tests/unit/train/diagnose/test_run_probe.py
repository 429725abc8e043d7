"""The probe plays a run's environment, answers questions, and tries a remedy."""

from __future__ import annotations

from typing import Any

import gymnasium
import pytest

from surefoot.envs.gym.single_envs import EnvsWorld
from surefoot.envs.make import make_world
from surefoot.telemetry.doctor.doctor import Examination
from surefoot.telemetry.doctor.findings import Finding
from surefoot.telemetry.doctor.rules import shipped_rules
from surefoot.train.diagnose import run_probe
from surefoot.train.diagnose.run_probe import probe_environment, try_remedy, with_probe
from surefoot.train.spec import make_spec
from surefoot.train.training import Training


def training_of(env: str = "CartPole-v1", **settings: Any) -> Training:
    world = make_world(env, 8)
    spec = make_spec(env, world.action, settings={"envs": 8, "rollout_steps": 64, **settings}, total_steps=4096)
    return Training(spec, world=world)


class Deaf(gymnasium.Wrapper):
    """Draws an action instead of taking the one it is given."""

    def step(self, action: Any) -> Any:
        return self.env.step(self.env.action_space.sample())


def test_a_sound_environment_gives_sound_answers():
    training = training_of()
    answers, stats = probe_environment(training)
    told = {each.question: each.answer for each in answers}
    assert told["Does the next observation depend on the action?"] == "yes"
    assert told["Is something odd in the observations?"] == "no"
    assert told["Do terminations follow from what happens?"] == "yes"
    examination = Examination([], shipped_rules(), 0, 0, None)
    assert with_probe(examination, stats, training.spec, shipped_rules()).findings == []


def test_ignored_actions_become_the_first_finding_of_the_examination():
    world = EnvsWorld([lambda: Deaf(gymnasium.make("CartPole-v1"))] * 8, "CartPole-v1")
    training = Training(training_of().spec, world=world)
    answers, stats = probe_environment(training)
    assert answers[0].answer == "no"
    symptom = Finding(rule="R11", severity="warn", title="flat", since_update=30)
    examination = Examination([symptom], shipped_rules(), 0, 0, None)
    findings = with_probe(examination, stats, training.spec, shipped_rules()).findings
    assert [f.rule for f in findings if f.primary] == ["E08"]


def test_a_remedy_is_tried_beside_the_settings_of_the_run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(run_probe, "TRY_STEPS", 20_000)
    spec = training_of(lr=0.5, minibatch_size=128).spec
    finding = Finding(rule="S01", severity="warn", title="lr", patch={"lr": 1e-3})
    answer = try_remedy(spec, lambda n, workers: make_world("CartPole-v1", n), finding)
    assert answer is not None
    assert answer.evidence["with"] > answer.evidence["without"]


def test_without_a_setting_there_is_nothing_to_try():
    finding = Finding(rule="E08", severity="warn", title="no effect", patch={})
    assert try_remedy(training_of().spec, None, finding) is None
