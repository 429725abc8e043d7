"""Named sets of settings: general ones, and those tuned for a family of worlds."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib import import_module
from typing import Any

from surefoot.errors import ConfigError
from surefoot.learn.schedule import Linear


def _nothing() -> dict[str, Any]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """Values for the three configs, by their canonical names; a setting that is not listed keeps its default."""

    name: str
    summary: str
    ppo: dict[str, Any] = field(default_factory=_nothing)
    net: dict[str, Any] = field(default_factory=_nothing)
    collect: dict[str, Any] = field(default_factory=_nothing)
    total_steps: int | None = None
    """Env steps to train for by default; None: the preset does not say."""


# What the guidelines (stable, fast, …) have in common.
_GUIDELINE: dict[str, Any] = {
    "steps": 2048,
    "epochs": 10,
    "minibatch_size": 64,
    "lr": 3e-4,
    "gamma": 0.99,
    "lam": 0.95,
    "clip": 0.2,
    "vf_coef": 0.5,
    "ent_coef": 0.01,
    "max_grad_norm": 0.5,
}

# The zoo's MuJoCo nets: no orthogonal weights, little noise, wide and ReLU.
_WIDE: dict[str, Any] = {
    "hidden": (256, 256),
    "activation": "relu",
    "log_std_init": -2.0,
    "ortho_init": False,
    "normalize_obs": True,
}
_NORMALIZED: dict[str, Any] = {"normalize_obs": True}
_SCALED: dict[str, Any] = {"normalize_reward": True}

_GENERAL = (
    Preset(name="sb3", summary="Stable-Baselines3's defaults, which are also PPOConfig's."),
    Preset(name="stable", summary="Long rollouts, 10 epochs, clip 0.2.", ppo={**_GUIDELINE}),
    Preset(
        name="fast",
        summary="Aggressive: short rollouts, 15 epochs, wide clip, higher learning rate.",
        ppo={**_GUIDELINE, "steps": 512, "epochs": 15, "clip": 0.3, "lr": 5e-4},
    ),
    Preset(
        name="sample-efficient",
        summary="Conservative: twice the data, half the epochs, narrow clip, large minibatches.",
        ppo={**_GUIDELINE, "steps": 4096, "epochs": 5, "clip": 0.1, "minibatch_size": 256},
    ),
    Preset(
        name="robotics",
        summary="For robots: 16 steps and 4 epochs, meant for many envs (set envs to 64 or more).",
        ppo={**_GUIDELINE, "steps": 16, "epochs": 4, "gamma": 0.99, "clip": 0.2},
    ),
    Preset(
        name="atari",
        summary="For Atari games: 128 steps, 4 epochs, a full-weight value loss.",
        ppo={**_GUIDELINE, "steps": 128, "epochs": 4, "ent_coef": 0.01, "vf_coef": 1.0},
    ),
)

# Begun from RL Zoo's published settings; those of make bench-learning were then tuned here. The tests hold only their form.
_TUNED = (
    Preset(
        name="cartpole",
        summary="CartPole: short rollouts of 8 envs, one minibatch, learning rate and clip fall to 0.",
        ppo={"envs": 8, "steps": 32, "minibatch_size": 256, "epochs": 20, "lam": 0.8, "gamma": 0.98}
        | {"lr": Linear(1e-3), "clip": Linear(0.2)},
        total_steps=100_000,
    ),
    Preset(
        name="cartpole-no-velocity",
        summary="CartPole without its velocities: a GRU remembers; standardised observations and scaled rewards.",
        ppo={"envs": 8, "steps": 32, "minibatch_size": 256, "epochs": 20, "lam": 0.8, "gamma": 0.98}
        | {"lr": Linear(1e-3), "clip": Linear(0.2)},
        net={"hidden": (64,), "memory": "gru", "memory_size": 64} | _NORMALIZED,
        collect=_SCALED,
        total_steps=200_000,
    ),
    Preset(
        name="cartpole-continuous",
        summary="Isaac's Cartpole: many envs, short rollouts, a small ELU net.",
        ppo={"envs": 64, "steps": 16, "minibatch_size": 256, "epochs": 8, "max_grad_norm": 1.0},
        net={"hidden": (32, 32), "activation": "elu"} | _NORMALIZED,
        total_steps=500_000,
    ),
    Preset(
        name="acrobot",
        summary="Acrobot: 16 envs, 4 epochs, standardised observations and scaled rewards.",
        ppo={"envs": 16, "steps": 256, "epochs": 4, "lam": 0.94},
        net=_NORMALIZED,
        collect=_SCALED,
        total_steps=300_000,
    ),
    Preset(
        name="pendulum",
        summary="Pendulum: a short horizon (gamma 0.95) and smooth noise.",
        ppo={"envs": 8, "steps": 256, "epochs": 10, "gamma": 0.95, "lr": Linear(1e-3)},
        net={"gsde": True, "gsde_every": 4},
        total_steps=150_000,
    ),
    Preset(
        name="mountain-car",
        summary="MountainCar: 16 envs, standardised observations and scaled rewards.",
        ppo={"envs": 16, "steps": 16, "epochs": 4, "lam": 0.98},
        net=_NORMALIZED,
        collect=_SCALED,
        total_steps=1_000_000,
    ),
    Preset(
        name="mountain-car-continuous",
        summary="MountainCarContinuous: noise that is kept for a whole rollout finds the hill, a long horizon keeps it.",
        ppo={"envs": 8, "steps": 256, "minibatch_size": 128, "epochs": 10, "gamma": 0.9999, "lr": Linear(1e-3)},
        net={"gsde": True, "log_std_init": -0.5} | _NORMALIZED,
        collect=_SCALED,
        total_steps=100_000,
    ),
    Preset(
        name="lunar-lander",
        summary="LunarLander, both kinds of action: 16 envs, a long horizon, an entropy bonus.",
        ppo={
            "envs": 16,
            "steps": 1024,
            "minibatch_size": 64,
            "epochs": 4,
            "gamma": 0.999,
            "lam": 0.98,
            "ent_coef": 0.01,
        },
        total_steps=1_000_000,
    ),
    Preset(
        name="bipedal-walker",
        summary="BipedalWalker: 32 envs and long rollouts.",
        ppo={"envs": 32, "steps": 2048, "minibatch_size": 64, "epochs": 10, "gamma": 0.999, "clip": 0.18},
        net=_NORMALIZED,
        collect=_SCALED,
        total_steps=5_000_000,
    ),
    Preset(
        name="ale",
        summary="Atari games: 8 envs of 128 steps, one shared net, everything falls to 0; rewards count by their sign.",
        ppo={"envs": 8, "steps": 128, "minibatch_size": 256, "epochs": 4, "ent_coef": 0.01}
        | {"lr": Linear(2.5e-4), "clip": Linear(0.1)},
        net={"shared": True, "hidden": (512,), "activation": "relu"},
        # Points are whole numbers, so to clip them at ±1 is to take their sign (A6); what is reported stays raw.
        collect={"reward_range": (-1.0, 1.0)},
        total_steps=10_000_000,
    ),
    Preset(
        name="mujoco",
        summary="MuJoCo bodies: 4 envs of 512 steps, standardised observations, scaled rewards, moderate first noise.",
        ppo={"envs": 4, "steps": 512, "minibatch_size": 64, "epochs": 10, "lr": Linear(3e-4)},
        net={"log_std_init": -0.5} | _NORMALIZED,
        collect=_SCALED,
        total_steps=1_000_000,
    ),
    Preset(
        name="swimmer",
        summary="Swimmer: as mujoco, with a horizon of 10,000 steps.",
        ppo={"gamma": 0.9999},
        net=_NORMALIZED,
        collect=_SCALED,
        total_steps=1_000_000,
    ),
    Preset(
        name="humanoid",
        summary="Humanoid: a wide net, a short horizon, long training.",
        ppo={"steps": 512, "minibatch_size": 256, "epochs": 5, "gamma": 0.95, "lam": 0.9, "clip": 0.3}
        | {"lr": 3.56987e-5, "ent_coef": 0.00238306, "vf_coef": 0.431892, "max_grad_norm": 2.0},
        net=_WIDE,
        collect=_SCALED,
        total_steps=10_000_000,
    ),
    Preset(
        name="reacher",
        summary="Reacher: the next ten steps are what counts.",
        ppo={"steps": 512, "minibatch_size": 32, "epochs": 5, "gamma": 0.9, "lam": 1.0, "clip": 0.3}
        | {"lr": 1.04019e-4, "ent_coef": 7.52585e-8, "vf_coef": 0.950368, "max_grad_norm": 0.9},
        net=_NORMALIZED,
        collect=_SCALED,
        total_steps=1_000_000,
    ),
    Preset(
        name="inverted-pendulum",
        summary="InvertedPendulum: very short rollouts, wide clip.",
        ppo={"steps": 32, "minibatch_size": 64, "epochs": 5, "gamma": 0.999, "lam": 0.9, "clip": 0.4}
        | {"lr": 2.22425e-4, "ent_coef": 1.37976e-7, "vf_coef": 0.19816, "max_grad_norm": 0.3},
        net=_NORMALIZED,
        collect=_SCALED,
        total_steps=1_000_000,
    ),
    Preset(
        name="inverted-double-pendulum",
        summary="InvertedDoublePendulum: short rollouts as one minibatch, wide clip.",
        ppo={"steps": 128, "minibatch_size": 512, "epochs": 10, "gamma": 0.98, "lam": 0.8, "clip": 0.4}
        | {"lr": 1.55454e-4, "ent_coef": 1.05057e-6, "vf_coef": 0.695929, "max_grad_norm": 0.5},
        net=_NORMALIZED,
        collect=_SCALED,
        total_steps=1_000_000,
    ),
    Preset(
        name="town",
        summary="Towns: many agents side by side, large minibatches, raw rewards so that samples can be replayed.",
        ppo={
            "envs": 192,
            "steps": 80,
            "minibatch_size": 2048,
            "epochs": 4,
            "gamma": 0.98,
            "lam": 0.95,
            "ent_coef": 0.01,
        }
        | {"lr": Linear(1e-3), "max_grad_norm": 0.5},
        total_steps=1_500_000,
    ),
    Preset(
        name="default-discrete",
        summary="A world we know nothing of, with choices: 8 envs of 256 steps, standardised observations.",
        ppo={"envs": 8, "steps": 256, "minibatch_size": 64, "ent_coef": 0.01},
        net=_NORMALIZED,
        total_steps=500_000,
    ),
    Preset(
        name="default-continuous",
        summary="A world we know nothing of, with real-valued actions: 8 envs of 256 steps, everything scaled.",
        ppo={"envs": 8, "steps": 256, "minibatch_size": 64},
        net=_NORMALIZED,
        collect=_SCALED,
        total_steps=1_000_000,
    ),
)

PRESETS: dict[str, Preset] = {entry.name: entry for entry in (*_GENERAL, *_TUNED)}

MORE = "surefoot.compat.presets"
"""A module with a tuple `PRESETS` of further presets. Imported by name when a name is not found here, so that this room
does not depend on `compat`."""

FAMILIES: tuple[tuple[str, str], ...] = (
    ("surefoot/CartPoleContinuous*", "cartpole-continuous"),
    ("surefoot/CartPoleNoVel*", "cartpole-no-velocity"),
    ("CartPole*", "cartpole"),
    ("Acrobot*", "acrobot"),
    ("Pendulum*", "pendulum"),
    ("MountainCarContinuous*", "mountain-car-continuous"),
    ("MountainCar-*", "mountain-car"),
    ("LunarLander*", "lunar-lander"),
    ("BipedalWalker*", "bipedal-walker"),
    ("ALE/*", "ale"),
    ("*NoFrameskip-v?", "ale"),
    ("HalfCheetah*", "mujoco"),
    ("Hopper*", "mujoco"),
    ("Walker2d*", "mujoco"),
    ("Swimmer*", "swimmer"),
    ("Humanoid*", "humanoid"),
    ("Reacher*", "reacher"),
    ("InvertedPendulum*", "inverted-pendulum"),
    ("InvertedDoublePendulum*", "inverted-double-pendulum"),
    ("Ant*", "mujoco"),
    ("Pusher*", "mujoco"),
    ("town/*", "town"),
    ("*", "default-discrete"),
)
"""(pattern of an env id, preset), the first that fits; the last becomes default-continuous for real-valued actions."""


def all_presets() -> dict[str, Preset]:
    """Return the presets of this module, then those of `MORE`."""
    return PRESETS | {entry.name: entry for entry in import_module(MORE).PRESETS}


def preset(name: str) -> Preset:
    """Return the preset of that name. Raise `ConfigError` if there is none."""
    if name in PRESETS:
        return PRESETS[name]
    presets = all_presets()
    if name not in presets:
        close = difflib.get_close_matches(name, presets, n=2)
        advice = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(presets)}"
        raise ConfigError(f"no preset is called {name!r}; {advice}")
    return presets[name]


def family_preset(env_id: str, *, continuous: bool = False) -> str:
    """Return the name of the preset for worlds like `env_id`; `continuous` decides for those of no family."""
    name = next(name for pattern, name in FAMILIES if fnmatchcase(env_id, pattern))
    return "default-continuous" if continuous and name == "default-discrete" else name
