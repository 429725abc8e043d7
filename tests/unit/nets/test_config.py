"""NetConfig and other libraries' words for it."""

from __future__ import annotations

from typing import Any

import pytest

from surefoot.errors import ConfigError
from surefoot.nets.config import NET_NAMES, NetConfig


class ReLU:
    """Stands for torch's class of the same name; only the name is read."""


class LeakyReLU:
    """As above."""


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ({"net_arch": [128, 64]}, {"hidden": (128, 64)}),
        ({"net_arch": {"pi": [64], "vf": [256, 256]}}, {"hidden": (64,), "critic_hidden": (256, 256)}),
        ({"net_arch": [{"pi": [256, 256], "vf": [256, 256]}]}, {"hidden": (256, 256)}),
        ({"net_arch": "dict(pi=[32], vf=[64])"}, {"hidden": (32,), "critic_hidden": (64,)}),
        ({"net_arch": []}, {"hidden": ()}),
        ({"hidden_sizes": "64,32"}, {"hidden": (64, 32)}),
        ({"hidden_sizes": "[64, 32]"}, {"hidden": (64, 32)}),
        ({"hidden": [8]}, {"hidden": (8,)}),
        ({"hidden_dim": 256}, {"hidden": (256, 256, 128)}),
        ({"hidden_dim": "256"}, {"hidden": (256, 256, 128)}),
        ({"activation_fn": ReLU}, {"activation": "relu"}),
        ({"activation_fn": LeakyReLU}, {"activation": "leaky_relu"}),
        ({"activation_fn": "nn.SiLU"}, {"activation": "silu"}),
        ({"use_sde": True, "sde_sample_freq": 4}, {"gsde": True, "gsde_every": 4}),
        ({"squash_output": True}, {"squash": True}),
        ({"init_log_std": -1}, {"log_std_init": -1.0}),
        ({"normalize_input": "true"}, {"normalize_obs": True}),
    ],
)
def test_other_words_make_the_same_network(said: dict[str, Any], meant: dict[str, Any]):
    assert NetConfig.make(**said) == NetConfig(**meant)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"net_arch": [64, {"pi": [64]}]}, "shared first and split later"),
        ({"net_arch": {"pi": [64], "qf": [64]}}, "net_arch has"),
        ({"net_arch": "[64"}, "cannot read"),
        ({"net_arch": "__import__('os')"}, "cannot read"),
        ({"net_arch": [64], "hidden": [64]}, "net_arch and hidden both set hidden"),
        ({"hidden": [64, 0]}, "hidden is .*each at least 1"),
        ({"hidden": "64,x"}, "hidden is '64,x'"),
        ({"hidden_dim": 1}, "hidden_dim is 1"),
        ({"activation_fn": "Softmax"}, "activation is 'softmax'; it must be one of tanh, relu"),
        ({"gsde_every": 0}, "gsde_every is 0"),
        ({"gsde_every": -2}, "gsde_every is -2"),
        ({"log_std_init": 3.0}, "log_std_init is 3.0"),
        ({"shared": True, "critic_hidden": [64]}, "a shared trunk has one shape"),
        ({"shared": 1}, "shared is 1; it must be true or false"),
        ({"obs_clip": 0}, "obs_clip is 0"),
        ({"input_dim": 4}, "input_dim is not accepted: it follows from the spaces"),
        ({"hiden": [64]}, "did you mean hidden"),
    ],
)
def test_what_cannot_work_is_refused(said: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=message):
        NetConfig.make(**said)


def test_the_defaults_are_sb3s_mlp():
    net = NetConfig()
    assert (net.hidden, net.critic_hidden, net.activation, net.shared) == ((64, 64), None, "tanh", False)
    assert (net.ortho_init, net.log_std_init, net.normalize_obs) == (True, 0.0, False)


def test_every_knob_is_described_and_named():
    rows = NetConfig.describe()
    assert {row["name"] for row in rows} == set(NET_NAMES.knobs)
    assert all(row["help"].endswith(".") for row in rows)


def test_replace_takes_aliases():
    assert NetConfig().replace(use_sde=True).gsde is True
