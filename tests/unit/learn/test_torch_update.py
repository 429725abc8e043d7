"""Gradient steps with bad numbers injected at every place: refused, skipped, rolled back, or ended."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from surefoot.core.batch import Batch, Evaluation
from surefoot.data.rollout import Rollout
from surefoot.data.spaces import ActionSpace, Box, Discrete, MultiDiscrete
from surefoot.errors import AllActionsMasked, Diverged, IllegalAction, NonFiniteValue
from surefoot.learn.config import PPOConfig
from surefoot.learn.learner import Learner
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.policy import PolicyInput

T, N = 6, 4
MINIBATCHES = 6  # 2 epochs of 3


class Faulty(ActorCritic):
    """A policy whose answers go bad at the given calls of `evaluate`, counted over its life."""

    def __init__(self, action: ActionSpace = Discrete(3), bad: set[int] | range = range(0), how: str = "loss") -> None:
        super().__init__({"obs": Box((2,))}, action, NetConfig(hidden=(4,)), seed=1)
        self.bad, self.how, self.calls = bad, how, 0

    def evaluate(self, batch: Batch) -> Evaluation:
        said, self.calls = super().evaluate(batch), self.calls + 1
        if self.calls - 1 not in self.bad:
            return said
        match self.how:
            case "loss":
                return Evaluation(said.log_prob * float("nan"), said.entropy, said.value)
            case "value":
                return Evaluation(said.log_prob, said.entropy, said.value + float("inf"))
            case _:  # the loss stays finite, its gradient does not
                said.log_prob.register_hook(lambda g: g * float(self.how))
                return said


@torch.no_grad()
def walk(policy: ActorCritic, seed: int = 0, *, version: int = 0, **parts) -> Rollout:
    rng, generator = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    obs = rng.normal(size=(T, N, 2)).astype(np.float32)
    outs = [policy.act(PolicyInput(obs={"obs": torch.from_numpy(x)}), generator=generator) for x in obs]
    no = np.zeros((T, N), bool)
    made = {
        "obs": {"obs": obs},
        "action": torch.stack([o.action for o in outs]).numpy(),
        "log_prob": torch.stack([o.log_prob for o in outs]).numpy(),
        "value": torch.stack([o.value for o in outs]).numpy(),
        "next_value": rng.normal(size=(T, N)).astype(np.float32),
        "reward": rng.normal(size=(T, N)).astype(np.float32),
        "terminated": no,
        "truncated": no,
        "start": no,
        "valid": ~no,
        "policy_version": np.full((T, N), version),
    }
    return Rollout(**{**made, **parts})


CONFIG = PPOConfig(lr=1e-2, epochs=2, minibatch_size=8)


def everything(policy: ActorCritic) -> dict[str, Tensor]:
    return {name: x.clone() for name, x in policy.state_dict().items()}


def remembered(learner: Learner) -> dict[str, Tensor]:
    return {name: x.clone() for name, x in learner.optimizer.tensors().items()}


def equal(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(x, b[name]) for name, x in a.items())


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["reward", "obs", "value", "log_prob"])
@pytest.mark.parametrize("step", [0, 2, T - 1])
def test_a_rollout_with_a_bad_number_is_refused_before_anything_moves(name, step, bad):
    policy = Faulty()
    learner, rollout = Learner(policy, CONFIG), walk(policy)
    learner.update(rollout)
    before, memory = everything(policy), remembered(learner)
    poisoned = walk(policy, seed=1)
    array = poisoned.obs["obs"] if name == "obs" else getattr(poisoned, name)
    array[step, 3] = bad
    with pytest.raises(NonFiniteValue, match=rf"{name}.*step {step} of stream 3"):
        learner.update(poisoned)
    assert equal(before, everything(policy))
    assert equal(memory, remembered(learner))
    assert learner.updates == 1
    assert learner.update(walk(policy, seed=1)).minibatches == MINIBATCHES  # and it goes on


@pytest.mark.parametrize("how", ["loss", "value", "nan", "inf"])
@pytest.mark.parametrize("k", range(MINIBATCHES))
def test_a_bad_gradient_step_is_left_out_wherever_it_comes(k, how):
    policy = Faulty(bad={k}, how=how)
    report = Learner(policy, CONFIG).update(walk(policy))
    assert (report.nonfinite_steps, report.minibatches) == (1, MINIBATCHES - 1)
    assert not report.rolled_back
    assert report.skipped_reason is None
    assert all(torch.isfinite(x).all() for x in everything(policy).values())
    # The first ratio is what it is, bad included; no other number may be.
    assert all(np.isfinite(x) for name, x in report.metrics().items() if name != "first_ratio_error")


def test_a_step_left_out_leaves_nothing_behind():
    # Bad in the last minibatch only: the weights are those of an update that ends one minibatch earlier.
    class Stops(Faulty):
        def evaluate(self, batch: Batch) -> Evaluation:
            if self.calls == MINIBATCHES - 1:
                raise StopIteration
            return super().evaluate(batch)

    bad, short = Faulty(bad={MINIBATCHES - 1}), Stops()
    Learner(bad, CONFIG).update(walk(bad))
    learner = Learner(short, CONFIG)
    with pytest.raises(StopIteration):
        learner.update(walk(short))
    assert equal(everything(bad), everything(short))


@pytest.mark.parametrize("first", range(MINIBATCHES - 2))
def test_three_bad_steps_in_a_row_take_the_update_back(first):
    policy = Faulty(bad=range(MINIBATCHES + first, MINIBATCHES + first + 3))
    learner = Learner(policy, CONFIG)
    learner.update(walk(policy))
    before, memory = everything(policy), remembered(learner)
    report = learner.update(walk(policy, seed=1, version=1))
    assert report.rolled_back
    assert report.nonfinite_steps == 3
    assert equal(before, everything(policy))
    assert equal(memory, remembered(learner))
    after = learner.update(walk(policy, seed=2, version=2))
    assert after.lr == pytest.approx(0.5e-2)
    assert not after.rolled_back


def test_a_first_update_can_be_taken_back_too():
    policy = Faulty(bad=range(1, 4))
    learner, before = Learner(policy, CONFIG), everything(policy)
    assert learner.update(walk(policy)).rolled_back
    assert equal(before, everything(policy))
    assert all((x == 0).all() for x in remembered(learner).values())


def test_two_bad_steps_in_a_row_are_not_three():
    policy = Faulty(bad={0, 1, 3, 4})
    report = Learner(policy, CONFIG).update(walk(policy))
    assert (report.nonfinite_steps, report.rolled_back, report.minibatches) == (4, False, 2)


def test_a_second_rollback_in_a_row_is_the_end():
    policy = Faulty(bad=range(100))
    learner = Learner(policy, CONFIG)
    report = learner.update(walk(policy))
    assert report.rolled_back
    assert report.skipped_reason is not None
    with pytest.raises(Diverged, match="smaller lr"):
        learner.update(walk(policy, version=1))
    assert all(torch.isfinite(x).all() for x in everything(policy).values())


def test_a_good_update_between_two_rollbacks_forgives_the_first():
    policy = Faulty(bad={0, 1, 2, *range(3 + MINIBATCHES, 6 + MINIBATCHES)})
    learner = Learner(policy, CONFIG)
    seen = [learner.update(walk(policy, seed=s, version=s)).rolled_back for s in range(3)]
    assert seen == [True, False, True]
    assert learner.lr_scale == 0.25


def test_good_steps_that_were_taken_back_do_not_put_off_the_end():
    # In every update the first step is good and the rest is not: nothing is ever learned.
    policy = Faulty(bad={i for i in range(100) if i % 4})
    learner = Learner(policy, CONFIG)
    with pytest.raises(Diverged):
        for update in range(10):
            assert learner.update(walk(policy, seed=update, version=update)).rolled_back


def test_updates_of_one_minibatch_that_are_all_bad_come_to_an_end_too():
    policy = Faulty(bad=range(100))
    learner = Learner(policy, PPOConfig(epochs=1, minibatch_size=1000))
    with pytest.raises(Diverged):
        for seed in range(10):
            learner.update(walk(policy, seed=seed, version=seed))


@pytest.mark.parametrize("log_prob", [-200.0, -1e4, 89.0, 1e4])
def test_an_absurd_stored_log_prob_leaves_the_weights_finite_and_is_counted(log_prob):
    policy = Faulty()
    rollout = walk(policy)
    rollout.log_prob[0, :2] = log_prob
    report = Learner(policy, PPOConfig(epochs=1, minibatch_size=1000)).update(rollout)
    assert report.clamped_fraction == pytest.approx(2 / (T * N))
    assert report.nonfinite_steps == 0
    assert all(torch.isfinite(x).all() for x in everything(policy).values())


def test_a_stored_action_that_its_mask_forbids_is_refused():
    policy, mask = Faulty(), np.ones((T, N, 3), bool)
    rollout = walk(policy)
    mask[4, 1, rollout.action[4, 1]] = False
    object.__setattr__(rollout, "action_mask", mask)
    with pytest.raises(IllegalAction, match="step 4 of stream 1"):
        Learner(policy, CONFIG).update(rollout)


def test_a_row_that_allows_nothing_is_refused():
    policy, mask = Faulty(), np.ones((T, N, 3), bool)
    mask[2, 3] = False
    with pytest.raises(AllActionsMasked, match="step 2 of stream 3"):
        Learner(policy, CONFIG).update(walk(policy, action_mask=mask))


def test_one_of_several_stored_choices_that_its_mask_forbids_is_refused():
    policy, mask = Faulty(MultiDiscrete((2, 3))), np.ones((T, N, 5), bool)
    rollout = walk(policy)
    mask[4, 1, 2 + rollout.action[4, 1, 1]] = False
    object.__setattr__(rollout, "action_mask", mask)
    before = everything(policy)
    with pytest.raises(IllegalAction):
        Learner(policy, CONFIG).update(rollout)
    assert equal(before, everything(policy))


def test_a_row_that_leaves_one_of_several_choices_empty_is_refused():
    policy, mask = Faulty(MultiDiscrete((2, 3))), np.ones((T, N, 5), bool)
    mask[2, 3, 2:] = False
    with pytest.raises(AllActionsMasked):
        Learner(policy, CONFIG).update(walk(policy, action_mask=mask))


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
def test_a_choice_may_be_stored_in_any_whole_number(dtype):
    policy, plain = Faulty(), Faulty()
    rollout = walk(policy)
    Learner(plain, CONFIG).update(rollout)
    Learner(policy, CONFIG).update(walk(policy, action=rollout.action.astype(dtype)))
    assert equal(everything(policy), everything(plain))


@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_a_rollout_in_another_float_is_cast_once_and_learned_from(dtype):
    policy = Faulty(Box((2,), -1.0, 1.0))
    rollout = walk(policy)
    others = {name: getattr(rollout, name).astype(dtype) for name in ("reward", "value", "next_value", "log_prob")}
    obs = {"obs": rollout.obs["obs"].astype(dtype)}
    report = Learner(policy, CONFIG).update(walk(policy, obs=obs, **others))
    assert report.nonfinite_steps == 0
    assert report.first_ratio_error < (1e-5 if dtype == np.float64 else 0.02)


def test_an_outlier_does_not_make_anything_infinite():
    policy = Faulty()
    rollout = walk(policy)
    rollout.reward[3, 2] = 1e12
    report = Learner(policy, CONFIG).update(rollout)
    assert all(np.isfinite(x) for x in report.metrics().values())
    assert all(torch.isfinite(x).all() for x in everything(policy).values())
