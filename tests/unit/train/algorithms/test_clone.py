"""Behaviour cloning against frequencies, closed forms and its own promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from surefoot.data.spaces import ActionSpace, Box, Discrete, MultiDiscrete
from surefoot.data.trajectory import Trajectory
from surefoot.errors import ConfigError, RecordingError
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.policy import PolicyInput
from surefoot.train.algorithms.clone import CloneConfig, CloneReport, clone, reward_scale_of, stored_action
from surefoot.train.collect.reward import RewardScaler

OBS = {"obs": Box((2,))}
HEADS: dict[str, tuple[ActionSpace, dict[str, bool]]] = {
    "discrete": (Discrete(3, start=5), {}),
    "several": (MultiDiscrete((2, 3)), {}),
    "gaussian": (Box((2, 1), -1.0, 3.0), {}),
    "tanh": (Box((2,), -1.0, 3.0), {"squash": True}),
    "gsde": (Box((2,), -1.0, 3.0), {"gsde": True}),
}


def a_policy(action: ActionSpace = Discrete(2), seed: int = 1, **net) -> ActorCritic:
    return ActorCritic(OBS, action, NetConfig(hidden=(16,), **net), seed=seed)


def episode(action: np.ndarray, obs: np.ndarray | None = None, reward: float = 1.0, *, ends: bool = True) -> Trajectory:
    steps = len(action)
    obs = np.zeros((steps + 1, 2), np.float32) if obs is None else obs
    return Trajectory(
        obs={"obs": obs}, action=action, reward=np.full(steps, reward), terminated=ends, truncated=not ends
    )


def by_rule(episodes: int = 12, steps: int = 40, seed: int = 0) -> list[Trajectory]:
    """Action 1 exactly where the first number is positive."""
    rng = np.random.default_rng(seed)
    obs = rng.normal(size=(episodes, steps + 1, 2)).astype(np.float32)
    return [episode((x[:-1, 0] > 0).astype(np.int64), x) for x in obs]


def cloned(policy, episodes, seed: int = 0, **config) -> list[CloneReport]:
    generator = torch.Generator().manual_seed(seed)
    return list(clone(policy, episodes, CloneConfig(**config), generator=generator))


def test_a_rule_is_learned_from_a_few_episodes_and_holds_where_nobody_looked():
    policy = a_policy()
    reports = cloned(policy, by_rule(), epochs=40, lr=1e-2, minibatch_size=64)
    assert reports[-1].agreement > 0.95
    fresh = by_rule(4, seed=9)
    obs = torch.from_numpy(np.concatenate([e.obs["obs"][:-1] for e in fresh]))
    out = policy.act(PolicyInput(obs={"obs": obs}), generator=torch.Generator(), deterministic=True)
    assert (out.action.numpy() == np.concatenate([e.action for e in fresh])).mean() > 0.95


def test_where_nothing_tells_choices_apart_their_frequencies_are_learned():
    policy = a_policy(Discrete(3))
    action = np.repeat([0, 1, 2], [50, 30, 20])
    cloned(policy, [episode(action)], epochs=300, lr=1e-2, minibatch_size=100, validation=0.0)
    out = policy.act(PolicyInput(obs={"obs": torch.zeros(1, 2)}), generator=torch.Generator())
    np.testing.assert_allclose(out.action_params["probs"][0].detach().numpy(), [0.5, 0.3, 0.2], atol=0.01)


def test_a_gaussian_learns_mean_and_deviation_of_what_was_done():
    policy = a_policy(Box((1,), -10.0, 10.0))
    action = np.random.default_rng(0).normal(2.0, 0.5, (400, 1)).astype(np.float32)
    cloned(policy, [episode(action)], epochs=200, lr=1e-2, minibatch_size=400, validation=0.0, least_std=0.01)
    out = policy.act(PolicyInput(obs={"obs": torch.zeros(1, 2)}), generator=torch.Generator())
    assert out.action_params["mean"].item() == pytest.approx(float(action.mean()), abs=0.05)
    assert out.action_params["std"].item() == pytest.approx(float(action.std()), abs=0.05)


def test_a_clone_of_a_deterministic_expert_keeps_something_to_explore_with():
    policy = a_policy(Box((1,), -1.0, 1.0))
    cloned(policy, [episode(np.full((50, 1), 0.3, np.float32))], epochs=100, lr=3e-2, validation=0.0, least_std=0.25)
    assert policy.action_std() == pytest.approx(0.25)


@pytest.mark.parametrize("kind", HEADS)
def test_every_kind_of_action_becomes_likelier(kind: str):
    space, net = HEADS[kind]
    policy, rng = a_policy(space, **net), np.random.default_rng(0)
    obs = rng.normal(size=(65, 2)).astype(np.float32)
    match space:
        case Discrete():
            action = space.start + rng.integers(0, space.n, 64)
        case MultiDiscrete():
            action = np.stack([rng.integers(0, n, 64) for n in space.nvec], axis=1)
        case _:
            action = rng.uniform(-1, 3, (64, *space.shape)).astype(np.float32)
    reports = cloned(policy, [episode(action, obs)], epochs=15, lr=1e-2, minibatch_size=16, validation=0.0)
    assert reports[-1].log_prob > reports[0].log_prob + 0.03
    assert all(r.validation_log_prob is None for r in reports)
    assert (reports[0].agreement is None) == isinstance(space, Box)


@pytest.mark.parametrize("kind", HEADS)
def test_what_would_be_stored_leads_to_what_was_recorded(kind: str):
    space, net = HEADS[kind]
    policy = a_policy(space, **net)
    seen = PolicyInput(obs={"obs": torch.randn(7, 2)}, context=policy.initial_context(7))
    out = policy.act(seen, generator=torch.Generator().manual_seed(0))
    sent = policy.env_action(out.action.detach().numpy())
    kept = stored_action(policy, sent)
    assert kept.shape == tuple(out.action.shape)
    np.testing.assert_allclose(policy.env_action(kept), sent, atol=5e-3)


def test_the_critic_learns_the_value_of_a_world_that_never_ends():
    """Reward 1 for ever is worth 1 / (1 - γ); the episodes were only cut short."""
    policy = a_policy()
    episodes = [episode(np.zeros(30, np.int64), ends=False) for _ in range(4)]
    cloned(policy, episodes, epochs=250, lr=1e-2, gamma=0.8, validation=0.0)
    assert policy.value(PolicyInput(obs={"obs": torch.zeros(1, 2)})).item() == pytest.approx(5.0, abs=0.05)


def test_nothing_comes_after_a_termination():
    policy = a_policy()
    cloned(policy, [episode(np.zeros(1, np.int64), reward=3.0) for _ in range(8)], epochs=300, lr=1e-2, validation=0.0)
    assert policy.value(PolicyInput(obs={"obs": torch.zeros(1, 2)})).item() == pytest.approx(3.0, abs=0.05)


def test_scaled_rewards_make_scaled_values():
    policy, generator = a_policy(), torch.Generator().manual_seed(0)
    episodes = [episode(np.zeros(1, np.int64), reward=30.0) for _ in range(8)]
    list(clone(policy, episodes, CloneConfig(epochs=300, lr=1e-2), generator=generator, reward_scale=10.0))
    assert policy.value(PolicyInput(obs={"obs": torch.zeros(1, 2)})).item() == pytest.approx(3.0, abs=0.05)


def test_without_its_weight_the_critic_stays_as_it_is():
    policy = a_policy()
    before = policy.network.value_out.weight.clone()
    reports = cloned(policy, by_rule(3), epochs=2, vf_coef=0.0)
    assert torch.equal(policy.network.value_out.weight, before)
    assert reports[-1].value_loss == 0.0


def test_the_scale_of_rewards_is_the_scalers_own_and_its_streams_are_left_alone():
    scaler, other = RewardScaler(3, gamma=0.9, clip=10.0), RewardScaler(1, gamma=0.9, clip=10.0)
    scaler.running[:] = [1.0, 2.0, 3.0]
    rng = np.random.default_rng(0)
    rewards = [rng.normal(2, 3, n) for n in (5, 9)]
    episodes = [
        Trajectory(
            obs={"obs": np.zeros((len(r) + 1, 2))}, action=np.zeros(len(r)), reward=r, terminated=True, truncated=False
        )
        for r in rewards
    ]
    found = reward_scale_of(episodes, scaler)
    ended = np.zeros((14, 1), bool)
    ended[[4, 13]] = True
    other.scale(np.concatenate(rewards)[:, None], ended, np.ones((14, 1), bool))
    assert found == pytest.approx(math.sqrt(other.var + 1e-8))
    assert scaler.running.tolist() == [1.0, 2.0, 3.0]


def noise(episodes: int = 6) -> list[Trajectory]:
    """Choices that nothing foretells: what is learned of some says nothing of the others."""
    rng = np.random.default_rng(0)
    return [episode(rng.integers(0, 2, 10), rng.normal(size=(11, 2)).astype(np.float32)) for _ in range(episodes)]


def test_cloning_stops_when_the_episodes_it_only_looks_at_no_longer_become_likelier():
    policy = a_policy()
    reports = cloned(policy, noise(), epochs=500, lr=3e-2, validation=0.34, patience=4, vf_coef=0.0)
    assert len(reports) < 500
    assert [r.stopped for r in reports] == [False] * (len(reports) - 1) + [True]
    assert not any(r.best for r in reports[-4:])
    assert reports[-5].best
    assert reports[-1].steps == 40


def test_the_weights_that_are_kept_are_the_best_ones_also_for_who_stops_early():
    snapshots, policy = [], a_policy()
    run = clone(policy, noise(), CloneConfig(lr=3e-2, validation=0.34, patience=50), generator=torch.Generator())
    for report in run:
        snapshots.append((report.best, {k: x.clone() for k, x in policy.state_dict().items()}))
        if len(snapshots) >= 12 and not report.best:
            break
    run.close()
    (best,) = [weights for is_best, weights in snapshots if is_best][-1:]
    assert all(torch.equal(x, best[k]) for k, x in policy.state_dict().items())


def test_the_same_seed_clones_the_same_bits():
    policies = [a_policy(), a_policy(), a_policy()]
    for policy, seed in zip(policies, (3, 3, 4), strict=True):
        cloned(policy, by_rule(5), seed=seed, epochs=2)
    first, same, other = ([p.detach() for p in policy.parameters()] for policy in policies)
    assert all(torch.equal(a, b) for a, b in zip(first, same, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(first, other, strict=True))


def test_statistics_of_observations_are_those_of_the_episodes_learned_from():
    policy = a_policy(normalize_obs=True)
    episodes = by_rule(4)
    cloned(policy, episodes, epochs=1, validation=0.0)
    seen = np.concatenate([e.obs["obs"][:-1] for e in episodes])
    np.testing.assert_allclose(policy.flatten.normalizer.mean.numpy(), seen.mean(axis=0), atol=1e-6)
    assert policy.flatten.normalizer.count.item() == len(seen)


def test_masks_hold_while_cloning():
    """Where only one choice was allowed there is nothing to learn: its log-prob is 0 from the start."""
    mask = np.tile([True, False], (20, 1))
    one = Trajectory(
        obs={"obs": np.zeros((21, 2), np.float32)}, action=np.zeros(20, np.int64), reward=np.ones(20), terminated=True,
        truncated=False, action_mask=mask,
    )  # fmt: skip
    reports = cloned(a_policy(), [one], epochs=1, validation=0.0)
    assert reports[0].log_prob == pytest.approx(0.0, abs=1e-6)
    with pytest.raises(RecordingError, match="all or none"):
        cloned(a_policy(), [one, episode(np.zeros(3, np.int64))], validation=0.0)


def test_a_policy_with_a_memory_gets_whole_episodes_and_padding_counts_for_nothing():
    rng, episodes = np.random.default_rng(0), []
    for steps in rng.integers(3, 30, 24):
        obs = rng.normal(size=(steps + 1, 2)).astype(np.float32)
        episodes.append(episode((obs[:-1, 0].cumsum() > 0).astype(np.int64), obs))
    policy = ActorCritic(OBS, Discrete(2), NetConfig(hidden=(16,), memory="gru", memory_size=16), seed=1)
    reports = cloned(policy, episodes, epochs=60, lr=1e-2, validation=0.0, gamma=0.0)
    assert reports[-1].log_prob > -0.25
    assert reports[-1].steps == sum(e.steps for e in episodes)
    assert reports[-1].value_loss < 1e-3  # γ = 0: every value is 1


def test_a_network_of_ones_own_is_cloned_into_as_well():
    class Mine(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 3)

        def forward(self, obs):
            raw = self.layer(obs["obs"])
            return raw[:, :2], raw[:, 2]

    reports = cloned(ActorCritic(OBS, Discrete(2), NetConfig(), network=Mine()), by_rule(), epochs=30, lr=3e-2)
    assert reports[-1].agreement > 0.9


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("epochs", 0), ("minibatch_size", 0), ("patience", 0), ("lr", 0.0), ("least_std", -1.0), ("ent_coef", -0.1)),
        *(("vf_coef", float("nan")), ("validation", 1.0), ("gamma", 1.1)),
    ],
    ids=str,
)
def test_a_knob_that_cannot_work_is_refused_by_name(name, value):
    with pytest.raises(ConfigError, match=name):
        CloneConfig(**{name: value})


def test_no_episode_nothing_to_clone():
    with pytest.raises(RecordingError, match="no episode"):
        cloned(a_policy(), [])


def test_numbers_that_left_the_finite_end_it_with_the_weights_as_they_were():
    policy = a_policy()
    before = {k: x.clone() for k, x in policy.state_dict().items()}
    with pytest.raises(RecordingError, match="not finite"):
        cloned(policy, [episode(np.zeros(3, np.int64), reward=math.nan)], validation=0.0)
    assert all(torch.equal(x, before[k]) for k, x in policy.state_dict().items())
