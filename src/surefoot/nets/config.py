"""The shape of a policy: layers, activation, noise, memory, normalisation. No torch import."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from surefoot.data.kinds import (
    POSITIVE,
    Interval,
    as_list,
    as_mapping,
    choice,
    flag,
    integer,
    literal,
    optional,
    real,
    sizes,
    whole_number,
    words,
)
from surefoot.data.knobs import Config, Vocabulary, documented, knob, vocabulary_of
from surefoot.errors import ConfigError

CNNS = ("auto", "nature", "small", "off")
MEMORIES = ("none", "gru", "lstm")
ACTIVATIONS = ("tanh", "relu", "elu", "silu", "gelu", "leaky_relu")


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class NetConfig(Config):
    """The architecture of a policy and its critic. The defaults are SB3's MlpPolicy."""

    hidden: tuple[int, ...] = knob(
        (64, 64),
        "Widths of the policy's hidden layers, input side first, such as 64,64. An empty list is a linear policy.",
        sizes(),
        names=("hidden_sizes", "units"),
    )
    critic_hidden: tuple[int, ...] | None = knob(
        None, "Widths of the critic's hidden layers; none uses the policy's.", optional(sizes())
    )
    activation: str = knob(
        "tanh",
        "Activation after each hidden layer. tanh is a safe choice for small control tasks.",
        choice(*ACTIVATIONS),
    )
    shared: bool = knob(
        False,
        "Share one trunk between policy and critic. Saves time on images; with small observations separate nets learn better.",
        flag(),
    )
    ortho_init: bool = knob(
        True,
        "Orthogonal initial weights: gain √2 in hidden layers, 0.01 at the policy's head, 1 at the critic's. "
        "False uses torch's default.",
        flag(),
    )
    log_std_init: float = knob(
        0.0,
        "Initial log of the standard deviation of a continuous policy; 0 is a deviation of 1, -2 of 0.14.",
        real(Interval(-20, 2)),
        names=("init_log_std",),
    )
    squash: bool = knob(
        False,
        "Squash bounded continuous actions by tanh, with corrected log-probs, instead of clipping them.",
        flag(),
        names=("squash_output",),
    )
    gsde: bool = knob(
        False,
        "State-dependent exploration (gSDE): the noise is a function of the state that is redrawn every few steps, "
        "which gives smooth motion. Continuous actions only.",
        flag(),
        names=("use_sde",),
    )
    gsde_every: int = knob(
        -1,
        "Steps after which gsde draws a new noise matrix; -1 draws once per rollout.",
        integer(Interval(-1)),
        names=("sde_sample_freq",),
    )
    beta: bool = knob(
        False,
        "Draw bounded continuous actions from Beta distributions, which have no mass outside the bounds, "
        "instead of clipped normals.",
        flag(),
    )
    memory: str = knob(
        "none",
        "Recurrent layer between torso and hidden layers: gru or lstm, for partially observed environments. Policy and "
        "critic have one each, unless shared.",
        choice(*MEMORIES),
    )
    memory_size: int = knob(
        64, "Width of the memory's hidden state.", integer(Interval(1)), names=("lstm_hidden_size", "rnn_hidden_size")
    )
    cnn: str = knob(
        "auto",
        "Layers for images: nature (Mnih et al. 2015; sides of 36 or more), small (two 3x3 layers; sides of 8 or more), "
        "auto for the first that fits, off to flatten them.",
        choice(*CNNS),
    )
    cnn_features: int | None = knob(
        None,
        "Features per image after the convolutional layers; none is 512 for nature and 128 for small.",
        optional(integer(Interval(1))),
        names=("features_dim",),
    )
    critic_only: tuple[str, ...] = knob(
        (),
        "Observation parts for the critic only: the full state for a central critic (MAPPO), or values that a simulator "
        "knows and a robot does not.",
        words(),
    )
    normalize_obs: bool = knob(
        False,
        "Standardise observations by running mean and deviation. The statistics are saved with the policy.",
        flag(),
        names=("norm_obs", "normalize_input", "normalize_observations"),
    )
    obs_clip: float = knob(
        10.0, "Clip standardised observations to ± this many deviations.", real(POSITIVE), names=("clip_obs",)
    )
    allow_stateful_norm: bool = knob(
        False,
        "Allow BatchNorm and Dropout in your own network. They make the policy that learns differ from the one that acted, "
        "which breaks PPO's ratio.",
        flag(),
    )

    def check(self) -> None:
        """Raise `ConfigError` if settings contradict each other."""
        if self.shared and self.critic_hidden is not None:
            raise ConfigError(
                f"critic_hidden is {self.critic_hidden} and shared is True; a shared trunk has one shape: drop one of them"
            )
        if self.shared and self.critic_only:
            raise ConfigError(
                f"critic_only is {self.critic_only} and shared is True; a shared trunk has no part for the critic only: drop one"
            )
        noises = [name for name in ("squash", "gsde", "beta") if getattr(self, name)]
        if len(noises) > 1:
            raise ConfigError(f"{noises[0]}=True and {noises[1]}=True cannot be combined: choose one")
        if self.gsde_every == 0:
            raise ConfigError("gsde_every is 0; it must be -1 (once per rollout) or at least 1")

    @classmethod
    def vocabulary(cls) -> Vocabulary:
        """Return the names of the settings, including those of other libraries."""
        return NET_NAMES


def _net_arch(value: Any) -> dict[str, Any]:
    """Read SB3's net_arch: [64, 64], dict(pi=[64], vf=[256]), the older [dict(pi=…, vf=…)], or text of one of them."""
    arch = literal(value) if isinstance(value, str) else value
    layers = as_list(arch) or []
    split = as_mapping(layers[0] if len(layers) == 1 else arch)
    if split is not None and set(split) == {"pi", "vf"}:
        hidden, critic = _widths(split["pi"]), _widths(split["vf"])
        return {"hidden": hidden, "critic_hidden": None if critic == hidden else critic}
    return {"hidden": _widths(arch), "critic_hidden": None}


def _widths(value: Any) -> tuple[int, ...]:
    parts = as_list(value)
    try:
        return tuple(whole_number(part) for part in ([value] if parts is None else parts))
    except (TypeError, ValueError):
        raise ConfigError(
            f"net_arch has {value!r}; write [64, 64] or dict(pi=[64, 64], vf=[64, 64]); "
            "layers that are shared first and split later are not supported"
        ) from None


def _activation_fn(value: Any) -> dict[str, Any]:
    """Read SB3's activation_fn: a class such as nn.ReLU, or its name."""
    name = value if isinstance(value, str) else getattr(value, "__name__", repr(value))
    word = name.rpartition(".")[2].lower()
    return {"activation": "leaky_relu" if word == "leakyrelu" else word}


def _hidden_dim(value: Any) -> dict[str, Any]:
    """Return the layers that one width h stands for: h, h and h/2."""
    widths = _widths(literal(value) if isinstance(value, str) else value)
    if len(widths) != 1 or widths[0] < 2:
        raise ConfigError(f"hidden_dim is {value!r}; it must be one whole number, at least 2")
    return {"hidden": (widths[0], widths[0], widths[0] // 2)}


_LSTM: dict[str, Any] = {"memory": "lstm", "memory_size": 256}
_CNN: dict[str, Any] = {"shared": True, "hidden": ()}
POLICIES: dict[str, dict[str, Any]] = {
    "MlpPolicy": {},
    "CnnPolicy": _CNN,
    "MultiInputPolicy": {},
    "MlpLstmPolicy": _LSTM,
    "CnnLstmPolicy": _CNN | _LSTM,
    "MultiInputLstmPolicy": _LSTM,
    "MlpGruPolicy": {"memory": "gru"},
}
"""The settings that policy names of SB3 and sb3-contrib (and `MlpGruPolicy`) stand for; explicit settings override them."""

_FROM_SPACES = "it follows from the spaces of the env"
_OWN_TORSO = "pass your own torso to the policy instead"
NET_HINTS = {
    "input_dim": _FROM_SPACES,
    "input_size": _FROM_SPACES,
    "action_dim": _FROM_SPACES,
    "output_size": _FROM_SPACES,
    "action_space": _FROM_SPACES,
    "features_extractor_class": _OWN_TORSO,
    "features_extractor_kwargs": _OWN_TORSO,
}
NET_NAMES = dataclasses.replace(
    vocabulary_of(NetConfig),
    meanings={"net_arch": _net_arch, "activation_fn": _activation_fn, "hidden_dim": _hidden_dim},
    hints=NET_HINTS,
)
