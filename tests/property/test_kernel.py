"""The torch path is the definition: the kernel must move the same weights to the same place and report the same numbers."""

from __future__ import annotations

import copy
import dataclasses
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from torch import nn

from surefoot import native
from surefoot.data.rollout import Rollout
from surefoot.data.spaces import Box, Discrete, Hybrid, MultiDiscrete
from surefoot.learn.config import PPOConfig
from surefoot.learn.learner import Learner
from surefoot.learn.prepare import to_batch
from surefoot.learn.report import UpdateReport
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import ACTIVATIONS, NetConfig
from surefoot.nets.policy import PolicyInput

pytestmark = pytest.mark.skipif(native.kernel is None, reason=native.why_not)
SETS = [] if native.kernel is None else native.kernel.instruction_sets()
MOST_GRADIENT_STEPS = 60
EXAMPLES = int(os.environ.get("SUREFOOT_EXAMPLES", "40"))
SLOW = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """(net settings, PPO settings, shape of the rollout)."""
    width = st.sampled_from([1, 3, 8, 16, 17, 31, 64, 70])
    shared = draw(st.booleans())
    net: dict[str, Any] = {
        "hidden": tuple(draw(st.lists(width, max_size=3))),
        "shared": shared,
        "activation": draw(st.sampled_from(sorted(ACTIVATIONS))),
        "normalize_obs": draw(st.booleans()),
    }
    if not shared and draw(st.booleans()):
        net["critic_hidden"] = tuple(draw(st.lists(width, max_size=2)))
    action = draw(st.sampled_from(["discrete", "multi", "continuous", "hybrid"]))
    noise = draw(st.sampled_from(["gaussian", "squash", "gsde", "beta"])) if action in ("continuous", "hybrid") else ""
    if noise not in ("", "gaussian"):
        net[noise] = True
    ppo: dict[str, Any] = {
        "epochs": draw(st.integers(1, 3)),
        "minibatch_size": draw(st.sampled_from([1, 7, 32, 300])),
        "value_clip": draw(st.sampled_from([None, 0.2])),
        "ent_coef": draw(st.sampled_from([0.0, 0.05])),
        "vf_coef": draw(st.sampled_from([0.0, 0.5, 2.0])),
        "kl_coef": draw(st.sampled_from([0.0, 0.3])),
        "max_grad_norm": draw(st.sampled_from([0.1, 0.5, 1e9])),
        "target_kl": draw(st.sampled_from([None, 1e-4, 0.02])),
        "dual_clip": draw(st.sampled_from([None, 1.05, 3.0])),
        "normalize_value": draw(st.booleans()),
        "normalize_advantage": draw(st.sampled_from(["minibatch", "batch", "off"])),
        "optimizer": draw(st.sampled_from(["adam", "adam", "adamw", "sgd", "rmsprop"])),
        "weight_decay": draw(st.sampled_from([0.0, 0.01])),
        "gamma": draw(st.sampled_from([0.0, 0.9, 1.0])),
        "lam": draw(st.sampled_from([0.0, 0.95, 1.0])),
        "min_samples": 1,
        "lr": 1e-3,
        "critic_lr_scale": draw(st.sampled_from([1.0, 1.0, 0.3])),
        "temperature": draw(st.sampled_from([1.0, 0.5, 3.0])) if action != "continuous" else 1.0,
        "seed": draw(st.integers(0, 1000)),
    }
    if ppo["optimizer"] in ("sgd", "rmsprop"):
        ppo["momentum"] = draw(st.sampled_from([0.0, 0.9]))
    shape: dict[str, Any] = {
        "action": "squash" if noise == "squash" and action == "continuous" else action,
        "obs": draw(st.sampled_from([1, 4, 17, 40, 400])),
        "zeros": draw(st.sampled_from([0.0, 0.6, 0.95])),
        "dtype": draw(st.sampled_from(["float32", "uint8", "dict", "float64"])),
        "steps": draw(st.sampled_from([1, 5, 40])),
        "streams": draw(st.sampled_from([1, 3, 8])),
        "masked": draw(st.booleans()),
        "reference": draw(st.booleans()),
        "invalid": draw(st.booleans()),
        "equal_rewards": draw(st.booleans()),
        "seed": draw(st.integers(0, 1000)),
    }
    net["memory"] = draw(st.sampled_from(["none", "none", "gru", "lstm"]))
    if net["memory"] != "none":
        net["memory_size"] = draw(width)
        ppo["sequence"] = draw(st.sampled_from([None, None, 1, 3, 16]))
        ppo["burn_in"] = 0 if ppo["sequence"] is None else draw(st.sampled_from([0, 2]))
    if shape["dtype"] == "dict" and not shared:
        net["critic_only"] = draw(st.sampled_from([(), ("b",), ("a", "c")]))
    # Rounding grows with every step that builds on it: beyond so many, two right answers are far apart.
    fewest = -(-shape["steps"] * shape["streams"] * ppo["epochs"] // MOST_GRADIENT_STEPS)
    ppo["minibatch_size"] = max(ppo["minibatch_size"], fewest)
    return net, ppo, shape


def spaces(shape: dict[str, Any]) -> tuple[dict[str, Box], Any]:
    size = shape["obs"]
    match shape["dtype"]:
        case "uint8":
            observation = {"obs": Box((size,), 0.0, 255.0, "uint8")}
        case "dict":
            observation = {"b": Box((size,)), "a": Box((2, 3)), "c": Box((2,), 0.0, 255.0, "uint8")}
        case "float64":
            observation = {"obs": Box((size,), dtype="float64")}
        case _:
            observation = {"obs": Box((size,))}
    actions = {
        "discrete": Discrete(5, start=-1),
        "multi": MultiDiscrete((3, 1, 12)),
        "continuous": Box((3,), -1.0, 1.0),
        "squash": Box((2,), -2.0, 1.0),
        "hybrid": Hybrid((4, 3), Box((2,), -2.0, 1.0)),
    }
    return observation, actions[shape["action"]]


def make_rollout(policy: ActorCritic, shape: dict[str, Any]) -> Rollout:
    """Random experience whose log-probs and values are a little off those of the policy, as after some steps."""
    rng = np.random.default_rng(shape["seed"])
    rows = np.random.default_rng(shape["seed"] + 1)
    size = (shape["steps"], shape["streams"])
    obs: dict[str, np.ndarray] = {}
    for name, box in policy.observation.items():
        if box.dtype == "uint8":
            obs[name] = rng.integers(0, 256, (*size, *box.shape), dtype=np.uint8)
        else:
            obs[name] = rng.normal(size=(*size, *box.shape)).astype(box.dtype)
        if box.shape == (400,):  # the kernel skips inputs that are zero in all samples of a pass, if most are
            obs[name][..., rows.random(400) < shape["zeros"]] = 0
    options = sum(policy.choices())
    mask = None
    if options and shape["masked"]:
        mask = rng.random((*size, options)) < 0.6
        begin = 0
        for k in policy.choices():
            one = rng.integers(0, k, size)
            np.put_along_axis(mask[..., begin : begin + k], one[..., None], True, axis=-1)
            begin += k
    flat = {name: torch.from_numpy(x.reshape(-1, *x.shape[2:])) for name, x in obs.items()}
    context = policy.initial_context(size[0] * size[1])
    masks = None if mask is None else torch.from_numpy(mask.reshape(-1, options))
    seen = PolicyInput(obs=flat, action_mask=masks, context=context)
    with torch.no_grad():
        out = policy.act(seen, generator=torch.Generator().manual_seed(shape["seed"]))
    near = lambda x: (x.numpy() + 0.1 * rng.normal(size=x.shape)).astype(np.float32).reshape(size)  # noqa: E731
    reward = np.ones(size) if shape["equal_rewards"] else rng.normal(size=size)
    terminated = rng.random(size) < 0.1
    truncated = (rng.random(size) < 0.1) & ~terminated
    valid = rng.random(size) < 0.8 if shape["invalid"] else np.ones(size, bool)
    valid[0, 0] = True
    next_value = rng.normal(size=size).astype(np.float32)
    next_value[terminated] = np.nan  # not to be read
    rollout = Rollout(
        obs=obs,
        action=out.action.numpy().reshape(*size, *out.action.shape[1:]),
        log_prob=near(out.log_prob),
        value=near(out.value),
        next_value=next_value,
        reward=reward,
        terminated=terminated,
        truncated=truncated,
        start=np.zeros(size, bool),
        valid=valid,
        policy_version=np.zeros(size, np.int64),
        action_mask=mask,
        ref_log_prob=near(out.log_prob) if shape["reference"] else None,
    )
    if not policy.sequential:
        return rollout
    # The memory makes other log-probs than it does for steps on their own.
    context = {
        name: rows.normal(size=x.shape).astype(np.float32) for name, x in policy.initial_context(size[1]).items()
    }
    rollout = dataclasses.replace(rollout, context=context, start=rows.random(size) < 0.2)
    batch = to_batch(rollout, valid, gamma=0.9, lam=0.9, sequential=True, device=torch.device("cpu"))
    with torch.no_grad():
        evaluation = policy.evaluate(batch)
    changes = {"log_prob": near(evaluation.log_prob), "value": near(evaluation.value)}
    if shape["reference"]:
        changes["ref_log_prob"] = near(evaluation.log_prob)
    return dataclasses.replace(rollout, **changes)


def twins(net: dict[str, Any], ppo: dict[str, Any], shape: dict[str, Any]) -> tuple[Learner, Learner]:
    """Two learners with the same weights, one for each path."""
    observation, action = spaces(shape)
    policy = ActorCritic(observation, action, NetConfig(**net), seed=3)
    with torch.no_grad():
        for p in policy.parameters():  # larger than at the start of a run, so that everything has a gradient
            p.add_(0.1 * torch.randn(p.shape, generator=torch.Generator().manual_seed(p.numel())))
    for i, torso in enumerate(policy.torsos):
        if torso.normalizer is not None:
            torso.normalizer.update(np.random.default_rng(i).normal(0.3, 2.0, (50, torso.size)))
    native_side = Learner(copy.deepcopy(policy), PPOConfig(**ppo, path="native"), total_updates=5)
    torch_side = Learner(policy, PPOConfig(**ppo, path="torch"), total_updates=5)
    return native_side, torch_side


def assert_same_numbers(ours: UpdateReport, theirs: UpdateReport, *, rtol: float = 2e-3, atol: float = 2e-5) -> None:
    mine, its = dataclasses.asdict(ours), dataclasses.asdict(theirs)
    for name in mine:
        if name in ("path", "path_reason", "seconds"):
            continue
        if name == "gradient_steps":
            assert (mine[name] is None) == (its[name] is None)
            if mine[name] is not None:
                assert mine[name]["epoch"].tolist() == its[name]["epoch"].tolist()
                assert mine[name]["rows"] == pytest.approx(its[name]["rows"], rel=5 * rtol, abs=5 * atol)
            continue
        if isinstance(mine[name], float):
            assert mine[name] == pytest.approx(its[name], rel=rtol, abs=atol), name
        elif name == "epochs":
            assert len(mine[name]) == len(its[name])
            for a, b in zip(mine[name], its[name], strict=True):
                assert a == pytest.approx(b, rel=rtol, abs=atol)
        else:
            assert mine[name] == its[name], name


def compare(ours: Learner, theirs: Learner, rollout: Rollout) -> None:
    """Two updates of each; raises where their numbers or weights are not the same."""
    for _ in range(2):
        mine, its = ours.update(rollout), theirs.update(rollout)
        if mine.minibatches != its.minibatches and ours.config.target_kl is not None:
            return  # the divergence was so near its limit that rounding decided
        assert_same_numbers(mine, its)
        for (name, a), b in zip(ours.policy.named_parameters(), theirs.policy.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=3e-5, msg=lambda m, name=name: f"{name}: {m}")
        assert torch.equal(ours.generator.get_state(), theirs.generator.get_state())
        rollout = dataclasses.replace(rollout, policy_version=rollout.policy_version + 1)


def rounding_decides(net: dict[str, Any], ppo: dict[str, Any], shape: dict[str, Any]) -> bool:
    """True if torch itself comes elsewhere from weights that differ by some roundings: at the edge of a clip, or where
    Adam divides a gradient that is nothing but rounding by its own size."""
    for seed in range(8):
        theirs, near = twins(net, ppo, shape)[1], twins(net, ppo, shape)[1]
        rollout, noise = make_rollout(theirs.policy, shape), torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for p in near.policy.parameters():
                p.mul_(1.0 + 3e-7 * torch.randn(p.shape, generator=noise))
        try:
            compare(near, theirs, rollout)
        except AssertionError:
            return True
    return False


@pytest.mark.parametrize("instruction_set", SETS)
@given(case=cases())
@SLOW
def test_the_kernel_moves_the_weights_to_where_torch_does(instruction_set, case):
    net, ppo, shape = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUREFOOT_KERNEL", instruction_set)
        ours, theirs = twins(net, ppo, shape)
    assert (ours.native is None, theirs.native is None) == (False, True)
    try:
        compare(ours, theirs, make_rollout(theirs.policy, shape))
    except AssertionError:
        if not rounding_decides(net, ppo, shape):
            raise
        event("rounding decides")  # `pytest --hypothesis-show-statistics` counts them


@pytest.mark.parametrize("instruction_set", SETS)
@given(case=cases())
@SLOW
def test_the_kernels_gradient_is_autograds(instruction_set, case):
    """One step of plain descent with a learning rate of 1 moves each weight by its gradient."""
    net, ppo, shape = case
    ppo = {**ppo, "epochs": 1, "minibatch_size": 10**6, "target_kl": None, "optimizer": "sgd", "lr": 1.0}
    ppo |= {"weight_decay": 0.0, "momentum": 0.0, "max_grad_norm": 1e9}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUREFOOT_KERNEL", instruction_set)
        ours, theirs = twins(net, ppo, shape)
    rollout = make_rollout(theirs.policy, shape)
    before = [p.detach().clone() for p in theirs.policy.parameters()]
    ours.update(rollout)
    theirs.update(rollout)
    largest = max(
        float((p.detach() - old).abs().max()) for p, old in zip(theirs.policy.parameters(), before, strict=True)
    )
    for (name, a), b in zip(ours.policy.named_parameters(), theirs.policy.parameters(), strict=True):
        off = float((a - b).detach().abs().max())
        assert off <= 2e-5 * max(largest, 1.0), f"{name}: {off:.2e} of {largest:.2e}"


@pytest.mark.parametrize("instruction_set", SETS)
@pytest.mark.parametrize("path", ["native", "torch"])
def test_numbers_that_left_the_finite_are_not_learned_from_and_the_update_is_taken_back(instruction_set, path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUREFOOT_KERNEL", instruction_set)
        policy = ActorCritic({"obs": Box((3,))}, Discrete(2), NetConfig(hidden=(8,)))
        learner = Learner(policy, PPOConfig(path=path, minibatch_size=8))
    shape = {"steps": 8, "streams": 4, "seed": 0, "masked": False, "invalid": False, "equal_rewards": False}
    rollout = make_rollout(policy, {**shape, "reference": False})
    with torch.no_grad():
        policy.network.actor[0].weight[0, 0] = torch.nan
    before = {name: x.clone() for name, x in policy.state_dict().items()}
    report = learner.update(rollout)
    assert (report.nonfinite_steps, report.rolled_back, report.minibatches) == (3, True, 0)
    assert learner.lr_scale == 0.5
    for name, x in policy.state_dict().items():
        assert torch.equal(x.nan_to_num(7.0), before[name].nan_to_num(7.0)), name


def test_a_learning_rate_beyond_reason_ends_in_the_same_way_on_both_paths():
    shape = {"steps": 8, "streams": 4, "seed": 0, "masked": False, "invalid": False, "equal_rewards": False}
    reports = []
    for path in ("native", "torch"):
        policy = ActorCritic({"obs": Box((3,))}, Discrete(2), NetConfig(hidden=(8,), activation="relu"))
        learner = Learner(policy, PPOConfig(path=path, minibatch_size=8, optimizer="sgd", lr=1e30, max_grad_norm=1e9))
        reports.append(learner.update(make_rollout(policy, {**shape, "reference": False})))
    assert [r.rolled_back for r in reports] == [True, True]
    assert reports[0].nonfinite_steps == reports[1].nonfinite_steps


@pytest.mark.parametrize("instruction_set", SETS)
def test_silu_of_huge_inputs_is_torchs(instruction_set):
    """A sigmoid that is not exactly 0 or 1 far out, times an input of 1e9, once turned a finite gradient into infinity."""
    net = {"hidden": (64, 64), "activation": "silu"}
    ppo = {"epochs": 1, "minibatch_size": 32, "optimizer": "sgd", "lr": 5.1542590581183205, "max_grad_norm": 1e9}
    shape = {"steps": 16, "streams": 4, "seed": 995, "masked": False, "invalid": False, "equal_rewards": False}
    shape |= {"action": "discrete", "obs": 4, "dtype": "float32", "reference": False}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUREFOOT_KERNEL", instruction_set)
        ours, theirs = twins(net, ppo, shape)
    rollout = make_rollout(theirs.policy, shape)
    for _ in range(2):
        mine, its = ours.update(rollout), theirs.update(rollout)
        rollout = dataclasses.replace(rollout, policy_version=rollout.policy_version + 1)
        assert (mine.nonfinite_steps, mine.grad_norm) == (0, pytest.approx(its.grad_norm, rel=1e-4))
    assert its.grad_norm > 1e18


@pytest.mark.parametrize("instruction_set", SETS)
def test_inputs_that_are_zero_are_skipped_without_changing_a_digit(instruction_set):
    """1e-40 in place of 0 changes no sum, but the kernel then computes the whole product."""
    net = {"hidden": (70, 16), "shared": False}
    ppo = {"epochs": 2, "minibatch_size": 100, "optimizer": "sgd", "lr": 0.1}
    shape = {"steps": 40, "streams": 8, "seed": 4, "masked": False, "invalid": False, "equal_rewards": False}
    shape |= {"action": "discrete", "obs": 900, "dtype": "float32", "reference": False}
    weights: list[list[torch.Tensor]] = []
    for filler in (0.0, 1e-40):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SUREFOOT_KERNEL", instruction_set)
            learner, theirs = twins(net, ppo, shape)
        rollout = make_rollout(theirs.policy, shape)
        unused = np.random.default_rng(0).random(900) < 0.9
        unused[384:768] = True  # a whole panel of the product
        rollout.obs["obs"][..., unused] = filler
        learner.update(rollout)
        weights.append([p.detach().clone() for p in learner.policy.parameters()])
    for a, b in zip(*weights, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("path", ["native", "torch"])
def test_an_infinite_weight_of_an_input_that_is_zero_is_noticed(path):
    policy = ActorCritic({"obs": Box((400,))}, Discrete(2), NetConfig(hidden=(8,)))
    learner = Learner(policy, PPOConfig(path=path, minibatch_size=8))
    shape = {"steps": 8, "streams": 4, "seed": 0, "masked": False, "invalid": False, "equal_rewards": False}
    rollout = make_rollout(policy, {**shape, "reference": False, "zeros": 1.0})
    with torch.no_grad():
        policy.network.actor[0].weight[0, 7] = torch.inf
    assert learner.update(rollout).nonfinite_steps == 3


def _swapped(layer: nn.Module) -> nn.Module:
    """A new layer of the same kind with other weights."""
    assert isinstance(layer, nn.Linear)
    fresh = nn.Linear(layer.in_features, layer.out_features)
    with torch.no_grad():
        for p in fresh.parameters():
            p.copy_(0.3 * torch.randn(p.shape, generator=torch.Generator().manual_seed(p.numel())))
    return fresh


def _first_linear(policy: ActorCritic) -> nn.Linear:
    return policy.network.actor[0] if len(policy.network.actor) else policy.network.policy_out


def swap_layer(learner: Learner) -> None:
    network = learner.policy.network
    if len(network.actor):
        network.actor[0] = _swapped(network.actor[0])
    else:
        network.policy_out = _swapped(network.policy_out)


def replace_slots(learner: Learner) -> None:
    slots = learner.optimizer.slots
    slots |= {name: [x + 0.01 for x in each] for name, each in slots.items()}


def replace_normalizer(learner: Learner) -> None:
    if (normalizer := learner.policy.torsos[-1].normalizer) is not None:
        normalizer._buffers["_shift"] = normalizer._shift + 0.5


def swap_activations(learner: Learner) -> None:
    network = learner.policy.network
    for trunk in {network.actor, network.critic}:
        for i in range(1, len(trunk), 2):
            trunk[i] = nn.ELU()


SURGERY: dict[str, Callable[[Learner], object]] = {
    "new memory": lambda x: [setattr(p, "data", p.data.clone()) for p in x.policy.parameters()],
    "double": lambda x: x.policy.double(),
    "float": lambda x: x.policy.float(),
    "freeze": lambda x: _first_linear(x.policy).weight.requires_grad_(False),
    "unfreeze": lambda x: _first_linear(x.policy).weight.requires_grad_(True),
    "layer": swap_layer,
    "activations": swap_activations,
    "hook": lambda x: _first_linear(x.policy).register_forward_hook(lambda module, inputs, output: 0.5 * output),
    "gradient hook": lambda x: _first_linear(x.policy).bias.register_hook(lambda gradient: 0.0 * gradient),
    "transposed": lambda x: setattr(
        x.policy.network.value_out.weight, "data", x.policy.network.value_out.weight.data.t().clone().t()
    ),
    "slots": replace_slots,
    "normalizer": replace_normalizer,
    "nothing": lambda x: None,
}


@given(case=cases(), surgery=st.lists(st.sampled_from(sorted(SURGERY)), min_size=1, max_size=4))
@SLOW
def test_whatever_is_changed_in_a_policy_both_paths_go_on_from_the_change(case, surgery):
    """The kernel takes over the change or leaves the policy to torch; the weights are torch's either way."""
    net, ppo, shape = case
    net = {**net, "memory": "none"}  # torch refuses layers of one dtype around a memory of another
    # Plain descent, a few steps: rounding has no time to grow.
    ppo = {**ppo, "epochs": 1, "minibatch_size": 10**6, "target_kl": None, "optimizer": "sgd", "max_grad_norm": 0.5}
    ours, theirs = twins(net, ppo, shape)
    ours.config = dataclasses.replace(ours.config, path="auto")
    rollout = make_rollout(theirs.policy, shape)
    for name in surgery:
        for learner in (ours, theirs):
            SURGERY[name](learner)
        reports = [learner.update(rollout) for learner in (ours, theirs)]
        assert reports[0].first_ratio_error == pytest.approx(reports[1].first_ratio_error, rel=1e-3, abs=1e-4), name
        for (part, a), b in zip(ours.policy.named_parameters(), theirs.policy.parameters(), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4, msg=lambda m, part=part: f"{surgery}, {part}: {m}")
        rollout = dataclasses.replace(rollout, policy_version=rollout.policy_version + 1)
