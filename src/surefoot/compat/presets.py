"""Settings that the earlier systems shipped, as presets. `surefoot.learn.presets` finds them here."""

from __future__ import annotations

from typing import Any

from surefoot.learn.presets import Preset, preset
from surefoot.learn.schedule import StepDecay

# What four of the five systems agree on.
_COMMON: dict[str, Any] = {"gamma": 0.99, "lam": 0.95, "clip": 0.2, "epochs": 4, "vf_coef": 0.5}

PRESETS = (
    Preset(
        name="hololoom",
        # Its buffer holds 1000; it stops at KL > 0.01 itself, not at 1.5 times that.
        summary="HoloLoom's tool selection: 4 epochs, entropy bonus, stops at a divergence of 0.01.",
        ppo={
            **_COMMON,
            "lr": 3e-4,
            "minibatch_size": 64,
            "ent_coef": 0.01,
            "max_grad_norm": 0.5,
            "target_kl": 0.01,
            "kl_stop_factor": 1.0,
            "rollout_steps": 1000,
            "min_samples": 32,
        },
    ),
    Preset(
        name="townlet",
        summary="Townlet's town of agents: 100 ticks, clipped values, 4 minibatches of at most 32.",
        ppo={
            **_COMMON,
            "lr": 3e-4,
            "minibatch_size": 32,
            "minibatches": 4,
            "ent_coef": 0.01,
            "max_grad_norm": 0.5,
            "value_clip": 0.2,
            "normalize_advantage": "minibatch",
            "rollout_steps": 100,
        },
        net={"hidden": (256, 256), "activation": "relu", "shared": True},
    ),
    Preset(
        name="directive023",
        # Its documentation has Adam, its code AdamW and a StepLR; BatchNorm and Dropout are left out.
        summary="Directive-023's prompt mutation: AdamW, learning rate × 0.9 every 100 updates, clipped values.",
        ppo={
            **_COMMON,
            "lr": StepDecay(3e-4, every=100, factor=0.9),
            "optimizer": "adamw",
            "weight_decay": 0.01,
            "minibatch_size": 64,
            "ent_coef": 0.01,
            "max_grad_norm": 0.5,
            "value_clip": 0.2,
            "rollout_steps": 2048,
            "min_samples": 128,
        },
        net={"hidden": (256, 256, 128), "activation": "relu"},
    ),
    Preset(
        name="constitutional",
        # The trainer's table; its pipeline class has 0.02 for kl_coef.
        summary="Constitutional AI's language models: small steps, small batches, tied to a reference policy.",
        ppo={**_COMMON, "lr": 1e-5, "minibatch_size": 4, "kl_coef": 0.1, "max_grad_norm": 1.0},
    ),
    Preset(
        name="dnne",
        # The table of its documentation; the node in its code has horizon 16, 4 epochs, minibatch 32.
        summary="DNNE's PPO nodes as documented: the trainer's table and a shared 64x64 ELU network.",
        ppo={**preset("stable").ppo},
        net={"hidden": (64, 64), "activation": "elu", "shared": True},
    ),
)
