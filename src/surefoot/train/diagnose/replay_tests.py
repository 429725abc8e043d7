"""Tests of an environment that play the same seed several times: with the same actions, and with one action changed.

Where the same seed and actions give the same episode again, the effect of one changed action is what differs afterwards:
a comparison of two numbers, without statistics. Where they do not, it shows what is random: the situation or only its view.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from surefoot.data.spaces import ActionSpace, Box, Discrete, Hybrid, choice_sizes
from surefoot.envs.api import Arrays, View, World
from surefoot.train.diagnose.statistics import distinct_rows, median
from surefoot.train.diagnose.step_features import explained

# Steps of each play, and streams that are compared.
STEPS, STREAMS = 48, 16
# Steps at which one action is changed, and steps after it that are compared.
BRANCHES, AFTER = (0, 1, 3, 6, 12, 24), 10
# Comparisons below which there is no result, and after which no further seed is played.
FEWEST, ENOUGH = 12, 40
# Most seeds that are played.
SEEDS = 6
# Comparisons of single steps where episodes are not the same again.
ROUNDS = 40
# Numbers of an observation that are compared; more are those of an image.
WIDEST = 4096


@dataclass(frozen=True, slots=True)
class Play:
    """The episodes of all streams from one reset on, until each stream's first end."""

    obs: np.ndarray
    """[K + 1, n, components]; the last one of an episode is its true last observation."""
    reward: np.ndarray
    """[K, n]"""
    terminated: np.ndarray
    ended: np.ndarray

    @property
    def length(self) -> np.ndarray:
        """[n]: steps until the first end, or all."""
        return np.where(self.ended.any(0), self.ended.argmax(0) + 1, len(self.ended))


def replay_stats(world: World, *, seed: int = 0) -> dict[str, float]:
    """Play the world several times and compare; a comparison that cannot be made has no entry.

    Args:
        world: Stepped and reset; it has to be reset again before it is used for anything else.
        seed: Seed of the world and of the actions.
    """
    streams = min(world.num_envs, STREAMS)
    rng = np.random.default_rng(seed)
    pairs, branches, drawn = list[tuple[Play, Play]](), list[_Branch](), list[np.ndarray]()
    for k in range(SEEDS):
        now = seed + 1000 * k
        draws = rng.random((STEPS, world.num_envs, _width(world.action)))
        first = _play(world, draws, now, streams)
        if first is None:
            return {}
        # Another episode in between: what is left of it must not show in the next one.
        between, again = _play(world, draws, now + 500, streams), _play(world, draws, now, streams)
        assert between is not None
        assert again is not None
        pairs.append((first, again))
        drawn.append(draws[:, :streams])
        branches += _branches(world, draws, now, first, again)
        if sum(len(each.own) for each in branches) >= ENOUGH:
            break
    stats = _reset(world, seed, streams) | _same_episode(pairs, drawn)
    stats |= _effects(pairs, branches)
    if stats["replay_same_share"] < 0.9:
        stats |= _against_chance(world, seed, streams)
    return stats


def _width(action: ActionSpace) -> int:
    numbers = action.size if isinstance(action, Box) else action.box.size if isinstance(action, Hybrid) else 0
    return len(choice_sizes(action)) + numbers


def _actions(space: ActionSpace, draws: np.ndarray, view: View) -> np.ndarray:
    """Return actions for numbers in [0, 1), [n, columns]; two that are 0.5 apart give different actions."""
    sizes, columns, begin = choice_sizes(space), list[np.ndarray](), 0
    for k, size in enumerate(sizes):
        mask = None if view.action_mask is None else view.action_mask[:, begin : begin + size]
        begin += size
        allowed = np.ones((len(draws), size), bool) if mask is None else mask
        place = np.floor(draws[:, k] * allowed.sum(1)).astype(np.int64)
        # The number of the allowed choice that has `place` allowed ones before it.
        columns.append((np.cumsum(allowed, axis=1) <= place[:, None]).sum(1))
    if not isinstance(space, Box | Hybrid):
        return columns[0] if isinstance(space, Discrete) else np.stack(columns, axis=1)
    box = space if isinstance(space, Box) else space.box
    low, high = (x.ravel().astype(np.float64) for x in box.bounds())
    numbers = draws[:, len(sizes) :]
    bounded = np.isfinite(low) & np.isfinite(high)
    low, high = np.where(bounded, low, -2.0), np.where(bounded, high, 2.0)
    # Half of the range: with all of it many episodes are over after some steps.
    numbers = (low + (0.25 + 0.5 * numbers) * (high - low)).astype(np.float32)
    if isinstance(space, Box):
        return numbers.reshape(len(draws), *space.shape)
    return np.concatenate([np.stack(columns, axis=1).astype(np.float32), numbers], axis=1)


def _play(world: World, draws: np.ndarray, seed: int, streams: int) -> Play | None:
    """Play one episode per stream; None if the observation has no numbers, or too many, to compare."""
    view = world.reset(seed)
    rows = [_flat(view.obs, streams)]
    if not 0 < rows[0].shape[1] <= WIDEST:
        return None
    rewards, terminated, ended = list[np.ndarray](), list[np.ndarray](), list[np.ndarray]()
    over = np.zeros(streams, bool)
    for step_draws in draws:
        step = world.step(_actions(world.action, step_draws, view))
        view = step.view
        ends = (step.terminated | step.truncated)[:streams]
        after = _flat(view.obs, streams)
        if step.final_obs is not None and ends.any():
            after = np.where(ends[:, None], _flat(step.final_obs, streams), after)
        rows.append(after)
        rewards.append(step.reward[:streams].copy())
        terminated.append(step.terminated[:streams].copy())
        ended.append(ends)
        over = over | ends
        if over.all():
            break
    return Play(np.stack(rows), np.stack(rewards), np.stack(terminated), np.stack(ended))


def _flat(obs: Arrays, streams: int) -> np.ndarray:
    parts = [x[:streams].reshape(streams, -1) for x in obs.values() if x.dtype.kind in "fiub"]
    # A copy: a world may use the same arrays again.
    return np.concatenate(parts, axis=1).astype(np.float64) if parts else np.zeros((streams, 0))


def _reset(world: World, seed: int, streams: int) -> dict[str, float]:
    """Return the share of streams that a reset leaves where they are, of those that had moved."""
    view, same, moved = world.reset(seed), list[np.ndarray](), list[np.ndarray]()
    rng = np.random.default_rng(seed)
    for k in range(1, 5):
        begin, over = _flat(view.obs, streams), np.zeros(streams, bool)
        for _ in range(4):
            step = world.step(_actions(world.action, rng.random((world.num_envs, _width(world.action))), view))
            view, over = step.view, over | (step.terminated | step.truncated)[:streams]
        last = _flat(view.obs, streams)
        view = world.reset(seed + k)
        moved.append((last != begin).any(axis=1) & ~over)
        same.append((_flat(view.obs, streams) == last).all(axis=1))
    chosen = np.concatenate(moved)
    return {"reset_ignored_share": float(np.concatenate(same)[chosen].mean())} if chosen.sum() >= FEWEST else {}


def _same_episode(pairs: list[tuple[Play, Play]], drawn: list[np.ndarray]) -> dict[str, float]:
    """Compare plays of the same seeds and actions: are they the same, and if not, is it the situation or its view?

    The view differs where rewards and ends are the same and informative, and observations do not even correlate. A clock or a
    running normalization makes observations differ too, but as a linear function.
    """
    equal, rewards_known, rewards_random, ends_random = list[float](), 0, 0, list[float]()
    xs, ys, paid, acted = (list[np.ndarray]() for _ in range(4))
    lengths = list[int]()
    agreed, count = 0, 0
    for (left, right), draws in zip(pairs, drawn, strict=True):
        for i in range(left.obs.shape[1]):
            n = int(min(left.length[i], right.length[i]))
            same_obs = (left.obs[: n + 1, i] == right.obs[: n + 1, i]).all(axis=1)
            same_reward = np.isclose(left.reward[:n, i], right.reward[:n, i], rtol=1e-6, atol=1e-9)
            same_end = left.length[i] == right.length[i] and bool(
                (left.terminated[:n, i] == right.terminated[:n, i]).all()
            )
            equal.append(float(same_obs.all() and same_reward.all() and same_end))
            # What is random although observations are the same up to then.
            known = np.logical_and.accumulate(same_obs)
            rewards_known += int(known[1:].sum())
            rewards_random += int((~same_reward & known[1:]).sum())
            if known[n]:
                ends_random.append(float(not same_end))
            count += 1
            if same_end and same_reward.all():
                agreed += 1
                xs.append(left.obs[: n + 1, i])
                ys.append(right.obs[: n + 1, i])
                paid.append(left.reward[:n, i])
                acted.append(draws[:n, i])
                lengths += [n] if left.ended[:, i].any() else []
    stats = {"replay_same_share": float(np.mean(equal))}
    if rewards_known >= 8 * FEWEST:
        stats["replay_reward_random"] = rewards_random / rewards_known
    if len(ends_random) >= FEWEST:
        stats["replay_end_random"] = float(np.mean(ends_random))
    if agreed < max(4, 0.9 * count) or not (
        (len(lengths) >= 6 and len(set(lengths)) >= 3) or _informative(np.concatenate(paid), np.concatenate(acted))
    ):
        return stats
    x, y = np.concatenate(xs), np.concatenate(ys)
    moving = np.minimum(x.std(0), y.std(0)) > 1e-6 * np.maximum(1.0, np.abs(x).max(0))
    if not moving.any():
        return stats
    x, y = x[:, moving], y[:, moving]
    products = ((x - x.mean(0)) * (y - y.mean(0))).mean(0)
    return stats | {"replay_view_correlation": float((products / (x.std(0) * y.std(0))).min())}


def _informative(reward: np.ndarray, draws: np.ndarray) -> bool:
    """Return whether rewards vary, and not just with the action, so that the same ones mean the same situation."""
    if distinct_rows(np.round(reward, 6)[:, None]) < 8:
        return False
    return (
        float(explained(np.concatenate([np.ones_like(draws[:, :1]), draws, draws**2], axis=1), reward[:, None])[0])
        < 0.9
    )


@dataclass(frozen=True, slots=True)
class _Branch:
    """What one changed action per stream did in one play."""

    own: list[tuple[float, float, float]]
    """(steps until the observation, the reward, the end differs) of each changed stream."""
    leaks: list[float]
    """Whether a stream without a change differs."""
    sizes: list[np.ndarray]
    """[components]: the first difference of the observation."""


def _branches(world: World, draws: np.ndarray, seed: int, first: Play, again: Play) -> list[_Branch]:
    streams = first.obs.shape[1]
    stable = np.array([min(_first(first, again, i, -1, len(draws) + 1)) == math.inf for i in range(streams)])
    results = list[_Branch]()
    if not stable.any():
        return results
    for at in BRANCHES:
        usable = np.flatnonzero(stable & (first.length > at + 2))
        if not len(usable):
            break
        changed = draws.copy()
        # The other streams keep their actions: nothing of what they see may change.
        changed[at, :: 1 if streams == 1 else 2] = (changed[at, :: 1 if streams == 1 else 2] + 0.5) % 1.0
        other = _play(world, changed, seed, streams)
        assert other is not None
        when = {int(i): _first(first, other, int(i), at) for i in usable}
        own = [i for i in when if i % 2 == 0]
        sizes = [
            np.abs(first.obs[k, i] - other.obs[k, i])
            for i in own
            if when[i][0] < math.inf
            for k in [int(at + 1 + when[i][0])]
        ]
        leaks = [float(min(when[i]) < math.inf) for i in when if i % 2]
        results.append(_Branch([when[i] for i in own], leaks, sizes))
    return results


def _effects(pairs: list[tuple[Play, Play]], branches: list[_Branch]) -> dict[str, float]:
    """Return what one changed action did, in episodes that are the same again if nothing is changed.

    `branch_effect` is the share of changes after which the observation or the end differs, `branch_lag` how many steps late,
    `branch_size` the first difference in deviations of the change per step, `branch_leak` the share of streams without a
    change that differ, `branch_reward` the share of effects after which a reward differs too, and `branch_reward_lag` how
    many steps later.
    """
    own, leaks = [x for each in branches for x in each.own], [x for each in branches for x in each.leaks]
    plays = [pair[0] for pair in pairs]
    alive = [np.arange(len(p.reward))[:, None] < p.length for p in plays]
    reward = np.concatenate([p.reward[a] for p, a in zip(plays, alive, strict=True)])
    lengths = {int(n) for p in plays for n in p.length}
    # If every episode gets the same reward in the same number of steps, no action can matter.
    if len(own) < FEWEST or (np.ptp(reward) == 0.0 and len(lengths) == 1 and all(p.ended.any(0).all() for p in plays)):
        return {}
    changes = np.concatenate([np.diff(p.obs, axis=0)[a] for p, a in zip(plays, alive, strict=True)])
    scale = np.maximum(changes.std(0), 1e-12)
    stats = {"branch_effect": float(np.mean([min(obs, end) < math.inf for obs, _, end in own]))}
    stats |= {"branch_leak": float(np.mean(leaks))} if len(leaks) >= FEWEST else {}
    # How often the reward is another one than usually: rare rewards tell nothing within some steps.
    stats["reward_varied_share"] = float((reward != median(reward)).mean())
    counted = [(obs, paid) for obs, paid, _ in own if obs < math.inf]
    if len(counted) < FEWEST:
        return stats
    stats["branch_lag"] = median(np.array([obs for obs, _ in counted]))
    stats["branch_size"] = median(np.array([(x / scale).max() for each in branches for x in each.sizes]))
    stats["branch_reward"] = float(np.mean([paid < math.inf for _, paid in counted]))
    later = [paid - obs for obs, paid in counted if paid < math.inf]
    if len(later) >= FEWEST:
        stats["branch_reward_lag"] = median(np.array(later))
    return stats


def _against_chance(world: World, seed: int, streams: int) -> dict[str, float]:
    """Return the share of the difference of one step that its action makes, where chance makes the rest.

    Three plays of a few steps: twice the same actions and once the last one changed. Of streams that were the same up to
    then, the last observations are compared.
    """
    rng = np.random.default_rng(seed)
    # By whether it is the first step of an episode: an environment may do another thing there.
    own, chance = ({True: list[np.ndarray](), False: list[np.ndarray]()} for _ in range(2))
    for k in range(ROUNDS):
        at = k % 4
        draws = rng.random((at + 1, world.num_envs, _width(world.action)))
        changed = draws.copy()
        changed[at] = (changed[at] + 0.5) % 1.0
        plays = [_play(world, each, seed + k, streams) for each in (draws, draws, changed)]
        left, same, other = (play for play in plays if play is not None)
        if min(len(play.reward) for play in (left, same, other)) <= at:
            continue
        alike = np.ones(streams, bool)
        for play in (left, same, other):
            alike &= (play.length > at) & (play.obs[: at + 1] == left.obs[: at + 1]).all(axis=(0, 2))
        chance[at == 0].append((same.obs[at + 1] - left.obs[at + 1])[alike])
        own[at == 0].append((other.obs[at + 1] - left.obs[at + 1])[alike])
    later = sum(len(x) for x in own[False]) >= 8 * FEWEST
    if not later and sum(len(x) for x in own[True]) < 4 * FEWEST:
        return {}
    with_action, without = (np.square(np.concatenate(x[not later])).mean(0) for x in (own, chance))
    moved = with_action > 1e-18
    return {"branch_gain": float((1.0 - without[moved] / with_action[moved]).max()) if moved.any() else 0.0}


def _first(left: Play, right: Play, i: int, begin: int, after: int = AFTER) -> tuple[float, float, float]:
    """Return after how many steps from `begin` the observation, the reward and the end of stream i differ first.

    A `begin` of -1 compares the first observations too.
    """
    ends = sorted((int(left.length[i]), int(right.length[i])))
    until = min(ends[0], begin + after)
    obs = (left.obs[begin + 1 : until + 1, i] != right.obs[begin + 1 : until + 1, i]).any(axis=1)
    reward = left.reward[max(begin, 0) : until, i] != right.reward[max(begin, 0) : until, i]
    end = float(ends[0] - 1 - begin) if ends[0] != ends[1] and ends[0] <= begin + after else math.inf
    return _when(obs), _when(reward), end


def _when(differs: np.ndarray) -> float:
    return float(differs.argmax()) if differs.any() else math.inf
