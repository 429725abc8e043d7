"""The collector in a scripted world: every row of a rollout is known beforehand."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from torch import Tensor, nn

from surefoot.core.advantage import gae
from surefoot.data.rollout import Rollout
from surefoot.data.spaces import Box, Discrete
from surefoot.envs.api import Step, View
from surefoot.envs.gym.vector_env import VectorWorld
from surefoot.errors import NonFiniteValue
from surefoot.learn.config import PPOConfig
from surefoot.learn.learner import Learner
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.continuous_distributions import Gaussian
from surefoot.nets.policy import PolicyInput, PolicyOutput
from surefoot.train.collect.collector import Collector
from surefoot.train.config import CollectConfig


class Script:
    """Stream n plays `lengths[n]` in turn, for ever; obs = (stream, episode, step), reward = 10·episode + step.

    An episode of negative length is cut short (truncated). `lie` changes an answer before it is given:
    {(step since reset, stream): (what, number)} with what of "reward", "view" and "final".
    """

    name, inexact = "Script", None
    observation, action = {"obs": Box((3,))}, Box((1,), -1.0, 1.0)

    def __init__(self, lengths: list[list[int]], *, lie=None, restarts=True, late=False) -> None:
        self.lengths, self.num_envs = lengths, len(lengths)
        self.lie: dict[tuple[int, int], tuple[str, float]] = lie or {}
        self.restarts, self.late = restarts, late
        self.got: list[np.ndarray] = []
        self.reset(0)

    def reset(self, seed: int) -> View:
        self.clock = 0
        self.episode, self.at = np.zeros(self.num_envs, int), np.zeros(self.num_envs, int)
        self.waiting = np.zeros(self.num_envs, bool)
        return View(obs=self._obs())

    def _obs(self) -> dict[str, np.ndarray]:
        return {"obs": np.stack([np.arange(self.num_envs), self.episode, self.at], axis=1).astype(np.float32)}

    def step(self, action: np.ndarray) -> Step:
        self.got.append(action.copy())
        ghost = self.waiting.copy()
        length = np.array([row[e % len(row)] for row, e in zip(self.lengths, self.episode, strict=True)])
        self.at = np.where(ghost, 0, self.at + 1)
        self.episode = self.episode + ghost
        reward = np.where(ghost, 0.0, 10.0 * self.episode + self.at)
        over = (self.at >= abs(length)) & ~ghost
        terminated, truncated = over & (length > 0), over & (length < 0)
        final = self._obs() if over.any() else None
        if self.late:
            self.waiting = over
        else:
            self.episode, self.at = self.episode + over, np.where(over, 0, self.at)
        view = View(obs=self._obs())
        for n in range(self.num_envs):
            match self.lie.get((self.clock, n)):
                case ("reward", x):
                    reward[n] = x
                case ("view", x):
                    view.obs["obs"][n] = x
                case ("final", x):
                    assert final is not None
                    final["obs"][n] = x
        self.clock += 1
        return Step(view=view, reward=reward, terminated=terminated, truncated=truncated, valid=~ghost, final_obs=final)

    def reset_streams(self, streams: np.ndarray) -> View | None:
        if not self.restarts:
            return None
        self.episode, self.at = self.episode + streams, np.where(streams, 0, self.at)
        return View(obs=self._obs())

    def state(self) -> dict[str, Any]:
        return {"clock": self.clock, "episode": self.episode, "at": self.at, "waiting": self.waiting}

    def set_state(self, state: dict[str, Any]) -> View:
        self.clock, self.episode, self.at = state["clock"], state["episode"], state["at"]
        self.waiting = state["waiting"]
        return View(obs=self._obs())

    def render(self) -> None: ...

    def close(self) -> None: ...


class Reader(nn.Module):
    """V(stream, episode, step) = 1000·stream + 100·episode + step, and actions around 0."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("worth", torch.tensor([1000.0, 100.0, 1.0]))
        self.zero = nn.Parameter(torch.zeros(1))

    def forward(self, obs: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        return self.zero.expand(len(obs["obs"]), 1), obs["obs"] @ self.worth


def worth(stream: int, episode: int, step: int) -> float:
    return 1000.0 * stream + 100.0 * episode + step


def collector(world: Any, steps: int, *, gamma: float = 0.9, policy: Any = None, seed: int = 0, **config) -> Collector:
    policy = policy or ActorCritic(Script.observation, Script.action, network=Reader())
    return Collector(world, policy, steps=steps, gamma=gamma, config=CollectConfig(**config), seed=seed)


def seen(rollout: Rollout, stream: int) -> list[tuple[int, int]]:
    """(episode, step) of each row of a stream."""
    return [(int(e), int(t)) for _, e, t in rollout.obs["obs"][:, stream]]


# --- what a rollout says ---


def test_streams_go_on_where_the_last_rollout_stopped():
    walker = collector(Script([[5], [3, 4]]), steps=4)
    first, second = walker.collect(), walker.collect()
    assert seen(first, 0) + seen(second, 0) == [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 0), (1, 1), (1, 2)]
    assert seen(first, 1) + seen(second, 1) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (1, 3), (2, 0)]
    assert np.flatnonzero(np.concatenate([first.start, second.start])[:, 0]).tolist() == [0, 5]
    assert np.flatnonzero(np.concatenate([first.start, second.start])[:, 1]).tolist() == [0, 3, 7]


def test_the_value_of_what_comes_next_is_in_the_rollout():
    rollout = collector(Script([[9]]), steps=3).collect()
    assert rollout.value[:, 0].tolist() == [worth(0, 0, t) for t in (0, 1, 2)]
    # The last one belongs to a step that the rollout no longer has.
    assert rollout.next_value[:, 0].tolist() == [worth(0, 0, t) for t in (1, 2, 3)]


def test_an_episode_cut_short_is_continued_by_its_own_last_observation():
    rollout = collector(Script([[-3]]), steps=5).collect()
    assert np.flatnonzero(rollout.truncated[:, 0]).tolist() == [2]
    assert rollout.next_value[2, 0] == worth(0, 0, 3)  # where it was cut, not worth(0, 1, 0) where the next one begins
    assert rollout.next_value[3, 0] == worth(0, 1, 1)


def test_a_cut_at_the_very_end_of_a_rollout_is_continued_the_same_way():
    rollout = collector(Script([[-3], [3]]), steps=3).collect()
    assert rollout.next_value[2, 0] == worth(0, 0, 3)
    assert rollout.terminated[2].tolist() == [False, True]


def test_only_the_streams_that_were_cut_are_continued_so():
    rollout = collector(Script([[-2], [9], [2]]), steps=3).collect()
    assert rollout.next_value[1].tolist()[:2] == [worth(0, 0, 2), worth(1, 0, 2)]


class Both(Script):
    """Says both at once."""

    def step(self, action: np.ndarray) -> Step:
        step = super().step(action)
        return Step(view=step.view, reward=step.reward, terminated=step.terminated, truncated=step.terminated.copy(),
                    valid=step.valid, final_obs=step.final_obs)  # fmt: skip


def test_an_end_that_is_both_is_an_end():
    rollout = collector(Both([[2]]), steps=2).collect()
    policy = ActorCritic(Script.observation, Script.action, network=Reader())
    batch = Learner(policy, PPOConfig(gamma=0.9, lam=0.5)).prepare(rollout)
    assert batch.advantage[0, 1].item() == pytest.approx(2.0 - worth(0, 0, 1))  # nothing is added for what follows


def test_the_action_is_stored_as_drawn_and_sent_as_clipped():
    world = Script([[5]] * 64)
    rollout = collector(world, steps=4).collect()
    sent, stored = np.stack(world.got), rollout.action
    assert np.abs(stored).max() > 1.5  # N(0, 1) goes beyond the bounds
    assert np.array_equal(sent, stored.clip(-1.0, 1.0))
    expected = torch.distributions.Normal(0.0, 1.0).log_prob(torch.from_numpy(stored))[..., 0]
    assert np.allclose(rollout.log_prob, expected, atol=1e-6)


def test_the_policys_version_is_written_on_every_row():
    assert (collector(Script([[5]]), steps=3).collect(policy_version=7).policy_version == 7).all()


def test_a_rollout_is_fresh_for_the_learner():
    policy = ActorCritic(Script.observation, Script.action, NetConfig(hidden=(8,), normalize_obs=True))
    walker, learner = collector(Script([[5], [-3]]), 32, policy=policy), Learner(policy, PPOConfig(minibatch_size=16))
    for _ in range(3):
        assert learner.update(walker.collect(learner.policy_version)).first_ratio_error <= 1e-5


class Choices(Script):
    """Two of three choices, which two depends on the step."""

    action = Discrete(3)

    def _mask(self, view: View) -> View:
        closed = view.obs["obs"][:, 2].astype(int) % 3
        return View(obs=view.obs, action_mask=np.arange(3) != closed[:, None])

    def reset(self, seed: int) -> View:
        return self._mask(super().reset(seed))

    def step(self, action: np.ndarray) -> Step:
        step = super().step(action)
        return Step(view=self._mask(step.view), reward=step.reward, terminated=step.terminated,
                    truncated=step.truncated, valid=step.valid, final_obs=step.final_obs)  # fmt: skip


def test_masks_are_stored_as_they_were_acted_under():
    policy = ActorCritic(Script.observation, Choices.action)
    rollout = collector(Choices([[4]] * 8), steps=16, policy=policy).collect()
    assert rollout.action_mask is not None
    closed = rollout.obs["obs"][..., 2].astype(int) % 3
    assert (rollout.action_mask == (np.arange(3) != closed[..., None])).all()
    assert (rollout.action != closed).all()


# --- ghost rows ---


def check_ghosts(rollout: Rollout, walker: Collector) -> None:
    """Episodes of 2 and of 3 steps, each followed by a row that only resets, 8 rows of them."""
    assert rollout.valid[:, 0].tolist() == [True, True, False, True, True, False, True, True]
    assert rollout.valid[:, 1].tolist() == [True, True, True, False, True, True, True, False]
    assert walker.env_steps == 12
    assert walker.episodes.finished == 3 + 2
    assert sorted(e.length for e in walker.episodes.take_fresh()) == [2, 2, 2, 3, 3]
    assert np.flatnonzero(rollout.start[:, 0] & rollout.valid[:, 0]).tolist() == [0, 3, 6]


def test_rows_that_only_reset_are_not_steps():
    walker = collector(Script([[2], [3]], late=True), steps=8)
    rollout = walker.collect()
    check_ghosts(rollout, walker)
    assert rollout.samples == 12


class Loses(Script):
    """Loses stream 0 at its third and fourth step: it shows what it showed, then a new episode."""

    def step(self, action: np.ndarray) -> Step:
        before, lost = self._obs()["obs"][0], self.clock in (2, 3)
        at = self.at[0]
        step = super().step(action)
        if lost:
            self.at[0] = at
            step.reward[0], step.valid[0] = 0.0, False
            step.view.obs["obs"][0] = before
            if self.clock == 4:
                self.episode[0], self.at[0] = 1, 0
                step.view.obs["obs"][0] = self._obs()["obs"][0]
        return step


@pytest.mark.parametrize("lam", [0.0, 0.95])
def test_a_stream_that_is_lost_on_the_way_is_cut_at_what_it_last_saw(lam):
    walker = collector(Loses([[4], [9]]), steps=6)
    rollout = walker.collect()
    assert rollout.valid[:, 0].tolist() == [True, True, False, False, True, True]
    assert rollout.start[:, 0].tolist() == [True, False, False, True, True, False]
    assert seen(rollout, 0) == [(0, 0), (0, 1), (0, 2), (0, 2), (1, 0), (1, 1)]
    assert rollout.next_value[1, 0] == worth(0, 0, 2)
    assert walker.episodes.finished == 0
    assert walker.episodes.lengths.tolist() == [2, 6]
    assert walker.episodes.returns.tolist() == [11.0 + 12.0, 21.0]
    names = ("reward", "value", "next_value", "terminated", "ended", "valid")
    advantage = gae(*(torch.as_tensor(getattr(rollout, name)) for name in names), gamma=0.9, lam=lam)
    # Two steps to the loss, then the critic's word for where it happened; nothing of the episode after it.
    last = 2.0 + 0.9 * worth(0, 0, 2) - worth(0, 0, 1)
    first = 1.0 + 0.9 * worth(0, 0, 1) - worth(0, 0, 0)
    assert advantage[:4, 0].tolist() == pytest.approx([first + 0.9 * lam * last, last, 0.0, 0.0])


def test_the_true_successor_is_found_in_a_world_that_resets_late():
    rollout = collector(Script([[-2]], late=True), steps=4).collect()
    assert seen(rollout, 0) == [(0, 0), (0, 1), (0, 2), (1, 0)]
    assert rollout.next_value[1, 0] == worth(0, 0, 2)


class Counter(gym.Env[np.ndarray, np.ndarray]):
    """A Gymnasium env that ends after `length` steps and shows how many there were."""

    observation_space = gym.spaces.Box(-10, 10, (3,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, length: int) -> None:
        self.length, self.at = length, 0

    def _see(self) -> np.ndarray:
        return np.array([0, 0, self.at], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return self._see(), {}

    def step(self, action):
        self.at += 1
        return self._see(), 1.0, self.at >= self.length, False, {}


def test_gymnasiums_late_resets_are_not_steps_either():
    envs = SyncVectorEnv([lambda: Counter(2), lambda: Counter(3)], autoreset_mode=AutoresetMode.NEXT_STEP)
    walker = collector(VectorWorld(envs), steps=8)
    check_ghosts(walker.collect(), walker)


def test_ghost_rows_reach_neither_normaliser():
    policy = ActorCritic(Script.observation, Script.action, NetConfig(hidden=(4,), normalize_obs=True))
    walker = collector(Script([[2], [3]], late=True), 8, policy=policy, normalize_reward=True)
    rollout = walker.collect()
    Learner(policy, PPOConfig()).update(rollout)
    rows = rollout.obs["obs"][rollout.valid]
    assert policy.flatten is not None
    assert policy.flatten.normalizer is not None
    assert policy.flatten.normalizer.count.item() == 12
    assert np.allclose(policy.flatten.normalizer.mean, rows.mean(0))
    assert walker.scaler.count == 12


# --- rewards ---


def test_returns_are_reported_raw_while_rewards_are_scaled():
    walker = collector(Script([[3]]), steps=6, normalize_reward=True)
    rollout = walker.collect()
    # Episode 0 pays 1, 2, 3; episode 1 pays 11, 12, 13.
    assert [e.return_ for e in walker.episodes.take_fresh()] == [6.0, 36.0]
    raw = np.array([1.0, 2.0, 3.0, 11.0, 12.0, 13.0])
    ratio = rollout.reward[:, 0] / raw
    assert np.allclose(ratio, ratio[0])
    assert ratio[0] == pytest.approx(1.0 / rollout.stats["return_std"], rel=1e-5)


def test_a_declared_range_clips_and_counts():
    rollout = collector(Script([[3]]), steps=6, reward_range=(2.0, 12.0)).collect()
    assert rollout.reward[:, 0].tolist() == [2.0, 2.0, 3.0, 11.0, 12.0, 12.0]
    assert rollout.stats["reward_out_of_range"] == 2.0


@pytest.mark.parametrize("huge", [1e9, 1e12, -1e30])
def test_an_outlier_within_a_declared_range_cannot_squash_the_others(huge):
    clean = collector(Script([[50]]), steps=50, reward_range=(0.0, 60.0), normalize_reward=True).collect()
    lied = Script([[50]], lie={(20, 0): ("reward", huge)})
    poisoned = collector(lied, steps=50, reward_range=(0.0, 60.0), normalize_reward=True).collect()
    others = np.arange(50) != 20
    assert np.allclose(poisoned.reward[others], clean.reward[others], rtol=0.3)
    assert poisoned.stats["reward_out_of_range"] == 1.0


def test_an_outlier_without_a_declared_range_is_counted_and_left_as_it_is():
    walker = collector(Script([[50]], lie={(160, 0): ("reward", 1e9)}), steps=150)
    assert walker.collect().stats["reward_outliers"] == 0.0
    second = walker.collect()
    assert second.stats["reward_outliers"] == 1.0
    assert second.reward[10, 0] == np.float32(1e9)


# --- numbers that are not finite ---


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("step", [0, 3, 7])
def test_a_bad_reward_stops_with_world_stream_and_step(step, bad):
    walker = collector(Script([[20], [20]], lie={(step, 1): ("reward", bad)}), steps=8)
    with pytest.raises(NonFiniteValue, match=rf"Script .* stream 1 at step {step + 1} of its episode: reward {bad}"):
        walker.collect()


@pytest.mark.parametrize("what", ["view", "final"])
def test_a_bad_observation_stops_with_world_and_stream(what):
    walker = collector(Script([[20], [-4]], lie={(3, 1): (what, np.nan)}), steps=8)
    with pytest.raises(NonFiniteValue, match=r"Script .* stream 1 at step 4 .* observation .*nan"):
        walker.collect()


def test_a_reward_too_large_for_float32_is_a_bad_number():
    walker = collector(Script([[20]], lie={(3, 0): ("reward", 1e39)}), steps=8)
    with pytest.raises(NonFiniteValue, match="stream 0 at step 4"):
        walker.collect()


def test_a_world_that_begins_with_a_bad_number_is_refused():
    world = Script([[5]])
    world.reset = lambda seed: View(obs={"obs": np.full((1, 3), np.nan, np.float32)})
    with pytest.raises(NonFiniteValue, match="starts with"):
        collector(world, steps=2)


LIES = [("reward", np.nan), ("view", np.nan), ("reward", -np.inf), ("view", np.inf)]


@pytest.mark.parametrize("restarts", [True, False])
@pytest.mark.parametrize("lie", LIES)
def test_a_dropped_episode_leaves_all_other_rows_as_they_were(lie, restarts):
    lengths = [[4], [5, 3], [-3]]
    clean = collector(Script(lengths), steps=12, nonfinite="drop_episode").collect()
    world = Script(lengths, lie={(6, 1): lie}, restarts=restarts)  # the second step of its second episode
    walker = collector(world, steps=12, nonfinite="drop_episode")
    dirty = walker.collect()
    for name in ("reward", "value", "next_value", "log_prob", "terminated", "truncated", "start", "valid", "action"):
        assert np.array_equal(getattr(clean, name)[:, [0, 2]], getattr(dirty, name)[:, [0, 2]])
    # The first episode of stream 1 is whole and stays; the second is gone from its beginning.
    assert dirty.valid[:7, 1].tolist() == [True] * 5 + [False] * 2
    assert np.array_equal(clean.reward[:5, 1], dirty.reward[:5, 1])
    assert dirty.valid[7:, 1].tolist() == ([True] * 5 if restarts else [False] + [True] * 4)
    assert np.isfinite(dirty.reward).all()
    assert all(np.isfinite(x).all() for x in dirty.obs.values())
    assert dirty.stats["dropped_episodes"] >= 1.0
    assert [e.length for e in walker.episodes.take_fresh() if e.stream == 1][0] == 5


def test_an_episode_is_dropped_once_however_long_it_takes_to_end():
    world = Script([[12]], lie={(1, 0): ("reward", np.nan)}, restarts=False)
    walker = collector(world, steps=8, nonfinite="drop_episode")
    first, second = walker.collect(), walker.collect()
    assert not first.valid.any()
    assert second.valid[:, 0].tolist() == [False] * 4 + [True] * 4
    assert first.stats.get("dropped_episodes", 0.0) + second.stats.get("dropped_episodes", 0.0) == 1.0


def test_a_dropped_episode_does_not_come_back_as_a_finished_one():
    world = Script([[4]], lie={(1, 0): ("reward", np.nan)}, restarts=False)
    walker = collector(world, steps=8, nonfinite="drop_episode")
    walker.collect()
    assert [(e.return_, e.length) for e in walker.episodes.take_fresh()] == [(11.0 + 12 + 13 + 14, 4)]


def test_a_bad_first_observation_is_not_made_up():
    # Step 3 ends the first episode; what it shows of the second one is NaN.
    world = Script([[4]], lie={(3, 0): ("view", np.nan)})
    rollout = collector(world, steps=8, nonfinite="drop_episode").collect()
    learned = rollout.obs["obs"][:, 0][rollout.valid[:, 0]]
    told = {(0, 0, t) for t in range(4)} | {(0, e, t) for e in range(1, 6) for t in range(4)}
    assert {tuple(int(x) for x in row) for row in learned} <= told - {(0, 1, 0)}
    assert rollout.valid[:4, 0].all()  # the episode that ended well is kept
    assert rollout.stats["dropped_episodes"] == 1.0


def test_steps_that_were_taken_count_even_if_they_cannot_be_learned_from():
    world = Script([[4]], lie={(t, 0): ("reward", np.nan) for t in range(100)}, restarts=False)
    walker = collector(world, steps=8, nonfinite="drop_episode")
    walker.collect()
    assert walker.env_steps == 8  # else a run in a broken world would never be over


# --- going on ---


def rows(rollouts: list[Rollout]) -> dict[str, np.ndarray]:
    names = ("action", "log_prob", "value", "next_value", "reward", "terminated", "truncated", "start", "valid")
    return {name: np.concatenate([getattr(r, name) for r in rollouts]) for name in names}


@pytest.mark.parametrize("knobs", [{}, {"gsde": True, "gsde_every": 3}])
def test_a_collector_goes_on_from_its_state_to_the_last_bit(knobs):
    def make() -> Collector:
        policy = ActorCritic(Script.observation, Script.action, NetConfig(hidden=(4,), **knobs))
        return collector(Script([[5], [-3]]), 7, policy=policy, normalize_reward=True, seed=3)

    one, two = make(), make()
    one.collect()
    two.set_state(one.state())
    a, b = rows([one.collect(), one.collect()]), rows([two.collect(), two.collect()])
    assert all(np.array_equal(a[name], b[name]) for name in a)
    assert one.env_steps == two.env_steps == 42
    assert one.episodes.recent() == two.episodes.recent()


def test_a_state_that_was_taken_does_not_move_with_the_collector():
    walker = collector(Script([[50]]), steps=3)
    walker.collect()
    state = walker.state()
    before = state["episodes"]["returns"].copy()
    walker.collect()
    assert np.array_equal(state["episodes"]["returns"], before)


def test_a_world_that_cannot_be_put_back_is_restarted_where_it_says():
    class Vague(Script):
        inexact = "it does not say where it is"

        def state(self) -> dict[str, Any]:
            return {"restart_seed": 77}

        def set_state(self, state: dict[str, Any]) -> View:
            self.restarted_with = state["restart_seed"]
            return self.reset(state["restart_seed"])

    world = Vague([[5]])
    one, two = collector(Vague([[5]]), steps=3), collector(world, steps=3)
    one.collect()
    two.set_state(one.state())
    assert world.restarted_with == 77
    assert two.start.all()
    assert two.env_steps == 3


def test_a_stream_in_quarantine_is_not_shown_its_bad_number_after_a_resume():
    class Keeps(Script):
        """Comes back with the very view it gave last, as worlds that keep their view do."""

        def state(self) -> dict[str, Any]:
            return {**super().state(), "view": self.last}

        def set_state(self, state: dict[str, Any]) -> View:
            super().set_state(state)
            return View(obs={"obs": state["view"].copy()})

        def step(self, action: np.ndarray) -> Step:
            step = super().step(action)
            self.last = step.view.obs["obs"].copy()
            return step

    def make() -> Collector:
        return collector(Keeps([[12]], lie={(3, 0): ("view", np.nan)}, restarts=False), 4, nonfinite="drop_episode")

    one, two = make(), make()
    one.collect()
    two.set_state(one.state())
    a, b = one.collect(), two.collect()
    assert np.array_equal(a.action, b.action)
    assert np.isfinite(b.obs["obs"]).all()


def test_the_seed_decides_what_is_done():
    a, b, c = (collector(Script([[5]]), steps=4, seed=s).collect().action for s in (1, 1, 2))
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)


def test_the_time_is_split_between_world_and_policy():
    walker = collector(Script([[5]]), steps=4)
    walker.collect()
    assert set(walker.seconds) == {"collect", "env", "policy"}
    assert walker.seconds["collect"] == pytest.approx(walker.seconds["env"] + walker.seconds["policy"])


# --- memory ---


class Adder(nn.Module):
    """Remembers the sum of step + 1 over all it has seen of an episode, and says it as the value."""

    sequential = True

    def _sum(self, inputs: PolicyInput) -> Tensor:
        before = inputs.context["sum"]
        kept = before if inputs.start is None else torch.where(inputs.start, torch.zeros_like(before), before)
        return kept + inputs.obs["obs"][:, 2] + 1.0

    def act(self, inputs: PolicyInput, *, generator: torch.Generator, deterministic: bool = False) -> PolicyOutput:
        total = self._sum(inputs)
        dist = Gaussian(torch.zeros(len(total), 1), torch.zeros(1))
        action = dist.sample(generator)
        log_prob = dist.log_prob(action)
        return PolicyOutput(action=action, value=total, log_prob=log_prob, distribution=dist, context={"sum": total})

    def value(self, inputs: PolicyInput) -> Tensor:
        return self._sum(inputs)

    def initial_context(self, streams: int) -> dict[str, Tensor]:
        return {"sum": torch.zeros(streams)}

    def renew_context(self, context: dict[str, Tensor]) -> dict[str, Tensor]:
        return context

    def env_action(self, action: np.ndarray) -> np.ndarray:
        return action.clip(-1.0, 1.0)


def test_an_episode_cut_short_is_worth_what_its_own_memory_says_of_its_last_observation():
    rollout = collector(Script([[-3], [9]]), steps=5, policy=Adder()).collect()
    assert rollout.value[:, 0].tolist() == [1, 3, 6, 1, 3]
    # 1 + 2 + 3 were remembered and 4 is seen; a memory begun anew would say 4, the next episode's view 1.
    assert rollout.next_value[:, 0].tolist() == [3, 6, 10, 3, 6]
    assert rollout.next_value[:, 1].tolist() == [3, 6, 10, 15, 21]


def test_a_look_at_the_last_observation_of_one_stream_moves_no_memory():
    with_cut = collector(Script([[-2], [9]]), steps=6, policy=Adder()).collect()
    without = collector(Script([[9], [9]]), steps=6, policy=Adder()).collect()
    assert np.array_equal(with_cut.value[:, 1], without.value[:, 1])
    assert with_cut.value[:, 0].tolist() == [1, 3] * 3


def test_a_cut_at_the_end_of_a_rollout_is_worth_what_its_memory_says_too():
    rollout = collector(Script([[-3], [3]]), steps=3, policy=Adder()).collect()
    assert rollout.next_value[2, 0] == 10
    assert rollout.terminated[2].tolist() == [False, True]


def test_a_rollout_begins_with_the_memory_the_last_one_ended_with():
    walker = collector(Script([[9], [3]]), steps=4, policy=Adder())
    first, second = walker.collect(), walker.collect()
    assert first.context["sum"].tolist() == [0, 0]
    assert second.context["sum"].tolist() == [10, 1]
    assert first.next_value[3].tolist() == second.value[0].tolist() == [15, 3]
    assert second.value[:, 0].tolist() == [15, 21, 28, 36]


def test_what_a_rollout_walked_in_with_does_not_move_on_with_the_collector():
    walker = collector(Script([[9]]), steps=4, policy=Adder())
    walker.collect()
    second = walker.collect()
    walker.collect()
    assert second.context["sum"].tolist() == [10]


def test_rows_that_only_reset_leave_nothing_in_the_memory():
    rollout = collector(Script([[2]], late=True), steps=7, policy=Adder()).collect()
    assert rollout.valid[:, 0].tolist() == [True, True, False, True, True, False, True]
    assert rollout.value[rollout.valid].tolist() == [1, 3, 1, 3, 1]


def test_a_collector_goes_on_from_its_state_with_what_it_remembered():
    walker, again = (collector(Script([[9], [-4]]), steps=3, policy=Adder()) for _ in range(2))
    walker.collect()
    again.set_state(walker.state())
    one, two = walker.collect(), again.collect()
    assert np.array_equal(one.value, two.value)
    assert np.array_equal(one.next_value, two.next_value)
    assert one.context["sum"].tolist() == two.context["sum"].tolist() == [6, 6]


@pytest.mark.parametrize("memory", ["gru", "lstm"])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("knobs", [{}, {"shared": True}, {"gsde": True}, {"beta": True}])
def test_a_rollout_with_memory_is_fresh_for_the_learner(memory, late, knobs):
    config = NetConfig(hidden=(8,), memory=memory, memory_size=6, normalize_obs=True, **knobs)
    policy = ActorCritic(Script.observation, Script.action, config)
    walker = collector(Script([[5], [-3], [2], [40]], late=late), 20, policy=policy)
    learner = Learner(policy, PPOConfig(minibatch_size=40, epochs=2, lr=1e-2))
    for _ in range(3):
        assert learner.update(walker.collect(learner.policy_version)).first_ratio_error <= 1e-5


def test_the_true_memory_of_a_cut_stream_is_asked_by_the_real_policy_too():
    policy = ActorCritic(Script.observation, Script.action, NetConfig(hidden=(8,), memory="lstm", memory_size=6))
    rollout = collector(Script([[-3]]), 4, policy=policy).collect()
    context = policy.initial_context(1)
    for t in range(3):
        now = PolicyInput(obs={"obs": torch.from_numpy(rollout.obs["obs"][t])}, context=context)
        context = policy.act(now, generator=torch.Generator()).context
    last = {"obs": torch.tensor([[0.0, 0.0, 3.0]])}
    expected = policy.value(PolicyInput(obs=last, context=context)).item()
    forgotten = policy.value(PolicyInput(obs=last, context=policy.initial_context(1))).item()
    assert rollout.next_value[2, 0] == pytest.approx(expected, abs=1e-6)
    assert abs(expected - forgotten) > 1e-3
