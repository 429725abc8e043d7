"""Two policies: the manager's steps are discounted by how long they took, and the pair goes on to the last bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from surefoot.core.advantage import gae
from surefoot.data.spaces import Box, Discrete
from surefoot.envs.api import Arrays, Step, View, World
from surefoot.envs.builtin.maze import LongMaze
from surefoot.envs.builtin.streams import Streams
from surefoot.envs.goals import landmarks, offsets
from surefoot.errors import CheckpointIncompatible, ConfigError
from surefoot.learn.checkpoint.checkpoint import load_checkpoint, save_checkpoint
from surefoot.learn.config import PPOConfig
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.policy import PolicyInput
from surefoot.train.algorithms.hierarchy import Decisions, Hierarchy, HierarchySpec

TASK = LongMaze(1, 3, 2, limit=30)
ROOMS = landmarks(np.arange(4)[:, None], lambda obs: TASK.room(obs["obs"])[:, None])
GAMMA, EVERY = 0.8, 3


def make(streams: int) -> World:
    return Streams("rooms", TASK, streams)


def a_spec(*, total_steps: int = 4 * 64, **ppo: Any) -> HierarchySpec:
    knobs = {
        "rollout_steps": 16,
        "envs": 4,
        "minibatch_size": 32,
        "epochs": 2,
        "lr": "lin_3e-3",
        "device": "cpu",
        **ppo,
    }
    return HierarchySpec(
        total_steps=total_steps,
        every=5,
        worker=PPOConfig(**knobs),
        manager=PPOConfig(lr="lin_3e-3", minibatch_size=16, epochs=2, device="cpu"),
        worker_net=NetConfig(hidden=(8,)),
        manager_net=NetConfig(hidden=(8,)),
    )


def decisions(streams: int = 2) -> Decisions:
    policy = ActorCritic({"obs": Box((1,))}, Discrete(2), NetConfig(hidden=(4,)), seed=1)
    return Decisions(policy, streams, steps=8, every=EVERY, gamma=GAMMA, seed=0)


def a_step(obs: list[float], reward: list[float], *, terminated=(0, 0), truncated=(0, 0), final=None) -> Step:
    return Step(
        view=View(obs={"obs": rows(obs)}),
        reward=np.array(reward),
        terminated=np.array(terminated, bool),
        truncated=np.array(truncated, bool),
        valid=np.ones(len(obs), bool),
        final_obs=None if final is None else {"obs": rows(final)},
    )


def rows(numbers: list[float]) -> np.ndarray:
    return np.array(numbers, np.float32)[:, None]


def worth(made: Decisions, *numbers: float) -> np.ndarray:
    with torch.no_grad():
        return made.policy.value(PolicyInput(obs={"obs": torch.from_numpy(rows(list(numbers)))})).numpy()


def deltas(made: Decisions, view: Arrays) -> np.ndarray:
    """The advantages at λ = 0, as the learner works them out."""
    r = made.rollout(View(obs=view), 0)
    given = [torch.from_numpy(x) for x in (r.reward, r.value, r.next_value, r.terminated, r.ended, r.valid)]
    return gae(*given, gamma=GAMMA**EVERY, lam=0.0).numpy()


def test_a_step_that_took_t_steps_is_discounted_t_times():
    made = decisions()
    made.first({"obs": rows([0.0, 1.0])}, None)
    made.step(a_step([0.1, 1.1], [1.0, 0.0]), np.array([False, True]), None)
    made.step(a_step([0.2, 1.2], [2.0, 4.0]), np.array([False, False]), None)
    made.step(a_step([0.3, 1.3], [8.0, 1.0]), np.array([True, False]), None)
    v0, v3, u0, u1, u3 = worth(made, 0.0, 0.3, 1.0, 1.1, 1.3)
    delta = deltas(made, {"obs": rows([0.3, 1.3])})
    assert delta[0, 0] == pytest.approx(1 + 0.8 * 2 + 0.64 * 8 + 0.8**3 * v3 - v0, rel=1e-5)
    assert delta[0, 1] == pytest.approx(0 + 0.8 * u1 - u0, rel=1e-5)
    # The second of stream 1 was open when the rollout ended, after two steps.
    assert delta[1, 1] == pytest.approx(4 + 0.8 * 1 + 0.64 * u3 - u1, rel=1e-5)
    assert delta.shape == (2, 2)
    assert delta[1, 0] == 0.0, "stream 0 decided once: its new sub-goal had no step yet"


def test_an_end_has_no_future_and_a_cut_has_that_of_its_last_observation():
    made = decisions()
    made.first({"obs": rows([0.0, 1.0])}, None)
    step = a_step([9.0, 9.0], [3.0, 3.0], terminated=(1, 0), truncated=(0, 1), final=[0.5, 1.5])
    made.step(step, np.array([True, True]), None)
    v0, u0, u1 = worth(made, 0.0, 1.0, 1.5)
    delta = deltas(made, {"obs": rows([9.0, 9.0])})
    assert delta[0] == pytest.approx([3 - v0, 3 + 0.8 * u1 - u0], rel=1e-5)


def test_a_rollout_says_where_episodes_start_and_end():
    made = decisions()
    made.first({"obs": rows([0.0, 1.0])}, None)
    made.step(a_step([9.0, 1.1], [0.0, 0.0], terminated=(1, 0), final=[0.5, 1.1]), np.array([True, True]), None)
    made.step(a_step([9.1, 1.2], [0.0, 0.0]), np.array([True, True]), None)
    r = made.rollout(View(obs={"obs": rows([9.1, 1.2])}), 7)
    assert r.terminated.tolist() == [[True, False], [False, False]]
    assert r.start.tolist() == [[True, True], [True, False]]
    assert r.obs["obs"][:, :, 0] == pytest.approx(np.array([[0.0, 1.0], [9.0, 1.1]]))
    assert (r.policy_version == 7).all()


def test_both_learn_and_the_ratio_of_neither_has_moved():
    both = Hierarchy(make, ROOMS, a_spec())
    for report in both:
        for one in (report.worker, report.manager):
            assert one.first_ratio_error < 1e-5
            assert one.skipped_reason is None
        assert report.worker.samples == 64
        assert report.decisions == report.manager.samples
        assert 0 <= report.reached <= 1
        assert 1 <= report.mean_steps <= 5
        # Every step of the world belongs to exactly one decision.
        assert report.decisions * report.mean_steps == pytest.approx(64)
    assert both.env_steps == 256


def test_the_managers_discount_is_that_of_its_longest_step():
    both = Hierarchy(make, ROOMS, a_spec(gamma=0.9))
    assert both.manager_learner.config.gamma == pytest.approx(0.9**5)


@pytest.mark.parametrize("after", [1, 3])
def test_a_pair_goes_on_to_the_last_bit(after: int, tmp_path: Path):
    whole, first = Hierarchy(make, ROOMS, a_spec()), Hierarchy(make, ROOMS, a_spec())
    reports = [(r.worker.metrics(), r.manager.metrics()) for r in whole]
    for _ in range(after):
        first.update()
    save_checkpoint(tmp_path, after, first.state())
    second = Hierarchy(make, ROOMS, a_spec())
    second.set_state(load_checkpoint(tmp_path).parts)
    assert [(r.worker.metrics(), r.manager.metrics()) for r in second] == reports[after:]
    for mine, theirs in ((whole.worker, second.worker), (whole.manager, second.manager)):
        for name, x in mine.state_dict().items():
            assert torch.equal(x, theirs.state_dict()[name])
    assert whole.evaluate(5).returns == second.evaluate(5).returns


def test_a_pair_is_its_seed():
    runs = [[r.manager.metrics() for r in Hierarchy(make, ROOMS, a_spec(seed=s))] for s in (3, 3, 4)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_an_evaluation_plays_the_worlds_episodes_and_disturbs_nothing():
    one, two = (Hierarchy(make, ROOMS, a_spec()) for _ in range(2))
    one.update()
    two.update()
    played = one.evaluate(7, seed=5)
    assert len(played.returns) == 7
    assert set(played.returns) <= {0.0, 1.0}
    assert all(length <= 30 for length in played.lengths)
    assert played == one.evaluate(7, seed=5)
    assert one.update().worker.metrics() == two.update().worker.metrics()
    with pytest.raises(ConfigError, match="episodes is 0"):
        one.evaluate(0)


def test_sub_goals_may_be_offsets():
    def place(obs: Arrays) -> np.ndarray:
        return TASK.where(obs["obs"])

    both = Hierarchy(make, offsets(2, 3.0, place, near=0.5), a_spec())
    report = both.update()
    assert report.manager.first_ratio_error < 1e-5
    assert report.manager.action_std is not None
    assert len(both.evaluate(3, deterministic=True).returns) == 3


def test_specs_that_cannot_work_are_refused():
    with pytest.raises(ConfigError, match="every is 0"):
        HierarchySpec(total_steps=1, every=0, worker=PPOConfig())
    with pytest.raises(ConfigError, match="gamma is 0"):
        HierarchySpec(total_steps=1, worker=PPOConfig(gamma=0.0))


def test_weights_of_another_pair_are_refused():
    state = Hierarchy(make, ROOMS, a_spec()).state()
    other = offsets(1, 2.0, lambda obs: TASK.room(obs["obs"])[:, None], near=0.5)
    with pytest.raises(CheckpointIncompatible):
        Hierarchy(make, other, a_spec()).set_state(state)
