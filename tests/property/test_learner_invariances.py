"""What must not matter to an update does not: padding, neighbours, the order of streams, the scale of advantages."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.data.rollout import Rollout
from surefoot.data.spaces import Box, Discrete
from surefoot.learn.config import PPOConfig
from surefoot.learn.learner import Learner
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.policy import PolicyInput

SOME = settings(max_examples=25)
shapes = st.tuples(st.integers(1, 6), st.integers(1, 4)).filter(lambda s: s[0] * s[1] >= 2)
seeds = st.integers(0, 2**31)


def a_policy() -> ActorCritic:
    return ActorCritic({"obs": Box((2,))}, Discrete(3), NetConfig(hidden=(4,), normalize_obs=True), seed=1)


@torch.no_grad()
def walk(shape: tuple[int, int], seed: int) -> Rollout:
    rng = np.random.default_rng(seed)
    obs = rng.normal(size=(*shape, 2)).astype(np.float32)
    flat = PolicyInput(obs={"obs": torch.from_numpy(obs.reshape(-1, 2))})
    out = a_policy().act(flat, generator=torch.Generator().manual_seed(seed))
    ends = rng.random(shape)
    return Rollout(
        obs={"obs": obs},
        **{name: getattr(out, name).numpy().reshape(shape) for name in ("action", "log_prob", "value")},
        next_value=rng.normal(size=shape).astype(np.float32),
        reward=rng.normal(size=shape).astype(np.float32),
        terminated=ends < 0.2,
        truncated=(ends >= 0.2) & (ends < 0.3),
        start=np.zeros(shape, bool),
        valid=np.ones(shape, bool),
        policy_version=np.zeros(shape, np.int64),
    )


def changed(rollout: Rollout, change) -> Rollout:
    """Every [T, N, …] array through `change(name, array)`."""
    parts = {f.name: getattr(rollout, f.name) for f in dataclasses.fields(rollout)}
    arrays = {name: change(name, x) for name, x in parts.items() if isinstance(x, np.ndarray)}
    return Rollout(**{**parts, **arrays, "obs": {"obs": change("obs", rollout.obs["obs"])}})


def learned(rollout: Rollout, **knobs):
    policy = a_policy()
    report = Learner(policy, PPOConfig(**{"lr": 1e-3, "epochs": 2, "minibatch_size": 5, **knobs})).update(rollout)
    return policy.state_dict(), report


@SOME
@given(shapes, seeds, st.integers(0, 3), st.integers(0, 3))
def test_rubbish_that_does_not_count_changes_no_bit(shape, seed, more_steps, more_streams):
    rubbish = {"action": 0, "valid": False, "policy_version": -5}

    def pad(name: str, x: np.ndarray) -> np.ndarray:
        fill = rubbish.get(name, True if x.dtype == bool else np.nan)
        return np.pad(x, [(0, more_steps), (0, more_streams)] + [(0, 0)] * (x.ndim - 2), constant_values=fill)

    rollout = walk(shape, seed)
    (a, one), (b, two) = learned(rollout), learned(changed(rollout, pad))
    assert all(torch.equal(x, b[name]) for name, x in a.items())
    assert one.metrics() == two.metrics()


@SOME
@given(shapes, seeds, seeds)
def test_the_order_of_streams_changes_no_statistic(shape, seed, order):
    turn = np.random.default_rng(order).permutation(shape[1])
    rollout = walk(shape, seed)
    _, one = learned(rollout, epochs=1, minibatch_size=1000)
    _, two = learned(changed(rollout, lambda _, x: x[:, turn]), epochs=1, minibatch_size=1000)
    for name, x in one.metrics().items():
        assert np.isclose(x, two.metrics()[name], rtol=1e-3, atol=1e-5), name


@SOME
@given(shapes, seeds)
def test_a_fresh_rollout_has_a_ratio_of_one_and_moves_nothing_at_first(shape, seed):
    _, report = learned(walk(shape, seed), epochs=1, minibatch_size=1000)
    assert report.first_ratio_error <= 1e-5
    assert report.approx_kl <= 1e-9
    assert report.clip_fraction == 0.0


@SOME
@given(shapes, seeds, st.floats(0.1, 100.0))
def test_the_scale_of_the_reward_does_not_move_the_actor_of_a_one_step_world(shape, seed, scale):
    # Advantages are standardised; without a critic to learn only the actor moves.
    def one_step(name: str, x: np.ndarray) -> np.ndarray:
        match name:
            case "terminated":
                return np.ones_like(x)
            case "truncated":
                return np.zeros_like(x)
            case "value":
                return np.zeros_like(x)
            case _:
                return x

    rollout = changed(walk(shape, seed), one_step)
    scaled = changed(rollout, lambda name, x: (x * scale).astype(np.float32) if name == "reward" else x)
    # SGD: Adam would blow up the rounding of gradients that are almost zero.
    knobs = {"vf_coef": 0.0, "normalize_advantage": "batch", "optimizer": "sgd", "lr": 0.01}
    (a, one), (b, two) = learned(rollout, **knobs), learned(scaled, **knobs)
    if one.advantage_std > 1e-2 and two.advantage_std > 1e-2:
        assert all(torch.allclose(x, b[name], atol=1e-5) for name, x in a.items() if "normalizer" not in name)


@SOME
@given(shapes, seeds, seeds)
def test_the_shuffle_changes_digits_but_not_what_is_learned_from(shape, seed, other):
    rollout = walk(shape, seed)
    _, one = learned(rollout, seed=seed)
    _, two = learned(rollout, seed=other)
    for name in ("samples", "explained_variance", "advantage_mean", "reward_mean", "target_mean", "minibatches"):
        assert getattr(one, name) == getattr(two, name)


@SOME
@given(shapes, seeds)
def test_the_same_update_twice_is_the_same_to_the_last_bit(shape, seed):
    (a, one), (b, two) = learned(walk(shape, seed)), learned(walk(shape, seed))
    assert all(torch.equal(x, b[name]) for name, x in a.items())
    assert one.metrics() == two.metrics()
