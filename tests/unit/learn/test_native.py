"""What the kernel and the Python side of an update must agree on. `tests/property/test_kernel.py` compares their updates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from surefoot import native
from surefoot.envs.make import make_world
from surefoot.errors import ConfigError, PolicyError
from surefoot.learn.config import PPOConfig
from surefoot.learn.learner import Learner
from surefoot.learn.optimizer import SLOTS
from surefoot.learn.report_builder import COLUMNS
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.torsos import ACTIVATIONS
from surefoot.train.collect.collector import Collector

pytestmark = pytest.mark.skipif(native.kernel is None, reason=native.why_not)


def test_the_kernel_fills_every_column_of_the_table():
    assert len(COLUMNS) == native.kernel.TABLE_COLUMNS


def test_the_kernel_knows_every_optimizer_by_its_name():
    assert set(native.kernel.OPTIMIZERS) == set(SLOTS)


def test_the_activations_of_the_kernel_are_activations_of_networks():
    assert set(native.kernel.ACTIVATIONS) <= set(ACTIVATIONS)


class Run:
    """A learner after its first update by the kernel, whose policy is then changed."""

    def __init__(self, **net: Any) -> None:
        self.config = PPOConfig(envs=4, rollout_steps=8, minibatch_size=16, epochs=2, lr=0.01)
        world = make_world("CartPole-v1", 4)
        self.policy: Any = ActorCritic(world.observation, world.action, NetConfig(hidden=(8, 8), **net), seed=1)
        self.learner = Learner(self.policy, self.config)
        self.collector = Collector(world, self.policy, steps=8, gamma=0.99)
        assert self.update().path == "native"

    def update(self) -> Any:
        return self.learner.update(self.collector.collect(self.learner.updates))


@pytest.mark.parametrize("change", ["half", "double"])
def test_weights_of_another_dtype_are_learned_by_torch(change):
    run = Run()
    getattr(run.policy, change)()
    before = run.policy.network.actor[0].weight.detach().clone()
    report = run.update()
    assert (report.path, report.path_reason) == ("torch", "the weights are not float32 on the CPU")
    assert not torch.equal(before, run.policy.network.actor[0].weight)
    run.policy.float()
    assert run.update().path == "native"


def test_weights_that_were_cut_off_are_named_and_nothing_is_written():
    run = Run()
    rollout = run.collector.collect(run.learner.updates)
    for p in run.policy.parameters():
        p.data = torch.zeros(1)
    with pytest.raises(PolicyError, match=r"a weight \[1\] and a bias \[1\] but gets 4 inputs"):
        run.learner.update(rollout)


def test_a_frozen_layer_stays_where_it_is_and_moves_again_when_it_is_thawed():
    run = Run()
    weight = run.policy.network.actor[0].weight
    weight.requires_grad_(False)
    before = weight.detach().clone()
    assert run.update().path_reason == "some weights are frozen"
    assert torch.equal(weight, before)
    weight.requires_grad_(True)
    assert run.update().path == "native"
    assert not torch.equal(weight, before)


@pytest.mark.parametrize("layer", [nn.Linear(4, 8), nn.Linear(4, 8, bias=False)], ids=["native", "torch"])
def test_a_layer_put_in_later_is_the_one_that_learns(layer):
    run = Run()
    run.policy.network.actor[0] = layer
    before = layer.weight.detach().clone()
    report = run.update()
    assert report.first_ratio_error < 1e-4
    assert report.path == ("native" if layer.bias is not None else "torch")
    assert not torch.equal(layer.weight, before)
    assert sum(p is layer.weight for p in run.learner.optimizer.parameters) == 1


def test_a_hook_is_run():
    run, calls = Run(), list[int]()
    run.policy.network.actor[1].register_forward_hook(lambda *_: calls.append(1))
    report = run.update()
    assert (report.path, bool(calls)) == ("torch", True)


def test_slots_that_were_replaced_are_the_ones_that_are_written():
    run = Run()
    slots = run.learner.optimizer.slots
    slots["exp_avg"] = fresh = [torch.zeros_like(x) for x in slots["exp_avg"]]
    assert run.update().path == "native"
    assert all(bool(x.any()) for x in fresh)
    run.learner.optimizer.slots = {name: [x.clone().half() for x in each] for name, each in slots.items()}
    assert run.update().path == "native"
    assert all(x.dtype == torch.float32 for each in run.learner.optimizer.slots.values() for x in each)


def test_a_normaliser_whose_rows_were_replaced_is_the_one_that_is_used():
    run = Run(normalize_obs=True)
    normalizer = run.policy.flatten.normalizer
    normalizer._buffers["_shift"] = normalizer._shift + 1.0
    assert run.update().first_ratio_error < 1e-4


def test_path_native_refuses_a_policy_that_the_kernel_lost():
    run = Run()
    run.learner.config = PPOConfig(path="native", envs=4, rollout_steps=8)
    rollout = run.collector.collect(run.learner.updates)
    run.policy.network.actor[0].weight.requires_grad_(False)
    with pytest.raises(ConfigError, match="path is 'native' but some weights are frozen"):
        run.learner.update(rollout)


def test_a_checkpoint_taken_on_one_path_continues_on_the_other():
    run = Run()
    run.learner.steps.bad_in_a_row = 2
    state = run.learner.state()
    run.policy.network.actor[1].register_forward_hook(lambda *_: None)
    run.learner.set_state(state)
    rollout = run.collector.collect(run.learner.updates)
    assert np.isfinite(run.learner.update(rollout).approx_kl)
    assert run.learner.steps is run.learner.by_torch
