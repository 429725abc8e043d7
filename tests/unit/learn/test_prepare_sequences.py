"""Streams cut into shorter columns: each begins with what stepping carried there, and the ratio still begins at 1."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from surefoot.core.batch import Batch
from surefoot.data.rollout import Rollout
from surefoot.data.spaces import Box, Discrete
from surefoot.errors import ConfigError
from surefoot.learn.config import PPOConfig
from surefoot.learn.learner import Learner
from surefoot.learn.prepare import cut, pieces
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.policy import PolicyInput

T, N = 20, 3
KINDS = ["gru", "lstm"]


def a_policy(kind: str = "gru", **knobs) -> ActorCritic:
    config = NetConfig(hidden=(8,), memory=kind, memory_size=6, **knobs)
    policy = ActorCritic({"obs": Box((3,))}, Discrete(4), config, seed=1)
    with torch.no_grad():  # a policy with an opinion
        policy.network.policy_out.weight.mul_(100.0)
    return policy


@torch.no_grad()
def walk(policy: ActorCritic, *, valid: np.ndarray | None = None) -> tuple[Rollout, list[dict[str, Tensor]]]:
    """A rollout by the policy itself with episodes that begin in the middle, and what it carried into each step."""
    rng, generator = np.random.default_rng(0), torch.Generator().manual_seed(0)
    obs = rng.normal(size=(T, N, 3)).astype(np.float32)
    ended = rng.random((T, N)) < 0.15
    start = np.concatenate([np.array([[False, True, False]]), ended[:-1]])
    context = {n: torch.randn(x.shape, generator=generator) for n, x in policy.initial_context(N).items()}
    carried, steps = [context], []
    for t in range(T):
        seen = PolicyInput(obs={"obs": torch.from_numpy(obs[t])}, start=torch.from_numpy(start[t]), context=carried[-1])
        out = policy.act(seen, generator=generator)
        carried.append(out.context)
        steps.append((out.action.numpy(), out.log_prob.numpy(), out.value.numpy()))
    action, log_prob, value = (np.stack(x) for x in zip(*steps, strict=True))
    rollout = Rollout(
        obs={"obs": obs},
        action=action,
        log_prob=log_prob,
        value=value,
        next_value=rng.normal(size=(T, N)).astype(np.float32),
        reward=rng.normal(size=(T, N)).astype(np.float32),
        terminated=ended,
        truncated=np.zeros((T, N), bool),
        start=start,
        valid=np.ones((T, N), bool) if valid is None else valid,
        policy_version=np.zeros((T, N), np.int64),
        context={name: x.numpy() for name, x in context.items()},
    )
    return rollout, carried


def a_config(**knobs) -> PPOConfig:
    return PPOConfig(**{"lr": 1e-3, "epochs": 2, "minibatch_size": 16, **knobs})


def a_batch(policy: ActorCritic, rollout: Rollout) -> Batch:
    return Learner(policy, a_config()).prepare(rollout)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("length", "burn_in"), [(5, 0), (6, 0), (4, 3), (8, 8), (1, 0)])
def test_a_column_begins_with_what_stepping_carried_there(kind, length, burn_in):
    policy = a_policy(kind)
    rollout, carried = walk(policy)
    columns = cut(a_batch(policy, rollout), policy, length=length, burn_in=burn_in)
    width, obs = length + burn_in, torch.from_numpy(rollout.obs["obs"])
    assert columns.advantage.shape == (width, N * -(-T // length))
    for column in range(columns.columns):
        stream = column % N
        rows = (obs[:, stream] == columns.obs["obs"][0, column]).all(dim=-1)
        begin = int(rows.nonzero()[0, 0])
        assert torch.equal(columns.obs["obs"][:, column], obs[begin : begin + width, stream])
        for name, x in columns.context.items():
            assert torch.allclose(x[column], carried[begin][name][stream], atol=1e-5)


def test_every_field_is_cut_alike():
    policy = a_policy()
    batch = a_batch(policy, walk(policy)[0])
    batch = replace(batch, action_mask=torch.rand(T, N, 4) < 0.5, ref_log_prob=torch.randn(T, N))
    columns = cut(batch, policy, length=5, burn_in=0)
    for name in ("action", "log_prob", "value", "advantage", "target", "start", "ref_log_prob", "action_mask"):
        whole, parts = getattr(batch, name), getattr(columns, name)
        for piece in range(4):
            assert torch.equal(parts[:, piece * N : (piece + 1) * N], whole[piece * 5 : (piece + 1) * 5]), name


@pytest.mark.parametrize(("length", "burn_in"), [(T, 0), (T + 5, 0), (T - 4, 4), (5, T)])
def test_where_one_column_holds_all_it_is_the_batch_itself(length, burn_in):
    policy = a_policy()
    batch = a_batch(policy, walk(policy)[0])
    assert cut(batch, policy, length=length, burn_in=burn_in) is batch


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("knobs", [{}, {"sequence": 8}, {"sequence": 6, "burn_in": 3}, {"sequence": 1}])
def test_an_update_over_columns_begins_with_a_ratio_of_one(kind, shared, knobs):
    policy = a_policy(kind, shared=shared)
    report = Learner(policy, a_config(**knobs)).update(walk(policy)[0])
    assert report.first_ratio_error < 1e-5
    assert report.samples == T * N
    assert report.minibatches > 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sequence", [None, 8])
def test_a_rollout_that_lies_about_its_beginnings_shows_in_the_first_ratio(kind, sequence):
    for start in (np.zeros, np.ones):
        policy = a_policy(kind)
        rollout = replace(walk(policy)[0], start=start((T, N), bool))
        report = Learner(policy, a_config(minibatch_size=1000, sequence=sequence)).update(rollout)
        assert report.first_ratio_error > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_a_rollout_that_forgets_what_it_walked_in_with_shows_in_the_first_ratio(kind):
    policy = a_policy(kind)
    rollout = walk(policy)[0]
    forgotten = {name: np.zeros_like(x) for name, x in rollout.context.items()}
    report = Learner(policy, a_config(minibatch_size=1000)).update(replace(rollout, context=forgotten))
    assert report.first_ratio_error > 1e-3


def test_in_one_minibatch_columns_without_overlap_learn_the_same_but_for_gradients_through_their_edges():
    # A memory that forgets everything has no gradient through time, so that the two must agree.
    ends = []
    for knobs in ({}, {"sequence": 4}):
        policy = a_policy()
        rollout = replace(walk(policy)[0], start=np.ones((T, N), bool))
        Learner(policy, a_config(epochs=1, minibatch_size=1000, **knobs)).update(rollout)
        ends.append([p.detach().clone() for p in policy.parameters()])
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(*ends, strict=True))
    assert any(not torch.equal(a, b.detach()) for a, b in zip(ends[0], a_policy().parameters(), strict=True))


def test_steps_that_do_not_count_still_do_not_after_cutting():
    policy = a_policy()
    valid = np.random.default_rng(3).random((T, N)) < 0.7
    rollout = walk(policy, valid=valid)[0]
    learner = Learner(policy, a_config(sequence=6, burn_in=2))
    columns = pieces(learner.prepare(rollout), policy, learner.config)
    assert columns.valid is not None
    assert int(columns.valid.sum()) == valid.sum()
    counted = sorted(columns.log_prob[columns.valid].tolist())
    assert counted == sorted(rollout.log_prob[valid].tolist())


def test_a_policy_without_memory_is_not_cut():
    policy = a_policy("none")
    learner = Learner(policy, a_config(sequence=4))
    batch = learner.prepare(walk(policy)[0])
    assert pieces(batch, policy, learner.config) is batch


def test_a_burn_in_without_sequences_is_refused():
    with pytest.raises(ConfigError, match="burn_in is 4 but sequence is none"):
        PPOConfig(burn_in=4)
    assert PPOConfig(burn_in=4, sequence=8).burn_in == 4


def test_sequence_with_a_policy_without_remembered_is_refused():
    policy = a_policy()
    batch = a_batch(policy, walk(policy)[0])
    with pytest.raises(ConfigError, match=r"sequence is 8 but the policy has no method remembered\(batch, steps\)"):
        pieces(batch, object(), a_config(sequence=8))
    assert pieces(batch, object(), a_config()) is batch
