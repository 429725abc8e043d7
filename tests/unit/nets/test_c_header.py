"""Policies as C: no warnings, and the bits of the kernel's base instruction set."""

from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from surefoot import native
from surefoot.data.spaces import Box, Discrete, Hybrid, MultiDiscrete
from surefoot.errors import PolicyError
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.c_header import c_header
from surefoot.nets.config import NetConfig
from surefoot.nets.kernel_layout import KernelNet
from surefoot.nets.policy import PolicyInput
from surefoot.nets.torsos import ACTIVATIONS
from surefoot.train.interop.c_export import CompiledHeader, compile_library

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler here")
needs_base = pytest.mark.skipif(
    native.kernel is None or "base" not in native.kernel.instruction_sets(), reason=str(native.why_not)
)
ROW = {"obs": Box((5,))}
REACH = Box((2,), -1.0, 2.0)
HEADS = {
    "one choice": (Discrete(3, start=-1), {}),
    "more choices than dot products": (Discrete(11), {}),
    "several choices": (MultiDiscrete((3, 2, 9)), {}),
    "buttons": (MultiDiscrete((2, 2, 2)), {}),
    "gaussian": (REACH, {}),
    "unbounded": (Box((2, 2)), {}),
    "squashed": (REACH, {"squash": True}),
    "gsde": (REACH, {"gsde": True}),
    "beta": (REACH, {"beta": True}),
    "hybrid": (Hybrid((3, 2), REACH), {}),
    "hybrid squashed": (Hybrid((3,), REACH), {"squash": True}),
    "hybrid beta": (Hybrid((3, 2), REACH), {"beta": True}),
    "hybrid gsde": (Hybrid((3, 2), REACH), {"gsde": True}),
}
ON_KERNEL = [
    "one choice",
    "more choices than dot products",
    "several choices",
    "buttons",
    "gaussian",
    "unbounded",
    "gsde",
]


class OwnTorso(nn.Module):
    def forward(self, obs):
        return obs["obs"]


def shaken(observation, action, **net) -> ActorCritic:
    """A policy with weights that are not those of a new one: its probabilities differ, its biases are not 0."""
    policy = ActorCritic(observation, action, NetConfig(**{"hidden": (12, 7), **net}))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in policy.parameters():
            weight.add_(0.5 * torch.randn(weight.shape, generator=generator))
    rng = np.random.default_rng(0)
    policy.absorb({name: rng.uniform(0, 9, (64, *box.shape)).astype(box.dtype) for name, box in observation.items()})
    return policy


def compiled(policy: ActorCritic, place: Path, *, masks: bool = False) -> CompiledHeader:
    return CompiledHeader(c_header(policy, masks=masks), place)


def answers(header: CompiledHeader, **feed: np.ndarray) -> dict[str, np.ndarray]:
    return dict(zip([port.name for port in header.get_outputs()], header.run(None, feed), strict=True))


def rows(n: int, width: int) -> np.ndarray:
    return (3.0 * np.random.default_rng(0).standard_normal((n, width))).astype(np.float32)


def some_mask(n: int, sizes: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(1)
    parts = [rng.random((n, k)) < 0.5 for k in sizes]
    for part in parts:
        part[np.arange(n), rng.integers(part.shape[1], size=n)] = True
    return np.concatenate(parts, axis=1)


def by_kernel(policy: ActorCritic, obs: np.ndarray, mask: np.ndarray | None) -> dict[str, np.ndarray]:
    net = KernelNet(policy, "base")
    net.pack()
    n, width = len(obs), len(net.sizes) if net.discrete else policy.head.outputs
    kind = np.int64 if net.discrete else np.float32
    out = {"action": np.zeros((n, width), kind), "env_action": np.zeros((n, width), kind)}
    out |= {"log_prob": np.zeros(n, np.float32), "value": np.zeros(n, np.float32)}
    rng = np.zeros(4, np.uint64)
    net.kernel.net_act(
        net.net, rng=rng, n=n, obs=obs, mask=mask, deterministic=True, start=None, carry=None, critic_carry=None, **out
    )
    return out


# Compiling takes a tenth of a second: every head with one activation, every activation with one head.
@needs_base
@pytest.mark.parametrize(
    ("kind", "activation"),
    [*((kind, "tanh") for kind in ON_KERNEL), *(("gsde", name) for name in ACTIVATIONS if name != "tanh")],
)
def test_actions_and_values_have_the_bits_of_the_kernel(kind, activation, tmp_path):
    action, more = HEADS[kind]
    policy, obs = shaken(ROW, action, activation=activation, normalize_obs=True, **more), rows(200, 5)
    mask = some_mask(200, policy.choices()) if policy.choices() else None
    header = compiled(policy, tmp_path, masks=mask is not None)
    ours = answers(header, obs=obs, **({} if mask is None else {"action_mask": mask}))
    theirs = by_kernel(policy, obs, mask)
    np.testing.assert_array_equal(ours["action"].reshape(200, -1), theirs["env_action"])
    np.testing.assert_array_equal(ours["value"], theirs["value"])
    if mask is None:
        np.testing.assert_array_equal(ours["mean"], theirs["action"])


@needs_base
def test_the_mean_of_a_squashed_action_has_the_bits_of_the_kernel(tmp_path):
    policy, obs = shaken(ROW, REACH, squash=True), rows(200, 5)
    ours, theirs = answers(compiled(policy, tmp_path), obs=obs), by_kernel(policy, obs, None)
    np.testing.assert_array_equal(ours["mean"], theirs["action"])
    # The kernel takes tanh from the C library here.
    np.testing.assert_allclose(ours["action"], theirs["env_action"], rtol=0, atol=5e-7)


@needs_base
@pytest.mark.parametrize("net", [{"hidden": ()}, {"hidden": (5, 9)}, {"shared": True}, {"critic_hidden": (9,)}])
def test_networks_of_every_shape_have_the_bits_of_the_kernel(net, tmp_path):
    policy, obs = shaken({"obs": Box((390,))}, REACH, **net), rows(30, 390)  # more than the 384 of a block
    ours, theirs = answers(compiled(policy, tmp_path), obs=obs), by_kernel(policy, obs, None)
    np.testing.assert_array_equal(ours["mean"], theirs["action"])
    np.testing.assert_array_equal(ours["value"], theirs["value"])


@needs_base
def test_probabilities_are_the_softmax_of_the_kernel(tmp_path):
    choices = answers(compiled(shaken(ROW, Discrete(3)), tmp_path), obs=rows(50, 5))
    twin = ActorCritic(ROW, Box((3,)), NetConfig(hidden=(12, 7)))
    twin.load_state_dict({**twin.state_dict(), **shaken(ROW, Discrete(3)).state_dict()})
    logits = by_kernel(twin, rows(50, 5), None)["action"]
    distance, e = logits - logits.max(axis=1, keepdims=True), np.zeros((50, 3), np.float32)
    native.kernel.function("base", 1, 150, distance, e)
    total = (e[:, 0] + e[:, 1]) + e[:, 2]
    np.testing.assert_array_equal(choices["probs"], e * (np.float32(1.0) / total)[:, None])


@needs_base
@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_a_memory_has_the_bits_of_the_kernel(kind, tmp_path):
    policy = shaken(ROW, Discrete(3), memory=kind, memory_size=6)
    memory, obs = policy.network.memory, rows(40, 5)
    before = rows(40, memory.carried)
    ours = answers(compiled(policy, tmp_path), obs=obs, memory=before)
    inner, onward = memory.inward, memory.onward
    hidden, carried = np.zeros((40, 6), np.float32), np.zeros_like(before)
    weights = [x.detach().numpy() for x in (inner.weight, inner.bias, onward.weight, onward.bias)]
    for k in range(40):  # one stream: with more the kernel may use other products
        native.kernel.scan_step(
            instruction_set="base", gates_per_unit=3 if kind == "gru" else 4, streams=1, size=6, start=None, inputs=5,
            x=obs[k], weight_in=weights[0], bias_in=weights[1], carry=before[k], weight=weights[2], bias=weights[3],
            hidden=hidden[k], carried=carried[k],
        )  # fmt: skip
    np.testing.assert_array_equal(ours["memory_out"], carried)


@pytest.mark.parametrize(
    ("kind", "activation"),
    [*((kind, "tanh") for kind in HEADS), *(("hybrid beta", name) for name in ACTIVATIONS if name != "tanh")],
)
def test_every_head_and_activation_gives_the_answers_of_torch(kind, activation, tmp_path):
    action, more = HEADS[kind]
    policy, obs = shaken(ROW, action, activation=activation, **more), rows(60, 5)
    mask = some_mask(60, policy.choices()) if policy.choices() else None
    header = compiled(policy, tmp_path, masks=mask is not None)
    ours = answers(header, obs=obs, **({} if mask is None else {"action_mask": mask}))
    inputs = PolicyInput(
        obs={"obs": torch.from_numpy(obs)}, action_mask=None if mask is None else torch.from_numpy(mask)
    )
    with torch.no_grad():
        theirs = policy.act(inputs, generator=torch.Generator(), deterministic=True)
    expected = {"action": policy.env_action(theirs.action.numpy()), "value": theirs.value.numpy()}
    expected |= {name: x.numpy() for name, x in theirs.action_params.items()}
    assert set(expected) == set(ours)
    for name, value in expected.items():
        np.testing.assert_allclose(ours[name], value, rtol=2e-5, atol=5e-6, err_msg=name)


def test_parts_of_a_dict_and_bytes_are_read_in_the_order_of_their_names(tmp_path):
    observation = {"z": Box((2,)), "a.b": Box((), 0, 255, "uint8"), "int": Box((2, 2))}
    policy = shaken(observation, REACH, normalize_obs=True)
    rng = np.random.default_rng(3)
    obs = {"z": rows(9, 2), "a.b": rng.integers(0, 256, 9, dtype=np.uint8), "int": rows(9, 4).reshape(9, 2, 2)}
    ours = answers(compiled(policy, tmp_path), **obs)
    with torch.no_grad():
        value = policy.value(PolicyInput(obs={name: torch.from_numpy(x) for name, x in obs.items()}))
    np.testing.assert_allclose(ours["value"], value.numpy(), rtol=1e-5)


@pytest.mark.parametrize("options", [(), ("-DPOLICY_NO_VALUE",), ("-std=gnu11", "-O0")], ids=str)
@pytest.mark.parametrize("net", [{}, {"memory": "gru", "memory_size": 4}, {"shared": True}, {"critic_only": ("z",)}])
def test_headers_compile_without_a_warning(net, options, tmp_path):
    observation = {"obs": Box((3,)), "z": Box((2,))}
    header = c_header(shaken(observation, Hybrid((3, 2), REACH), hidden=(4,), **net), masks=True)
    (tmp_path / "policy.h").write_text(f"#include <stdint.h>\n{header.code}")
    (tmp_path / "main.c").write_text('#include "policy.h"\nint main(void) { return sizeof(policy_output) == 1; }\n')
    strict = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    subprocess.run(["cc", *strict, *options, "-fsyntax-only", tmp_path / "main.c"], check=True)


FUNCTIONS = {0: "tanh", 1: "exp", 2: "expm1", 3: "log", 5: "sigmoid", 9: "normal_below", 10: "softplus"}
BY_DEFINITION = {
    "softplus": lambda x: math.log1p(math.exp(x)),
    "normal_below": lambda x: 0.5 * math.erfc(-x / math.sqrt(2.0)),
}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    place = tmp_path_factory.mktemp("functions")
    runtime = resources.files("surefoot.nets").joinpath("c_runtime.h").read_text("utf-8")
    loops = "\n".join(
        f"void {name}_all(int n, const float *x, float *y) {{ for (int i = 0; i < n; i++) y[i] = policy_{name}(x[i]); }}"
        for name in {*FUNCTIONS.values(), *BY_DEFINITION}
    )
    (place / "all.c").write_text(f"#include <stdint.h>\n{runtime}\n{loops}\n")
    return ctypes.CDLL(str(compile_library(place / "all.c")[1]))


def called(library: ctypes.CDLL, name: str, x: np.ndarray) -> np.ndarray:
    y = np.zeros_like(x)
    library[f"{name}_all"](len(x), ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data))
    return y


def arguments() -> np.ndarray:
    edges = [0.0, -0.0, 1.0, -1.0, 8.0, -8.0, 88.0, 100.0, -87.0, -100.0, 1e-30, math.inf, -math.inf, math.nan]
    return np.array([*edges, *np.random.default_rng(0).normal(0.0, 4.0, 4000)], np.float32)


@needs_base
@pytest.mark.parametrize("which", FUNCTIONS)
def test_functions_have_the_bits_of_the_kernel(library, which):
    x = np.abs(arguments()) + np.float32(1e-30) if FUNCTIONS[which] == "log" else arguments()
    expected = np.zeros_like(x)
    native.kernel.function("base", which, len(x), x, expected)
    np.testing.assert_array_equal(called(library, FUNCTIONS[which], x), expected)


@pytest.mark.parametrize("name", BY_DEFINITION)
def test_other_functions_are_accurate(library, name):
    x = np.linspace(-30.0, 30.0, 5001).astype(np.float32)
    expected = np.array([BY_DEFINITION[name](float(v)) for v in x])
    np.testing.assert_allclose(called(library, name, x), expected, rtol=4e-7, atol=1e-7)


@pytest.mark.parametrize(
    ("policy", "options", "sentence"),
    [
        (lambda: ActorCritic({"screen": Box((36, 36), 0, 255, "uint8")}, REACH), {}, "convolutional layers"),
        (lambda: ActorCritic({"a.b": Box((1,)), "a-b": Box((1,))}, REACH), {}, "same name in C"),
        (lambda: ActorCritic(ROW, REACH, torso=OwnTorso()), {}, "your own network"),
        (lambda: shaken(ROW, REACH), {"masks": True}, "only discrete actions"),
        (lambda: shaken(ROW, REACH), {"name": "a-b"}, "cannot be a prefix"),
    ],
)
def test_what_cannot_be_written_is_named(policy, options, sentence):
    with pytest.raises(PolicyError, match=sentence):
        c_header(policy(), **options)


def test_changed_layers_are_named_and_weights_that_are_not_finite_too():
    policy = shaken(ROW, REACH)
    policy.network.actor[1] = nn.ELU(alpha=2.0)
    with pytest.raises(PolicyError, match=r"ELU\(alpha=2.0\) is not supported"):
        c_header(policy)
    policy = shaken(ROW, REACH)
    with torch.no_grad():
        policy.network.value_out.bias.fill_(math.nan)
    with pytest.raises(PolicyError, match="value_out_bias has values that are not finite"):
        c_header(policy)
