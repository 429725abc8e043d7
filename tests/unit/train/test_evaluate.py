"""Playing: shares fixed beforehand, raw returns, the same again for the same seed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from recall import Recall, RecallShape
from surefoot import native
from surefoot.data.spaces import Box, Discrete
from surefoot.envs.api import Step, View
from surefoot.envs.builtin.classic import CLASSIC
from surefoot.envs.make import make_world
from surefoot.errors import ConfigError, EnvError
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.distributions import Categorical
from surefoot.nets.policy import PolicyInput, PolicyOutput
from surefoot.train import evaluate
from surefoot.train.evaluate import play


class Lengths:
    """Stream n plays episodes of lengths[n] steps that pay 1 each; the first obs says how far it is."""

    name, inexact = "Lengths", None
    observation, action = {"obs": Box((1,))}, Discrete(2)

    def __init__(self, *lengths: int, late: bool = False, success=None, lives: int = 1) -> None:
        self.lengths, self.num_envs = np.array(lengths), len(lengths)
        self.late, self.success, self.lives = late, success, lives

    def reset(self, seed: int) -> View:
        self.at, self.waiting = np.zeros(self.num_envs, int), np.zeros(self.num_envs, bool)
        self.lost = np.zeros(self.num_envs, int)
        return self._view()

    def _view(self) -> View:
        return View(obs={"obs": self.at[:, None].astype(np.float32)})

    def step(self, action: np.ndarray) -> Step:
        ghost = self.waiting.copy()
        self.at = np.where(ghost, 0, self.at + 1)
        over = self.at >= self.lengths
        self.lost += over
        if self.late:
            self.waiting = over
        else:
            self.at = np.where(over, 0, self.at)
        return Step(
            view=self._view(),
            reward=np.where(ghost, 77.0, 1.0),
            terminated=over,
            truncated=np.zeros(self.num_envs, bool),
            valid=~ghost,
            final_obs=self._view().obs,
            stats=self._stats(),
        )

    def _stats(self) -> dict[str, np.ndarray]:
        said = {} if self.success is None else {"success": np.array(self.success, float)}
        if self.lives > 1:
            said["whole_return"] = np.where(self.lost % self.lives == 0, 100.0 * self.lives, np.nan)
        return said


def a_policy(**knobs) -> ActorCritic:
    return ActorCritic(Lengths.observation, Lengths.action, NetConfig(hidden=(4,), **knobs))


def test_short_episodes_do_not_crowd_out_long_ones():
    # Whoever takes the first four to end sees the short stream four times and never the long one.
    played = play(a_policy(), Lengths(1, 50), 4, seed=0)
    assert sorted(played.lengths) == [1, 1, 50, 50]
    assert sorted(played.returns) == [1.0, 1.0, 50.0, 50.0]
    assert (played.mean, played.std) == (25.5, 24.5)


@pytest.mark.parametrize(("episodes", "shares"), [(1, [1, 0, 0]), (4, [2, 1, 1]), (7, [3, 2, 2])])
def test_shares_differ_by_at_most_one(episodes, shares):
    played = play(a_policy(), Lengths(2, 3, 4), episodes, seed=0)
    assert [played.lengths.count(n) for n in (2, 3, 4)] == shares


def test_rows_that_only_reset_count_for_nothing():
    played = play(a_policy(), Lengths(2, 5, late=True), 6, seed=0)
    assert sorted(played.returns) == [2.0] * 3 + [5.0] * 3
    assert sorted(played.lengths) == [2] * 3 + [5] * 3


class Loses(Lengths):
    """Loses its first stream at the third step: a row that is not valid, then a new episode."""

    clock = 0

    def step(self, action: np.ndarray) -> Step:
        self.clock += 1
        if self.clock == 3:
            self.at[0], self.waiting[0] = 0, True
        step = super().step(action)
        self.waiting[:] = False
        return step


def test_an_episode_that_was_lost_on_the_way_is_played_again():
    played = play(a_policy(), Loses(4, 9), 2, seed=0)
    assert sorted(played.lengths) == [4, 9]
    assert sorted(played.returns) == [4.0, 9.0]


def test_success_is_reported_where_the_world_says():
    assert play(a_policy(), Lengths(1, 1, success=[1, 0]), 2, seed=0).successes == [True, False]
    assert play(a_policy(), Lengths(1), 1, seed=0).successes == [None]


def test_a_stream_that_does_not_say_is_not_a_success():
    assert play(a_policy(), Lengths(1, 1, success=[1, np.nan]), 2, seed=0).successes == [True, None]


@pytest.mark.parametrize("deterministic", [True, False])
def test_the_same_seed_plays_the_same(deterministic):
    policy = ActorCritic({"obs": Box((4,))}, Discrete(2))
    worlds = [CLASSIC["CartPole-v1"](4) for _ in range(3)]
    a, b, c = (play(policy, w, 8, seed=s, deterministic=deterministic) for w, s in zip(worlds, (5, 5, 6), strict=True))
    assert a == b
    assert a != c
    assert play(policy, worlds[0], 8, seed=5, deterministic=deterministic) == a  # a world played before is no other


def test_playing_changes_nothing_in_the_policy():
    policy = a_policy(normalize_obs=True)
    before = {name: x.clone() for name, x in policy.state_dict().items()}
    state = torch.get_rng_state()
    play(policy, Lengths(3), 4, seed=0, deterministic=False)
    assert all(torch.equal(before[name], x) for name, x in policy.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)


class Prefers(nn.Module):
    """Likes choice 1 a little: 60 to 40."""

    def forward(self, obs: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        n = len(obs["obs"])
        return torch.tensor([0.4, 0.6]).log().expand(n, 2), torch.zeros(n)


@pytest.mark.parametrize(("deterministic", "low", "high"), [(True, 200, 200), (False, 90, 150)])
def test_a_deterministic_policy_always_takes_what_it_likes_best(deterministic, low, high):
    taken: list[int] = []

    class Watched(Lengths):
        def step(self, action: np.ndarray) -> Step:
            taken.extend(action.tolist())
            return super().step(action)

    policy = ActorCritic(Lengths.observation, Lengths.action, network=Prefers())
    play(policy, Watched(200), 1, seed=0, deterministic=deterministic)
    assert low <= sum(taken) <= high


def test_no_episodes_are_refused():
    with pytest.raises(ConfigError, match="episodes is 0"):
        play(a_policy(), Lengths(1), 0, seed=0)


def test_a_world_that_never_ends_is_named(monkeypatch):
    monkeypatch.setattr(evaluate, "LONGEST_EPISODE", 20)
    with pytest.raises(EnvError, match="Lengths did not end"):
        play(a_policy(), Lengths(1_000_000), 1, seed=0)


def test_many_episodes_are_not_taken_for_one_that_never_ends(monkeypatch):
    monkeypatch.setattr(evaluate, "LONGEST_EPISODE", 20)
    assert play(a_policy(), Lengths(5), 10, seed=0).lengths == [5] * 10


def test_what_is_played_is_whole_games():
    """Of three lives each; the return is the world's own, the length is that of all lives."""
    played = play(a_policy(), Lengths(2, 5, lives=3), 4, seed=0)
    assert (played.returns, sorted(played.lengths)) == ([300.0] * 4, [6, 6, 15, 15])


class Counter(nn.Module):
    """Remembers how many steps of an episode it has seen; its likeliest choice is 1 from the second one on."""

    sequential = True

    def __init__(self) -> None:
        super().__init__()
        self.counted: list[list[float]] = []

    def act(self, inputs: PolicyInput, *, generator: torch.Generator, deterministic: bool = False) -> PolicyOutput:
        before = inputs.context["count"]
        count = torch.where(inputs.start, torch.zeros_like(before), before) + 1.0
        self.counted.append(count.tolist())
        dist = Categorical(torch.stack([torch.ones_like(count), count], dim=-1))
        action = dist.mode()
        return PolicyOutput(
            action=action, value=count, log_prob=dist.log_prob(action), distribution=dist, context={"count": count}
        )

    def initial_context(self, streams: int) -> dict[str, Tensor]:
        return {"count": torch.zeros(streams)}

    def env_action(self, action: np.ndarray) -> np.ndarray:
        return action


def test_a_policy_remembers_while_it_is_played_and_forgets_where_an_episode_begins():
    policy = Counter()
    play(policy, Lengths(2, 5), 4, seed=0)
    assert [row[0] for row in policy.counted[:6]] == [1, 2, 1, 2, 1, 2]
    assert [row[1] for row in policy.counted[:7]] == [1, 2, 3, 4, 5, 1, 2]


def test_a_cue_that_is_shown_once_is_answered_by_a_policy_that_remembers_it():
    class Recaller(Counter):
        """Keeps the last cue it saw."""

        def act(self, inputs: PolicyInput, *, generator: torch.Generator, deterministic: bool = False) -> PolicyOutput:
            cue = torch.where(inputs.obs["obs"].any(-1), inputs.obs["obs"].argmax(-1).float(), inputs.context["count"])
            dist = Categorical(torch.nn.functional.one_hot(cue.long(), 4).float())
            action = dist.mode()
            return PolicyOutput(
                action=action, value=cue, log_prob=dist.log_prob(action), distribution=dist, context={"count": cue}
            )

    assert play(Recaller(), Recall(6, RecallShape(hidden=True)), 30, seed=1).mean == pytest.approx(1.0)


@pytest.mark.skipif(native.kernel is None, reason=native.why_not)
@pytest.mark.parametrize(
    ("env", "net"),
    [
        ("CartPole-v1", {}),
        ("Pendulum-v1", {"normalize_obs": True}),
        ("Acrobot-v1", {"shared": True}),
        ("MountainCarContinuous-v0", {"gsde": True}),
    ],
)
def test_episodes_played_in_the_kernel_are_those_of_the_loop(env, net, monkeypatch):
    world = make_world(env, 3)
    policy = ActorCritic(world.observation, world.action, NetConfig(**net), seed=3)
    inside = play(policy, world, 7, seed=5)
    monkeypatch.setattr(evaluate, "NativeWorld", type(None))
    outside = play(policy, world, 7, seed=5)
    assert (inside.returns, inside.lengths, inside.successes) == (outside.returns, outside.lengths, outside.successes)
    assert play(policy, world, 7, seed=5, stop=lambda: True).returns == []
