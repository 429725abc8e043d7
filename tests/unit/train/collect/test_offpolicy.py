"""Old data made fit: on-policy it is GAE itself, off-policy the weights are held, and what is too old is said so."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from surefoot.core.advantage import gae
from surefoot.data.rollout import Rollout
from surefoot.data.spaces import Box, Discrete
from surefoot.errors import ConfigError
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.train.collect.offpolicy import ReplayRules, renew


def policy(seed: int = 0) -> ActorCritic:
    return ActorCritic({"obs": Box((3,))}, Discrete(4), NetConfig(hidden=(8,)), seed=seed)


def rollout(mine: ActorCritic, steps: int = 7, streams: int = 3) -> Rollout:
    """Random experience, told by `mine` itself."""
    from surefoot.train.collect.offpolicy import _evaluate

    rng = np.random.default_rng(1)
    flags = np.zeros((steps, streams), bool)
    terminated, truncated = flags.copy(), flags.copy()
    if steps > 4:
        terminated[2, 0] = truncated[4, 1] = True
    made = Rollout(
        obs={"obs": rng.standard_normal((steps, streams, 3)).astype(np.float32)},
        action=rng.integers(0, 4, (steps, streams)),
        log_prob=np.zeros((steps, streams), np.float32),
        value=np.zeros((steps, streams), np.float32),
        next_value=rng.standard_normal((steps, streams)).astype(np.float32),
        reward=rng.standard_normal((steps, streams)).astype(np.float32),
        terminated=terminated,
        truncated=truncated,
        start=flags,
        valid=~flags,
        policy_version=np.zeros((steps, streams), np.int64),
    )
    log_prob, value = _evaluate(made, mine, torch.device("cpu"))
    after = made.next_value.copy()
    after[:-1] = np.where(made.ended[:-1], after[:-1], value[1:])
    return replace(made, log_prob=log_prob, value=value, next_value=after)


def advantage(of: Rollout, lam: float) -> np.ndarray:
    whole = [torch.from_numpy(np.asarray(x, np.float64)) for x in (of.reward, of.value, of.next_value)]
    ends = [torch.from_numpy(x) for x in (of.terminated, of.ended)]
    return gae(*whole, *ends, gamma=0.9, lam=lam).numpy()


@pytest.mark.parametrize("lam", [0.0, 0.6, 1.0])
def test_for_the_policy_that_acted_it_is_gae(lam: float) -> None:
    mine = policy()
    old = rollout(mine)
    fit, judged = renew(old, mine, ReplayRules(), gamma=0.9, lam=lam, version=0)
    assert judged.stale is None
    assert judged.sample_size == pytest.approx(1.0)
    assert advantage(fit, 0.3) == pytest.approx(advantage(old, lam), abs=1e-5)


def test_for_another_policy_corrections_are_held_by_their_clip() -> None:
    """By hand for one stream of two steps: δ is weighted by ρ, what comes from behind by c."""
    mine, other = policy(0), policy(5)
    old = rollout(mine, steps=2, streams=1)
    fit, judged = renew(old, other, ReplayRules(rho_clip=0.5, trace_clip=0.25), gamma=0.9, lam=1.0, version=0)
    assert 0.0 < judged.sample_size < 1.0
    value, reward = fit.value[:, 0], old.reward[:, 0]
    ratio = np.exp(_log_prob(old, other)[:, 0] - old.log_prob[:, 0])
    rho = np.minimum(ratio, 0.5)
    behind = rho[1] * (reward[1] + 0.9 * old.next_value[1, 0] - value[1])
    assert fit.next_value[:, 0] == pytest.approx([value[1] + behind, old.next_value[1, 0]], abs=1e-5)


def _log_prob(old: Rollout, by: ActorCritic) -> np.ndarray:
    from surefoot.train.collect.offpolicy import _evaluate

    return _evaluate(old, by, torch.device("cpu"))[0]


def test_data_that_is_too_old_is_named_stale() -> None:
    mine = policy()
    old = rollout(mine)
    _, judged = renew(old, mine, ReplayRules(max_lag=3), gamma=0.9, lam=0.9, version=5)
    assert judged.stale is not None
    assert "5 updates old" in judged.stale
    strange = replace(
        old, log_prob=old.log_prob - np.where(np.arange(21).reshape(7, 3) == 4, 15.0, 0.0).astype(np.float32)
    )
    _, judged = renew(strange, mine, ReplayRules(min_sample_size=0.2), gamma=0.9, lam=0.9, version=0)
    assert judged.stale is not None
    assert "sample size" in judged.stale


def test_rules_that_cannot_work_are_refused() -> None:
    for wrong in ({"max_lag": -1}, {"min_sample_size": 2.0}, {"rho_clip": 0.0}):
        with pytest.raises(ConfigError):
            ReplayRules(**wrong)


def test_samples_of_others_are_never_taken_for_fresh() -> None:
    mine = policy()
    about = {"gamma": 0.9, "lam": 0.9, "version": 5, "device": torch.device("cpu")}
    others, _ = renew(rollout(mine), mine, ReplayRules(), **about, same_run=False)
    own, _ = renew(rollout(mine), mine, ReplayRules(), **about, same_run=True)
    assert (others.policy_version == 4).all()
    assert (own.policy_version == 0).all()
