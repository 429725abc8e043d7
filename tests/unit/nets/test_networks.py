"""Policies with memory and with parts only the critic sees: acting step by step is what learning walks through again."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from surefoot.core.batch import Batch
from surefoot.data.spaces import ActionSpace, Box, Discrete, Hybrid, MultiDiscrete
from surefoot.errors import ConfigError, SpaceError
from surefoot.nets.actor_critic import ActorCritic, policy_from_description
from surefoot.nets.config import NetConfig
from surefoot.nets.networks import Trunks
from surefoot.nets.policy import PolicyInput, PolicyOutput

OBS = {"obs": Box((3,)), "state": Box((2,))}
T, N = 9, 4
KINDS: dict[str, dict[str, object]] = {
    "none": {},
    "gru": {"memory": "gru"},
    "lstm": {"memory": "lstm"},
    "gru shared": {"memory": "gru", "shared": True},
    "lstm shared": {"memory": "lstm", "shared": True},
    "lstm central": {"memory": "lstm", "critic_only": ("state",)},
    "gru linear": {"memory": "gru", "hidden": ()},
}
WITH_MEMORY = [kind for kind in KINDS if kind != "none"]
ACTIONS: dict[str, tuple[ActionSpace, dict[str, bool]]] = {
    "discrete": (Discrete(4), {}),
    "several": (MultiDiscrete((2, 3)), {}),
    "gaussian": (Box((2,), -1.0, 1.0), {}),
    "beta": (Box((2,), -1.0, 1.0), {"beta": True}),
    "hybrid": (Hybrid((3,), Box((2,), -1.0, 1.0)), {"gsde": True}),
}


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def a_policy(kind: str, action: str = "discrete", seed: int = 1) -> ActorCritic:
    space, noise = ACTIONS[action]
    policy = ActorCritic(OBS, space, NetConfig(**{"hidden": (8,), "memory_size": 6, **KINDS[kind], **noise}), seed=seed)
    with torch.no_grad():  # a policy with an opinion
        policy.network.policy_out.weight.mul_(100.0)
    return policy


def some_obs(seed: int = 0) -> dict[str, Tensor]:
    return {name: torch.randn(T, N, *box.shape, generator=seeded(seed)) for name, box in OBS.items()}


def some_starts() -> Tensor:
    start = torch.rand(T, N, generator=seeded(5)) < 0.25
    start[:, 1] = False  # one stream that goes on all the time
    start[4, 0] = True
    assert start[1:].any()
    return start


@torch.no_grad()
def walked(
    policy: ActorCritic, obs: dict[str, Tensor], start: Tensor, context: dict[str, Tensor]
) -> list[PolicyOutput]:
    """What the policy does, one step at a time."""
    outs, generator = list[PolicyOutput](), seeded(2)
    for t in range(len(start)):
        seen = PolicyInput(obs={name: x[t] for name, x in obs.items()}, start=start[t], context=context)
        outs.append(policy.act(seen, generator=generator))
        context = outs[-1].context
    return outs


def batch_of(outs: list[PolicyOutput], obs: dict[str, Tensor], start: Tensor, context: dict[str, Tensor]) -> Batch:
    zeros = torch.zeros(start.shape)
    return Batch(
        obs=obs,
        action=torch.stack([out.action for out in outs]),
        log_prob=torch.stack([out.log_prob for out in outs]),
        value=torch.stack([out.value for out in outs]),
        advantage=zeros,
        target=zeros,
        start=start,
        context=context,
    )


def carried(policy: ActorCritic, seed: int = 7) -> dict[str, Tensor]:
    """A context in the middle of things."""
    context = policy.initial_context(N)
    return {
        name: torch.randn(x.shape, generator=seeded(seed)) if "memory" in name else x for name, x in context.items()
    }


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_walking_through_a_stored_sequence_says_what_acting_step_by_step_said(kind, action):
    policy, obs, start = a_policy(kind, action), some_obs(), some_starts()
    context = carried(policy)
    outs = walked(policy, obs, start, context)
    batch = batch_of(outs, obs, start, context)
    said = policy.evaluate(batch)
    assert (said.log_prob - batch.log_prob).expm1().abs().max() < 1e-5
    assert torch.allclose(said.value, batch.value, atol=1e-5)
    assert said.entropy.shape == (T, N)
    assert batch.log_prob.std() > 0.05


@pytest.mark.parametrize("kind", WITH_MEMORY)
def test_a_sequence_walked_through_without_its_beginnings_says_something_else(kind):
    policy, obs, start = a_policy(kind), some_obs(), some_starts()
    context = carried(policy)
    batch = batch_of(walked(policy, obs, start, context), obs, start, context)
    batch.start = torch.zeros_like(start)
    said = policy.evaluate(batch)
    off = (said.log_prob - batch.log_prob).abs()
    assert off[:, 1].max() < 1e-5
    assert off[4, 0] > 1e-3
    assert (said.value - batch.value)[4, 0].abs() > 1e-3


@pytest.mark.parametrize("kind", WITH_MEMORY)
def test_what_a_stream_remembers_matters(kind):
    policy, obs, start = a_policy(kind), some_obs(), torch.zeros(T, N, dtype=torch.bool)
    here, there = (walked(policy, obs, start, carried(policy, seed))[0] for seed in (1, 2))
    assert (here.value - there.value).abs().min() > 1e-4
    assert not torch.allclose(here.action_params["probs"], there.action_params["probs"], atol=1e-3)


@pytest.mark.parametrize("kind", WITH_MEMORY)
def test_streams_do_not_remember_for_each_other(kind):
    policy, obs, start = a_policy(kind), some_obs(), some_starts()
    start[0] = False
    context = carried(policy)
    changed = {name: torch.cat([x[:1] + 1.0, x[1:]]) for name, x in context.items()}
    ours, theirs = (walked(policy, obs, start, given) for given in (context, changed))
    for a, b in zip(ours, theirs, strict=True):
        assert torch.equal(a.value[1:], b.value[1:])
    assert ours[0].value[0] != theirs[0].value[0]


@pytest.mark.parametrize("kind", WITH_MEMORY)
def test_an_episode_that_begins_remembers_nothing(kind):
    policy, obs = a_policy(kind), some_obs()
    begins, goes_on = torch.ones(T, N, dtype=torch.bool), torch.zeros(T, N, dtype=torch.bool)
    fresh = walked(policy, obs, goes_on, policy.initial_context(N))[0]
    again = walked(policy, obs, begins, carried(policy))[0]
    assert torch.equal(again.value, fresh.value)
    assert torch.equal(again.log_prob, fresh.log_prob)
    assert all(torch.equal(x, fresh.context[name]) for name, x in again.context.items())


@pytest.mark.parametrize("kind", WITH_MEMORY)
def test_a_context_goes_in_and_another_comes_out_and_the_one_that_went_in_is_as_it_was(kind):
    policy, obs, start = a_policy(kind), some_obs(), some_starts()
    context = carried(policy)
    kept = {name: x.clone() for name, x in context.items()}
    outs = walked(policy, obs, start, context)
    policy.evaluate(batch_of(outs, obs, start, context))
    policy.remembered(batch_of(outs, obs, start, context), [3, 5])
    assert set(context) == set(kept) == set(outs[0].context)
    assert all(torch.equal(x, kept[name]) for name, x in context.items())
    for one, two in pairwise(outs):
        assert all((one.context[name] != two.context[name]).any() for name in context)


@pytest.mark.parametrize("kind", WITH_MEMORY)
def test_a_look_at_the_value_does_not_move_the_memory(kind):
    policy, obs = a_policy(kind), some_obs()
    context = carried(policy)
    kept = {name: x.clone() for name, x in context.items()}
    seen = PolicyInput(obs={name: x[0] for name, x in obs.items()}, context=context)
    first, second = policy.value(seen), policy.value(seen)
    assert torch.equal(first, second)
    assert seen.context is context
    assert all(torch.equal(x, kept[name]) for name, x in context.items())
    acted = policy.act(seen, generator=seeded())
    assert torch.allclose(acted.value, first, atol=1e-6)


@pytest.mark.parametrize("kind", WITH_MEMORY)
def test_the_value_of_a_beginning_is_that_of_an_empty_memory(kind):
    policy = a_policy(kind)
    obs = {name: x[0] for name, x in some_obs().items()}
    begins = torch.tensor([True, False, True, False])
    said = policy.value(PolicyInput(obs=obs, start=begins, context=carried(policy)))
    fresh = policy.value(PolicyInput(obs=obs, context=policy.initial_context(N)))
    assert torch.equal(said[begins], fresh[begins])
    assert (said[~begins] - fresh[~begins]).abs().min() > 1e-4


@pytest.mark.parametrize("kind", WITH_MEMORY)
def test_what_was_remembered_at_a_step_is_what_stepping_carried_into_it(kind):
    policy, obs, start = a_policy(kind, "hybrid"), some_obs(), some_starts()
    context = carried(policy)
    outs = walked(policy, obs, start, context)
    places = [0, 1, 4, 8]
    kept = policy.remembered(batch_of(outs, obs, start, context), places)
    assert len(kept) == len(places)
    for place, found in zip(places, kept, strict=True):
        expected = context if place == 0 else outs[place - 1].context
        for name in context:
            if "memory" in name:
                assert torch.allclose(found[name], expected[name], atol=1e-5)
                assert not found[name].requires_grad


def test_actor_and_critic_remember_each_for_itself_unless_shared():
    assert set(a_policy("lstm").initial_context(2)) == {"memory", "critic_memory"}
    assert set(a_policy("lstm shared").initial_context(2)) == {"memory"}
    sizes = {kind: a_policy(kind).initial_context(2)["memory"].shape for kind in ("gru", "lstm")}
    assert sizes == {"gru": (2, 6), "lstm": (2, 12)}
    assert [a_policy(kind).sequential for kind in ("none", "gru", "lstm shared")] == [False, True, True]


def test_memory_and_exploration_are_carried_side_by_side_and_only_the_noise_is_renewed():
    policy = a_policy("gru", "hybrid")
    out = walked(policy, some_obs(), some_starts(), policy.initial_context(N))[-1]
    assert set(out.context) == {"memory", "critic_memory", "gsde", "gsde_age"}
    assert out.context["gsde_age"].tolist() == [T] * N
    renewed = policy.renew_context(out.context)
    assert renewed["gsde_age"].tolist() == [0] * N
    assert torch.equal(renewed["memory"], out.context["memory"])


def test_a_whole_network_of_ones_own_has_no_memory_and_a_torso_may():
    class Sum(torch.nn.Module):
        def forward(self, x: dict[str, Tensor]) -> Tensor:
            return torch.stack([x["obs"].sum(-1)] * 2, dim=-1)

    with pytest.raises(ConfigError, match="pass a torso instead of a network"):
        ActorCritic(OBS, Discrete(2), NetConfig(memory="gru"), network=Sum())
    policy = ActorCritic(OBS, Discrete(2), NetConfig(memory="gru", memory_size=6), torso=Sum())
    obs, start, context = some_obs(), some_starts(), policy.initial_context(N)
    batch = batch_of(walked(policy, obs, start, context), obs, start, context)
    assert torch.allclose(policy.evaluate(batch).log_prob, batch.log_prob, atol=1e-5)


def looked(policy: ActorCritic, state: Tensor) -> PolicyOutput:
    obs = {name: x[0] for name, x in some_obs().items()}
    seen = PolicyInput(obs={**obs, "state": state}, start=torch.zeros(N, dtype=torch.bool), context=carried(policy))
    return policy.act(seen, generator=seeded())


@pytest.mark.parametrize("memory", ["none", "gru", "lstm"])
def test_what_only_the_critic_sees_moves_the_value_and_nothing_else(memory):
    config = NetConfig(critic_only=("state",), memory=memory, hidden=(8,), memory_size=6)
    policy = ActorCritic(OBS, Discrete(4), config)
    state = torch.randn(N, 2, generator=seeded(3)).requires_grad_()
    here, there = looked(policy, state), looked(policy, state.detach() + 1.0)
    assert torch.equal(here.action_params["probs"], there.action_params["probs"])
    assert torch.equal(here.action, there.action)
    assert (here.value - there.value).abs().min() > 1e-4
    (pulled,) = torch.autograd.grad(here.value.sum(), state, retain_graph=True)
    assert (pulled != 0).any(dim=-1).all()
    assert torch.autograd.grad(here.log_prob.sum(), state, allow_unused=True) == (None,)
    assert all(torch.equal(here.context[name], there.context[name]) for name in here.context if name == "memory")


@pytest.mark.parametrize("memory", ["none", "gru"])
def test_the_actors_loss_leaves_the_central_critic_alone_and_the_other_way_round(memory):
    policy = ActorCritic(OBS, Discrete(4), NetConfig(critic_only=("state",), memory=memory, hidden=(8,)))
    assert isinstance(policy.network, Trunks)
    out = looked(policy, torch.randn(N, 2))
    named = dict(policy.named_parameters())
    by_actor = torch.autograd.grad(out.log_prob.sum(), list(named.values()), allow_unused=True, retain_graph=True)
    by_critic = torch.autograd.grad(out.value.sum(), list(named.values()), allow_unused=True)
    for name, a, c in zip(named, by_actor, by_critic, strict=True):
        assert (a is None) != (c is None), name
        assert (c is not None) == ("critic" in name or "value_out" in name)


def test_a_part_for_the_critic_that_is_not_there_is_named():
    with pytest.raises(ConfigError, match=r"critic_only names 'ghost'; the observation has 'obs', 'state'"):
        ActorCritic(OBS, Discrete(2), NetConfig(critic_only=("ghost",)))


def test_a_policy_that_is_shown_nothing_is_refused():
    with pytest.raises(SpaceError, match="no observation part left"):
        ActorCritic(OBS, Discrete(2), NetConfig(critic_only=("obs", "state")))


def test_a_shared_trunk_and_a_module_of_ones_own_know_no_part_for_the_critic():
    with pytest.raises(ConfigError, match="a shared trunk has no part for the critic only"):
        NetConfig(shared=True, critic_only=("state",))
    with pytest.raises(ConfigError, match="critic_only is for the standard torso"):
        ActorCritic(OBS, Discrete(2), NetConfig(critic_only=("state",)), torso=torch.nn.Identity())


EYES = {"obs": Box((3,)), "state": Box((2,)), "eye": Box((9, 9, 1), 0, 255, "uint8")}
KNOBS: dict[str, dict[str, object]] = {
    "plain": {},
    "shared": {"shared": True},
    "normalised": {"normalize_obs": True, "obs_clip": 3.0},
    "gru": {"memory": "gru", "memory_size": 7},
    "lstm shared": {"memory": "lstm", "shared": True, "normalize_obs": True},
    "central": {"critic_only": ("state",), "normalize_obs": True, "memory": "gru"},
    "beta": {"beta": True},
    "small": {"cnn": "small", "cnn_features": 11},
    "flat": {"cnn": "off", "shared": True, "normalize_obs": True},
}


def judged(policy: ActorCritic) -> PolicyOutput:
    obs = {
        "obs": torch.randn(N, 3, generator=seeded()),
        "state": torch.randn(N, 2, generator=seeded(1)),
        "eye": torch.randint(0, 256, (N, 9, 9, 1), dtype=torch.uint8, generator=seeded(2)),
    }
    seen = PolicyInput(obs={name: obs[name] for name in policy.observation}, context=carried(policy))
    return policy.act(seen, generator=seeded(3))


@pytest.mark.parametrize("obs", [OBS, EYES], ids=["rows", "eyes"])
@pytest.mark.parametrize("knobs", KNOBS)
def test_a_policy_of_any_shape_is_rebuilt_from_its_description_and_its_weights(knobs, obs):
    space = Hybrid((3, 2), Box((2,), -1.0, 2.0))
    policy = ActorCritic(obs, space, NetConfig(**{"hidden": (5,), **KNOBS[knobs]}), seed=3)
    policy.absorb({name: 3.0 + torch.randn(20, *box.shape).numpy() for name, box in obs.items()})
    again = policy_from_description(json.loads(json.dumps(policy.describe())))
    assert (again.observation, again.action, again.config) == (policy.observation, policy.action, policy.config)
    again.load_state_dict({name: x.clone() for name, x in policy.state_dict().items()})
    one, two = judged(policy), judged(again)
    assert torch.equal(one.action, two.action)
    assert torch.equal(one.value, two.value)


@pytest.mark.parametrize("obs", [OBS, EYES], ids=["rows", "eyes"])
@pytest.mark.parametrize("knobs", KNOBS)
def test_every_weight_is_in_the_state_dict_exactly_once(knobs, obs):
    policy = ActorCritic(obs, Box((2,), -1.0, 1.0), NetConfig(**{"hidden": (5,), **KNOBS[knobs]}))
    saved = policy.state_dict()
    twice = Counter(x.data_ptr() for x in saved.values())
    assert [name for name, x in saved.items() if twice[x.data_ptr()] > 1] == []
    assert {x.data_ptr() for x in policy.parameters()} <= set(twice)


def test_actor_and_critic_see_a_picture_through_the_same_convolutions():
    # Detail A8: the torso is one, whether or not the layers behind it are.
    for shared in (True, False):
        policy = ActorCritic(EYES, Discrete(2), NetConfig(shared=shared, hidden=(4,)))
        convolutions = [m for m in policy.modules() if isinstance(m, torch.nn.Conv2d)]
        assert len(convolutions) == 2
        out = judged(policy)
        for said in (out.log_prob, out.value):
            (grad,) = torch.autograd.grad(said.sum(), convolutions[0].weight, retain_graph=True)
            assert (grad != 0).any()
