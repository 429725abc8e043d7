"""A zip that Stable-Baselines3 wrote, in the form of our saved models. Pickles in it are not run.

Read are the weights, the settings that are plain numbers, and the spaces as far as their texts are complete. The optimizer starts
fresh, and a schedule that is a function is not read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces

from surefoot.compat.sb3.files.model_files import to_json
from surefoot.train.interop.sb3_import import read_sb3
from surefoot.train.predict import space_to_tree

_NUMBERS = re.compile(r"[-+]?(?:inf|\d+\.?\d*(?:e[-+]?\d+)?)")
# SB3 writes a class with the texts of its methods, and `__init__` has its name.
_CLASS = re.compile(r"<function (\w+)\.__init__ at")
_ALIASES = {
    "ActorCriticPolicy": "MlpPolicy",
    "ActorCriticCnnPolicy": "CnnPolicy",
    "MultiInputActorCriticPolicy": "MultiInputPolicy",
    "MaskableActorCriticPolicy": "MlpPolicy",
    "MaskableActorCriticCnnPolicy": "CnnPolicy",
    "MaskableMultiInputActorCriticPolicy": "MultiInputPolicy",
    "RecurrentActorCriticPolicy": "MlpLstmPolicy",
    "RecurrentActorCriticCnnPolicy": "CnnLstmPolicy",
    "RecurrentMultiInputActorCriticPolicy": "MultiInputLstmPolicy",
}
DEFAULTS: dict[str, float | None] = {"learning_rate": 3e-4, "clip_range": 0.2, "clip_range_vf": None}
_PLAIN = ("use_sde", "sde_sample_freq", "verbose", "tensorboard_log", "target_kl")


def from_sb3(path: Path) -> dict[str, Any]:
    """Return the tree of a model as `read_zip` does."""
    model = read_sb3(path)
    described = model.data
    settings = {
        **model.settings,
        **{n: described[n] for n in _PLAIN if isinstance(described.get(n), int | float | str)},
    }
    settings.pop("n_envs", None)
    # Functions are not read: `load` warns about the defaults that are used instead.
    settings |= {name: DEFAULTS[name] for name in model.left_out}
    tensors = {name: torch.from_numpy(np.array(x)) for name, x in model.tensors.items()}
    kwargs = _policy_kwargs(described.get("policy_kwargs") or {}, tensors)
    name = _CLASS.search(str((described.get("policy_class") or {}).get("__init__", "")))
    tree = {
        "left_out": model.left_out,
        "settings": {**settings, "policy_kwargs": to_json("policy_kwargs", kwargs)},
        "policy_class": _ALIASES.get(name[1], {"lost": name[1]}) if name else "MlpPolicy",
        "counters": {key: int(described.get(key) or 0) for key in ("num_timesteps", "_n_updates")},
        "n_envs": int(described.get("n_envs") or 1),
        **{key: _space(described.get(key) or {}) for key in ("observation_space", "action_space")},
    }
    # Before 1.7 the extractor was stored once; both branches have it now.
    for key in [key for key in tensors if key.startswith("features_extractor.")]:
        for side in ("pi_", "vf_"):
            tensors.setdefault(side + key, tensors[key])
    return {**tree, "policy": tensors, "optimizer": {}}


def _policy_kwargs(described: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    """Return the arguments of the policy; classes are written as texts, of which torch's are known."""
    kwargs: dict[str, Any] = {}
    for name, value in described.items():
        if name.startswith(":"):
            continue
        if isinstance(value, str) and (match := re.fullmatch(r"<class 'torch\.(nn|optim)\.[\w.]*?(\w+)'>", value)):
            value = getattr(getattr(torch, match[1]), match[2], value)
        kwargs[name] = value
    widths = {side: _widths(tensors, side) for side in ("policy", "value")}
    if isinstance(kwargs.get("net_arch"), str) or any(widths.values()):
        kwargs["net_arch"] = {"pi": widths["policy"], "vf": widths["value"]}
    return kwargs


def _widths(tensors: Mapping[str, torch.Tensor], side: str) -> list[int]:
    pattern = re.compile(rf"mlp_extractor\.{side}_net\.(\d+)\.weight")
    layers = {
        int(match[1]): len(x) for name, x in tensors.items() if (match := pattern.fullmatch(name)) and x.ndim == 2
    }
    return [layers[i] for i in sorted(layers)]


def _space(described: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a space as JSON; None if its text is not complete, as for Dict and for bounds that numpy abbreviated."""
    kind = str(described.get(":type:", "")).rpartition(".")[2].rstrip("'>")
    shape = tuple(described.get("_shape") or ())
    if kind == "Discrete":
        return space_to_tree(spaces.Discrete(int(described["n"]), start=int(described.get("start", 0))))
    if kind == "MultiDiscrete":
        return space_to_tree(spaces.MultiDiscrete([int(n) for n in _NUMBERS.findall(str(described["nvec"]))]))
    if kind == "MultiBinary":
        return space_to_tree(spaces.MultiBinary(shape[0] if len(shape) == 1 else list(shape)))
    if kind != "Box":
        return None
    dtype: Any = np.dtype(str(described.get("dtype", "float32"))).type
    if dtype is np.uint8:
        return space_to_tree(spaces.Box(0, 255, shape, dtype))
    bounds: list[np.ndarray] = []
    for name in ("low", "high"):
        text = str(described.get(name, ""))
        numbers = [float(x) for x in _NUMBERS.findall(text)]
        if "..." in text or len(numbers) != math.prod(shape):
            return None
        bounds.append(np.array(numbers, dtype).reshape(shape))
    return space_to_tree(spaces.Box(bounds[0], bounds[1], dtype=dtype))
