"""The standard policy: how it begins, what it shares, what it refuses, and that acting and judging agree."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from surefoot.core.batch import Batch
from surefoot.data.spaces import ActionSpace, Box, Discrete, MultiDiscrete
from surefoot.errors import AllActionsMasked, CheckpointIncompatible, ConfigError, PolicyError
from surefoot.nets.actor_critic import ActorCritic, policy_from_description
from surefoot.nets.config import NetConfig
from surefoot.nets.networks import Trunks, refuse_stateful_layers
from surefoot.nets.policy import PolicyInput

OBS = {"obs": Box((3,))}
TWO = Box((2,), -1.0, 1.0)
HEADS: dict[str, tuple[ActionSpace, dict[str, bool]]] = {
    "discrete": (Discrete(4), {}),
    "several": (MultiDiscrete((2, 3)), {}),
    "gaussian": (TWO, {}),
    "tanh": (TWO, {"squash": True}),
    "gsde": (TWO, {"gsde": True}),
}


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def obs(n: int, seed: int = 0) -> dict[str, Tensor]:
    return {"obs": torch.randn(n, 3, generator=seeded(seed))}


def act(policy: ActorCritic, n: int, *, context=None, mask=None, deterministic=False, seed=0):
    seen = PolicyInput(obs=obs(n), action_mask=mask, context=policy.initial_context(n) if context is None else context)
    return policy.act(seen, generator=seeded(seed), deterministic=deterministic)


def batch_of(out, seen: dict[str, Tensor], mask: Tensor | None = None) -> Batch:
    zeros = torch.zeros(1, len(out.value))
    row = {name: x.unsqueeze(0) for name, x in seen.items()}
    return Batch(
        obs=row,
        action=out.action.unsqueeze(0),
        log_prob=out.log_prob.unsqueeze(0),
        value=out.value.unsqueeze(0),
        advantage=zeros,
        target=zeros,
        action_mask=None if mask is None else mask.unsqueeze(0),
    )


def test_a_policy_begins_orthogonal_with_the_gains_of_the_field_and_no_bias():
    policy = ActorCritic(OBS, Discrete(2), NetConfig(hidden=(8, 8)))
    assert isinstance(policy.network, Trunks)
    net = policy.network
    gains = {net.policy_out: 0.01, net.value_out: 1.0}
    for linear in (net.actor[0], net.actor[2], net.critic[0], net.critic[2], net.policy_out, net.value_out):
        w, gain = linear.weight.detach(), gains.get(linear, math.sqrt(2))
        square = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
        assert torch.allclose(square, gain**2 * torch.eye(len(square)), atol=1e-5)
        assert (linear.bias == 0).all()


def test_actor_and_critic_are_separate_unless_told_otherwise():
    def count(**knobs: object) -> int:
        return sum(p.numel() for p in ActorCritic(OBS, Discrete(2), NetConfig(hidden=(8, 8), **knobs)).parameters())

    trunk, heads = (3 * 8 + 8) + (8 * 8 + 8), (8 * 2 + 2) + (8 + 1)
    assert count() == 2 * trunk + heads
    assert count(shared=True) == trunk + heads
    assert count(critic_hidden=(5,)) == trunk + (3 * 5 + 5) + (8 * 2 + 2) + (5 + 1)


def test_a_separate_critic_does_not_move_with_the_actors_loss():
    policy = ActorCritic(OBS, Discrete(2))
    act(policy, 4).log_prob.sum().backward()
    assert isinstance(policy.network, Trunks)
    assert all(p.grad is None for p in policy.network.critic.parameters())
    assert all(p.grad is not None for p in policy.network.actor.parameters())


def test_a_policy_without_hidden_layers_is_linear():
    policy = ActorCritic(OBS, Discrete(2), NetConfig(hidden=()))
    assert sum(p.numel() for p in policy.parameters()) == (3 * 2 + 2) + (3 + 1)


def test_a_dict_in_any_order_makes_the_same_policy_say_the_same():
    parts = {"far": Box((2,)), "near": Box((3,))}
    turned = dict(reversed(parts.items()))
    x = {"far": torch.randn(5, 2), "near": torch.randn(5, 3)}
    one, two = ActorCritic(parts, Discrete(2), seed=4), ActorCritic(turned, Discrete(2), seed=4)
    assert torch.equal(one.value(PolicyInput(obs=x)), two.value(PolicyInput(obs=dict(reversed(x.items())))))


def test_bytes_are_divided_by_255_inside_the_policy():
    pixels, floats = ActorCritic({"obs": Box((3,), 0, 255, "uint8")}, Discrete(2)), ActorCritic(OBS, Discrete(2))
    x = torch.tensor([[0, 51, 255]], dtype=torch.uint8)
    assert torch.allclose(
        pixels.value(PolicyInput(obs={"obs": x})), floats.value(PolicyInput(obs={"obs": x.float() / 255.0}))
    )


def test_a_seed_decides_the_weights_and_torchs_own_generator_is_left_alone():
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    a, b, c = (ActorCritic(OBS, TWO, seed=s).state_dict() for s in (5, 5, 6))
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert not torch.equal(a["network.actor.0.weight"], c["network.actor.0.weight"])


@pytest.mark.parametrize("kind", HEADS)
def test_acting_draws_only_from_the_given_generator(kind):
    space, knobs = HEADS[kind]
    policy = ActorCritic(OBS, space, NetConfig(**knobs))
    before = torch.get_rng_state()
    one, two, other = act(policy, 16), act(policy, 16), act(policy, 16, seed=1)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(one.action, two.action)
    assert not torch.equal(one.action, other.action)


@pytest.mark.parametrize("kind", HEADS)
def test_judging_a_stored_action_gives_the_log_prob_and_value_of_acting(kind):
    space, knobs = HEADS[kind]
    policy = ActorCritic(OBS, space, NetConfig(**knobs))
    out = act(policy, 32)
    said = policy.evaluate(batch_of(out, obs(32)))
    assert torch.allclose(said.log_prob[0], out.log_prob, atol=1e-6)
    assert torch.allclose(said.value[0], out.value, atol=1e-6)
    assert said.entropy.shape == (1, 32)


@pytest.mark.parametrize("kind", HEADS)
def test_a_deterministic_policy_takes_the_mode_whatever_the_generator_says(kind):
    space, knobs = HEADS[kind]
    policy = ActorCritic(OBS, space, NetConfig(**knobs))
    one, two = act(policy, 8, deterministic=True), act(policy, 8, deterministic=True, seed=9)
    assert torch.equal(one.action, two.action)
    said = one.action_params
    if "mean" in said:
        expected = said["mean"]
    else:
        expected = torch.stack([probs.argmax(-1) for probs in said.values()], dim=-1).reshape(one.action.shape)
    assert torch.equal(one.action, expected)


def test_the_deterministic_choice_is_the_best_allowed_one():
    policy = ActorCritic(OBS, Discrete(3))
    nn.init.constant_(policy.network.policy_out.weight, 0.0)
    policy.network.policy_out.bias.data = torch.tensor([1.0, 3.0, 2.0])
    mask = torch.tensor([[True, True, True], [True, False, True], [True, False, False]])
    assert act(policy, 3, mask=mask, deterministic=True).action.tolist() == [1, 2, 0]


def test_a_row_that_allows_nothing_is_named():
    mask = torch.ones(3, 4, dtype=torch.bool)
    mask[1] = False
    with pytest.raises(AllActionsMasked, match="row 1"):
        act(ActorCritic(OBS, Discrete(4)), 3, mask=mask)


def test_a_row_that_leaves_one_of_several_choices_empty_is_named():
    mask = torch.ones(3, 5, dtype=torch.bool)
    mask[2, 2:] = False  # the first knob is open, the second has no position left
    with pytest.raises(AllActionsMasked, match="row 2"):
        act(ActorCritic(OBS, MultiDiscrete((2, 3))), 3, mask=mask)


class TestGsde:
    def policy(self, every: int) -> ActorCritic:
        return ActorCritic(OBS, TWO, NetConfig(gsde=True, gsde_every=every))

    def walk(self, policy: ActorCritic, steps: int) -> list[Tensor]:
        context, matrices, generator = policy.initial_context(2), [], seeded()
        for _ in range(steps):
            context = policy.act(PolicyInput(obs=obs(2), context=context), generator=generator).context
            matrices.append(context["gsde"])
        return matrices

    def test_a_matrix_is_kept_until_the_rollout_is_over(self):
        first, *rest = self.walk(self.policy(-1), 5)
        assert first.abs().sum() > 0
        assert all(torch.equal(first, m) for m in rest)

    def test_a_matrix_is_drawn_anew_every_so_many_steps(self):
        m = self.walk(self.policy(2), 6)
        same = [torch.equal(m[i], m[i + 1]) for i in range(5)]
        assert same == [True, False, True, False, True]

    def test_a_new_rollout_draws_a_new_matrix(self):
        policy, generator = self.policy(-1), seeded()
        first = policy.act(PolicyInput(obs=obs(2), context=policy.initial_context(2)), generator=generator).context
        second = policy.act(PolicyInput(obs=obs(2), context=policy.renew_context(first)), generator=generator).context
        assert not torch.equal(first["gsde"], second["gsde"])

    def test_streams_explore_each_in_its_own_way(self):
        matrix = self.walk(self.policy(-1), 1)[0]
        assert not torch.equal(matrix[0], matrix[1])

    def test_the_same_state_gets_the_same_noise_while_the_matrix_is_kept(self):
        policy, generator = self.policy(-1), seeded()
        first = policy.act(PolicyInput(obs=obs(2), context=policy.initial_context(2)), generator=generator)
        again = policy.act(PolicyInput(obs=obs(2), context=first.context), generator=generator)
        assert torch.equal(first.action, again.action)


def test_a_policy_without_memory_carries_nothing():
    policy = ActorCritic(OBS, Discrete(2))
    assert policy.initial_context(3) == {}
    assert policy.renew_context({}) == {}
    assert policy.sequential is False


class Sum(nn.Module):
    """A torso of one's own: the sum of the parts, twice."""

    def forward(self, x: dict[str, Tensor]) -> Tensor:
        return torch.stack([x["obs"].sum(-1)] * 2, dim=-1)


class Own(nn.Module):
    """A whole network of one's own."""

    def __init__(self, outputs: int, *, values: int = 1) -> None:
        super().__init__()
        self.pi, self.v = nn.Linear(3, outputs), nn.Linear(3, values)

    def forward(self, x: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        return self.pi(x["obs"]), self.v(x["obs"])


def test_a_torso_of_ones_own_feeds_actor_and_critic():
    policy = ActorCritic(OBS, Discrete(2), NetConfig(hidden=(4,)), torso=Sum())
    assert sum(p.numel() for p in policy.parameters()) == 2 * (2 * 4 + 4) + (4 * 2 + 2) + (4 + 1)
    turned = PolicyInput(obs={"obs": obs(5)["obs"].flip(-1)})  # the sum does not mind the order
    assert torch.allclose(policy.value(turned), policy.value(PolicyInput(obs=obs(5))), atol=1e-6)


def test_a_network_of_ones_own_is_used_as_it_is():
    own = Own(2)
    policy = ActorCritic(OBS, Discrete(2), network=own)
    assert torch.equal(policy.value(PolicyInput(obs=obs(5))), own.v(obs(5)["obs"])[:, 0])
    probs = act(policy, 5).action_params["probs"]
    assert torch.allclose(probs, own.pi(obs(5)["obs"]).softmax(-1), atol=1e-6)


@pytest.mark.parametrize(
    ("network", "said"), [(Own(3), r"\[2, 3\]"), (Own(2, values=2), r"\[2, 2\]"), (Sum(), r"\[2, 2\]")]
)
def test_a_network_of_the_wrong_shape_is_refused_with_both_shapes(network, said):
    with pytest.raises(PolicyError, match=said):
        ActorCritic(OBS, Discrete(2), network=network)


def test_a_torso_of_the_wrong_shape_is_refused():
    class Flat(nn.Module):
        def forward(self, x: dict[str, Tensor]) -> Tensor:
            return x["obs"].sum()

    with pytest.raises(PolicyError, match="torso"):
        ActorCritic(OBS, Discrete(2), torso=Flat())


def test_torso_and_network_together_are_refused():
    with pytest.raises(ConfigError, match="one of them"):
        ActorCritic(OBS, Discrete(2), torso=Sum(), network=Own(2))


def test_gsde_with_a_whole_network_is_refused():
    with pytest.raises(ConfigError, match="torso"):
        ActorCritic(OBS, TWO, NetConfig(gsde=True), network=Own(2))


class Directive(nn.Module):
    """The prompt-mutation ancestor's net: fc → batch norm → ReLU → dropout, three times over."""

    def __init__(
        self, inputs: int = 3, hidden: int = 8, *, drop: float = 0.1, norm: type[nn.Module] = nn.BatchNorm1d
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for width in (hidden, hidden, hidden // 2):
            layers += [nn.Linear(inputs, width), norm(width), nn.ReLU(), nn.Dropout(drop)]
            inputs = width
        self.layers = nn.Sequential(*layers)

    def forward(self, x: dict[str, Tensor]) -> Tensor:
        return self.layers(x["obs"])


@pytest.mark.parametrize(
    ("torso", "kind"),
    [(Directive(), "BatchNorm1d"), (Directive(norm=nn.LayerNorm), "Dropout"), (Directive(drop=0.0), "BatchNorm1d")],
)
def test_layers_that_act_otherwise_than_they_learn_are_refused_by_place_and_kind(torso, kind):
    with pytest.raises(PolicyError, match=rf"{kind} at 'network\.torso\.layers\.\d+'.*LayerNorm"):
        refuse_stateful_layers(ActorCritic(OBS, Discrete(2), torso=torso))


@pytest.mark.parametrize(
    "module",
    [
        nn.LSTM(4, 4, num_layers=2, dropout=0.1),
        nn.MultiheadAttention(4, 2, dropout=0.1),
        nn.InstanceNorm1d(4, track_running_stats=True),
    ],
    ids=lambda module: type(module).__name__,
)
def test_layers_that_have_it_built_in_are_refused_too(module):
    with pytest.raises(PolicyError, match=type(module).__name__):
        refuse_stateful_layers(nn.Sequential(module))


def test_layer_norm_and_a_dropout_of_nothing_are_fine():
    refuse_stateful_layers(ActorCritic(OBS, Discrete(2), torso=Directive(drop=0.0, norm=nn.LayerNorm)))


@pytest.mark.parametrize("kind", HEADS)
def test_a_policy_is_rebuilt_from_its_description(kind):
    space, knobs = HEADS[kind]
    config = NetConfig(hidden=(5, 4), critic_hidden=(3,), normalize_obs=True, **knobs)
    policy = ActorCritic({"a": Box((2, 2)), "b": Box((1,), 0, 255, "uint8")}, space, config, seed=3)
    again = policy_from_description(json.loads(json.dumps(policy.describe())))
    assert (again.observation, again.action, again.config) == (policy.observation, policy.action, policy.config)
    again.load_state_dict(policy.state_dict())
    x = {"a": torch.randn(3, 2, 2), "b": torch.randint(0, 255, (3, 1), dtype=torch.uint8)}
    assert torch.equal(again.value(PolicyInput(obs=x)), policy.value(PolicyInput(obs=x)))


def test_a_policy_with_a_module_of_ones_own_says_that_it_cannot_be_rebuilt():
    with pytest.raises(CheckpointIncompatible, match="policy="):
        policy_from_description(ActorCritic(OBS, Discrete(2), torso=Sum()).describe())
    with pytest.raises(CheckpointIncompatible, match="'lm'"):
        policy_from_description({"kind": "lm"})


class TestNormaliser:
    def policy(self) -> ActorCritic:
        return ActorCritic(OBS, Discrete(2), NetConfig(normalize_obs=True))

    def test_it_moves_only_when_told(self):
        policy = self.policy()
        before = {name: x.clone() for name, x in policy.state_dict().items()}
        out = act(policy, 8)
        policy.evaluate(batch_of(out, obs(8))).value.sum().backward()
        assert all(torch.equal(before[name], x) for name, x in policy.state_dict().items())

    def test_it_changes_what_the_layers_see(self):
        policy, plain = self.policy(), ActorCritic(OBS, Discrete(2))
        data = np.random.default_rng(0).normal(5.0, 2.0, (1_000, 3))
        policy.absorb({"obs": data})
        x = torch.tensor([[5.0, 7.0, 1.0]])
        standard = (x.double() - torch.from_numpy(data.mean(0))) / torch.from_numpy(data.std(0))
        assert torch.allclose(
            policy.value(PolicyInput(obs={"obs": x})),
            plain.value(PolicyInput(obs={"obs": standard.float()})),
            atol=1e-5,
        )

    def test_it_is_saved_with_the_weights(self):
        policy, again = self.policy(), self.policy()
        policy.absorb({"obs": np.random.default_rng(0).normal(5.0, 2.0, (100, 3))})
        again.load_state_dict(policy.state_dict())
        assert torch.equal(again.value(PolicyInput(obs=obs(4))), policy.value(PolicyInput(obs=obs(4))))

    def test_it_has_no_weights_for_the_optimiser(self):
        plain = ActorCritic(OBS, Discrete(2))
        assert sum(p.numel() for p in self.policy().parameters()) == sum(p.numel() for p in plain.parameters())

    def test_it_is_not_quietly_left_out_where_the_torso_is_ones_own(self):
        with pytest.raises(ConfigError, match="normalize_obs"):
            ActorCritic(OBS, Discrete(2), NetConfig(normalize_obs=True), torso=Sum())
