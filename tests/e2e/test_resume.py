"""Exact resume: killed and restarted in another process, a run goes on to the last bit."""

from __future__ import annotations

import copy
import dataclasses
import json
import multiprocessing
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from surefoot.envs.make import make_world
from surefoot.nets.actor_critic import ActorCritic
from surefoot.train.rundir.resume_check import fingerprint
from surefoot.train.spec import RunSpec, make_spec
from surefoot.train.training import Training

SMALL = {"envs": 3, "rollout_steps": 16, "epochs": 2, "minibatch_size": 16}
KINDS = {
    "discrete": ("CartPole-v1", {"lr": "lin_1e-3"}),
    "continuous": ("Pendulum-v1", {"use_sde": True, "sde_sample_freq": 4}),
    "normalised": ("MountainCarContinuous-v0", {"normalize": True, "use_sde": False, "clip": "lin_0.2"}),
}


def spec_for(kind: str) -> RunSpec:
    env, settings = KINDS[kind]
    action = make_world(env, 1).action
    return make_spec(
        env,
        action,
        preset_name="sb3",
        settings={**SMALL, **settings, "seed": 7},
        total_steps=18 * 48,
        eval_every=5 * 48,
        eval_episodes=1,
        checkpoint_every=48,
    )


@pytest.fixture(scope="module")
def child() -> Iterator[Callable[..., dict[int, str]]]:
    """Trains in processes of their own; all are forks of one that has imported everything and done nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent))
        import resume_child

        forks = multiprocessing.get_context("forkserver")
        forks.set_forkserver_preload(["surefoot.train.run", "surefoot.train.rundir.resume_check"])

        def run(directory: Path, spec: RunSpec, *, last: int, kill_after: int = 0) -> dict[int, str]:
            out = directory.with_suffix(".txt")
            told = (str(out), str(directory), json.dumps(spec.to_json()), last, kill_after)
            process = forks.Process(target=resume_child.into_file, args=told)
            process.start()
            process.join(120)
            assert process.exitcode == (-signal.SIGKILL if kill_after else 0)
            lines = [line.split() for line in out.read_text().splitlines()]
            assert all(float(error) <= 1e-5 for _, _, error in lines), "the ratio of a fresh rollout must begin at 1"
            return {int(update): print_ for update, print_, _ in lines}

        yield run


@pytest.mark.parametrize("kind", KINDS)
def test_eighteen_of_eighteen_updates_are_identical_after_kill_and_restart(kind, tmp_path, child):
    spec = spec_for(kind)
    straight = child(tmp_path / "straight", spec, last=18)
    assert sorted(straight) == list(range(1, 19))
    restarted: dict[int, str] = {}
    for kill_after in (2, 7, 13, 18):
        restarted |= child(tmp_path / "killed", spec, last=18, kill_after=kill_after)
    after = child(tmp_path / "killed", spec, last=18)
    assert after == {18: straight[18]}, "what was killed at its end is there, and as it was"
    assert restarted == straight


COMPONENTS = {
    "weights": ("weights",),
    "optimizer": ("optimizer",),
    "update counter": ("learner", "updates"),
    "halved learning rate": ("learner", "lr_scale"),
    "rate that follows the KL": ("learner", "kl_scale"),
    "value scale": ("learner", "values"),
    "shuffling generator": ("learner", "generator"),
    "world": ("collector", "world"),
    "acting generator": ("collector", "generator"),
    "episode starts": ("collector", "start"),
    "memory": ("collector", "context"),
    "running returns": ("collector", "episodes"),
    "reward scale": ("collector", "scaler"),
    "reward outliers": ("collector", "outliers"),
    "step counter": ("collector", "env_steps"),
}


def middle_of_a_run() -> tuple[RunSpec, dict, list[str]]:
    """A state after three updates in which every component has moved, and the fingerprints of the three after it."""
    env = "MountainCarContinuous-v0"
    settings = {**SMALL, "normalize": True, "use_sde": True, "sde_sample_freq": 4, "lr": "lin_1e-3"}
    settings |= {"adaptive_kl": 1e-6, "normalize_value": True}
    spec = make_spec(
        env, make_world(env, 1).action, preset_name="sb3", settings=settings, total_steps=480, eval_every=0
    )
    training = remembering(spec)
    training.learner.lr_scale = 0.5
    for _ in range(3):
        training.update()
    state = copy.deepcopy(training.state())
    return spec, state, follow(training)


class Leaky(ActorCritic):
    """A policy whose actions lean on a fading trace of what it saw: memory that must survive a restart."""

    dishonest = True  # the log-prob is that of the action before it leaned

    def initial_context(self, streams):
        return {"trace": torch.zeros(streams, 1), **super().initial_context(streams)}

    def act(self, seen, *, generator, deterministic=False):
        trace = 0.5 * seen.context["trace"] + seen.obs["obs"].mean(dim=1, keepdim=True)
        out = super().act(seen, generator=generator, deterministic=deterministic)
        return dataclasses.replace(out, action=out.action + 0.1 * trace, context={**out.context, "trace": trace})


def remembering(spec: RunSpec) -> Training:
    world = make_world(spec.env, spec.ppo.envs)
    return Training(spec, world=world, policy=Leaky(world.observation, world.action, spec.net, seed=spec.seed))


def follow(training: Training) -> list[str]:
    """Fingerprints of the next three rollouts and of the whole state after each was learned from."""
    prints = []
    for _ in range(3):
        rollout = training.collector.collect(training.learner.policy_version)
        training.learner.update(rollout)
        prints += [fingerprint(dataclasses.asdict(rollout)), fingerprint(training.state())]
    return prints


def resumed(spec: RunSpec, state: dict) -> list[str]:
    training = remembering(spec)
    training.set_state(copy.deepcopy(state))
    return follow(training)


def test_a_whole_state_goes_on_to_the_last_bit():
    spec, state, expected = middle_of_a_run()
    assert resumed(spec, state) == expected


@pytest.mark.parametrize("component", COMPONENTS)
def test_without_any_one_component_resume_is_not_exact(component):
    spec, state, expected = middle_of_a_run()
    fresh = remembering(spec).state()
    *path, name = COMPONENTS[component]
    there, instead = state, fresh
    for key in path:
        there, instead = there[key], instead[key]
    there[name] = instead[name]
    assert resumed(spec, state) != expected
