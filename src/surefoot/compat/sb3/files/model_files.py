"""Saved models: a zip of JSON and safetensors, without pickle."""

from __future__ import annotations

import io
import json
import os
import sys
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from surefoot.compat.sb3.functions import ConstantSchedule, FloatSchedule, LinearSchedule, TableSchedule
from surefoot.compat.sb3.policies import layers

FORMAT = "surefoot.sb3.model"
LONE = ":observation"
"""Name of the last observations if they are one array."""
SCHEDULES = ("learning_rate", "clip_range", "clip_range_vf")
_MODULES = {"nn": torch.nn, "optim": torch.optim, "layers": layers}


def find_zip(path: Any) -> Any:
    """Return the file that a path of a saved model means: itself, or with ".zip" added."""
    if hasattr(path, "read"):
        return path
    for candidate in (Path(f"{path}.zip"), Path(path)):
        if candidate.is_file():
            return candidate
    raise FileNotFoundError(f"there is no saved model at {path} or {path}.zip")


def write_zip(path: Any, data: Mapping[str, Any], tensors: Mapping[str, Mapping[str, torch.Tensor]]) -> None:
    """Write a model to a path (".zip" is added) or a file object; a file is replaced when it is complete."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("data.json", json.dumps({"format": FORMAT, **data}))
        for name, group in tensors.items():
            copies = {key: x.detach().cpu().contiguous().clone() for key, x in group.items()}
            archive.writestr(f"{name}.safetensors", save_tensors(copies))
    if hasattr(path, "write"):
        path.write(buffer.getvalue())
        return
    target = Path(path) if Path(path).suffix else Path(f"{path}.zip")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    part.write_bytes(buffer.getvalue())
    os.replace(part, target)


def read_zip(path: Any) -> tuple[dict[str, Any], dict[str, dict[str, torch.Tensor]]]:
    """Return (data, {group: tensors}) of a saved model, ours or one that Stable-Baselines3 wrote."""
    file = find_zip(path)
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            if "policy.pth" in names and not hasattr(file, "read"):
                from surefoot.compat.sb3.files.sb3_zip import from_sb3

                return from_sb3(Path(file))
            if "data.json" not in names:
                raise ValueError(f"{path} is neither a model of surefoot.sb3 nor one of Stable-Baselines3")
            data = json.loads(archive.read("data.json"))
            groups = {
                n[: -len(".safetensors")]: load_tensors(archive.read(n)) for n in names if n.endswith(".safetensors")
            }
    except zipfile.BadZipFile as why:
        raise ValueError(f"{path} is not a zip file") from why
    return data, groups


def space_to_json(space: gym.Space[Any]) -> dict[str, Any]:
    """Return a space as JSON."""
    match space:
        case spaces.Dict():
            return {"kind": "dict", "parts": {str(k): space_to_json(v) for k, v in space.spaces.items()}}
        case spaces.Box():
            bounds = {"low": [str(x) for x in space.low.ravel()], "high": [str(x) for x in space.high.ravel()]}
            return {"kind": "box", **bounds, "shape": list(space.shape), "dtype": str(space.dtype)}
        case spaces.Discrete():
            return {"kind": "discrete", "n": int(space.n), "start": int(space.start)}
        case spaces.MultiDiscrete():
            return {"kind": "multi_discrete", "nvec": space.nvec.tolist()}
        case spaces.MultiBinary():
            return {"kind": "multi_binary", "n": list(space.shape)}
        case _:
            raise ValueError(f"{space} cannot be saved")


def space_from_json(tree: Mapping[str, Any]) -> gym.Space[Any]:
    """Return the space that `space_to_json` described."""
    match tree["kind"]:
        case "dict":
            return spaces.Dict([(k, space_from_json(v)) for k, v in tree["parts"].items()])
        case "box":
            dtype: Any = np.dtype(tree["dtype"])
            number = float if dtype.kind == "f" else int
            low, high = (np.array([number(x) for x in tree[n]], dtype).reshape(tree["shape"]) for n in ("low", "high"))
            return spaces.Box(low, high, dtype=dtype.type)
        case "discrete":
            return spaces.Discrete(tree["n"], start=tree["start"])
        case "multi_discrete":
            return spaces.MultiDiscrete(tree["nvec"])
        case _:
            return spaces.MultiBinary(tree["n"][0] if len(tree["n"]) == 1 else tree["n"])


def to_json(name: str, value: Any) -> Any:
    """Return a setting as JSON: a schedule that is a function as a table of its values, {"lost": text} for other code."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case ConstantSchedule():
            return value.val
        case LinearSchedule():
            return {"linear": [value.start, value.end, value.end_fraction]}
        case FloatSchedule():
            return to_json(name, value.value_schedule)
        case TableSchedule():
            return {"table": value.values}
        case type():
            for short, module in _MODULES.items():
                if getattr(module, value.__name__, None) is value:
                    return {"class": f"{short}.{value.__name__}"}
            return {"class": f"{value.__module__}:{value.__qualname__}"}
        case dict():
            return {"dict": {str(k): to_json(name, v) for k, v in value.items()}}
        case list() | tuple():
            return [to_json(name, v) for v in value]
        case _:
            if name in SCHEDULES and callable(value):
                return {"table": TableSchedule.of(value).values}
    return {"lost": repr(value)[:200]}


def from_json(name: str, value: Any) -> Any:
    """Return the setting that `to_json` wrote.

    Classes are looked up in torch.nn, torch.optim, SB3's layers, and modules that the script has imported already.
    """
    if isinstance(value, list):
        return [from_json(name, v) for v in value]
    if not isinstance(value, dict):
        return value
    if "linear" in value:
        return LinearSchedule(*value["linear"])
    if "table" in value:
        return TableSchedule(value["table"])
    if "dict" in value:
        return {k: from_json(name, v) for k, v in value["dict"].items()}
    if "class" in value:
        if (found := _class_of(value["class"])) is not None:
            return found
    raise ValueError(
        f"{name} was saved as {value}, which cannot be restored without pickle; pass it: custom_objects={{{name!r}: …}}"
    )


def _class_of(name: str) -> type[Any] | None:
    module, own, kind = name.partition(":")
    if not own:
        module, _, kind = name.partition(".")
        return getattr(_MODULES[module], kind, None)
    found: Any = sys.modules.get(module)
    for part in kind.split("."):
        found = getattr(found, part, None)
    # Nothing is imported, and nothing but networks and optimizers is called: a file cannot choose what is run.
    return found if isinstance(found, type) and issubclass(found, torch.nn.Module | torch.optim.Optimizer) else None


def restore_settings(saved: Mapping[str, Any], custom: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the settings of a model, with those of `custom` instead of the saved ones."""
    custom = custom or {}
    restored: dict[str, Any] = {}
    for name, value in saved.items():
        restored[name] = custom[name] if name in custom else from_json(name, value)
    for name in custom.keys() - saved.keys():
        warnings.warn(f"custom_objects has {name!r}, which the saved model does not have", UserWarning, stacklevel=3)
    return restored


def model_tensors(model: Any) -> dict[str, dict[str, torch.Tensor]]:
    """Return weights, optimizer state and last observations of a model in the groups of a saved file."""
    slots = model.policy.optimizer.state_dict()["state"]
    flat = {f"{i}.{n}": torch.as_tensor(x) for i, each in slots.items() for n, x in each.items() if x is not None}
    obs = model._last_obs
    parts: dict[str, Any] = {} if obs is None else obs if isinstance(obs, dict) else {LONE: obs}
    last = {name: torch.from_numpy(np.array(part)) for name, part in parts.items()}
    return {"policy": policy_weights(model), "optimizer": flat, "last_obs": last}


def policy_weights(model: Any) -> dict[str, torch.Tensor]:
    """Return the weights of a model; those of a policy of `torch.compile` without the prefix that it adds."""
    return {name.removeprefix("_orig_mod."): x for name, x in model.policy.state_dict().items()}


def last_obs_of(tensors: Mapping[str, torch.Tensor]) -> Any:
    """Return the last observations that `model_tensors` stored."""
    parts = {name: x.numpy() for name, x in tensors.items()}
    return parts[LONE] if list(parts) == [LONE] else parts or None


def optimizer_state(optimizer: torch.optim.Optimizer, tensors: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    """Return a state dict for `optimizer` with the slots that `model_tensors` stored."""
    state: dict[int, dict[str, Any]] = {}
    for name, x in tensors.items():
        index, _, slot = name.partition(".")
        state.setdefault(int(index), {})[slot] = x
    return {**optimizer.state_dict(), "state": state}


def save_policy(policy: Any, path: Any) -> None:
    """Write a policy."""
    arguments = policy._get_constructor_parameters()
    observation, action = (space_to_json(arguments.pop(f"{name}_space")) for name in ("observation", "action"))
    arguments.pop("lr_schedule", None)
    data = {"arguments": to_json("arguments", arguments), "observation_space": observation, "action_space": action}
    write_zip(path, data, {"policy": policy.state_dict()})


def load_policy(kind: type[Any], path: Any, device: Any) -> Any:
    """Return a policy of class `kind`."""
    data, tensors = read_zip(path)
    found = {name: space_from_json(data[f"{name}_space"]) for name in ("observation", "action")}
    arguments = from_json("arguments", data["arguments"])
    policy = kind(found["observation"], found["action"], ConstantSchedule(0.0), **arguments)
    policy.load_state_dict(tensors["policy"])
    return policy.to(layers.get_device(device))
