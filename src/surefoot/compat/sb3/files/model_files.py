"""Saved models: a zip of JSON and safetensors, without pickle. The files in it are those of a checkpoint."""

from __future__ import annotations

import io
import os
import sys
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from surefoot.compat.sb3.functions import ConstantSchedule, FloatSchedule, LinearSchedule, TableSchedule
from surefoot.compat.sb3.policies import layers
from surefoot.learn.checkpoint.checkpoint import STATE, from_bytes, to_bytes
from surefoot.train.predict import space_from_tree, space_to_tree

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


def write_zip(path: Any, tree: Mapping[str, Any]) -> None:
    """Write a tree of values and arrays to a path (".zip" is added) or a file object; a file is replaced when it is complete."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        files = to_bytes({"model": dict(tree)})
        for name, data in zip(files[::2], files[1::2], strict=True):
            archive.writestr(name.decode(), data)
    if hasattr(path, "write"):
        path.write(buffer.getvalue())
        return
    target = Path(path) if Path(path).suffix else Path(f"{path}.zip")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(target.name + ".part")
    part.write_bytes(buffer.getvalue())
    os.replace(part, target)


def read_zip(path: Any) -> dict[str, Any]:
    """Return the tree of a saved model, ours or one that Stable-Baselines3 wrote."""
    file = find_zip(path)
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            if "policy.pth" in names and not hasattr(file, "read"):
                from surefoot.compat.sb3.files.sb3_zip import from_sb3

                return from_sb3(Path(file))
            if STATE not in names:
                raise ValueError(f"{path} is neither a model of surefoot.sb3 nor one of Stable-Baselines3")
            return from_bytes([part for name in names for part in (name.encode(), archive.read(name))])["model"]
    except zipfile.BadZipFile as why:
        raise ValueError(f"{path} is not a zip file") from why


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
            return {"table": value.values, "name": value.__name__}
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
                return to_json(name, TableSchedule.of(value))
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
        return TableSchedule(value["table"], value["name"])
    if "dict" in value:
        return {k: from_json(name, v) for k, v in value["dict"].items()}
    if "class" in value and (kind := _class_of(value["class"])) is not None:
        return kind
    raise ValueError(
        f"{name} was saved as {value}, which cannot be restored without pickle; pass it: custom_objects={{{name!r}: …}}"
    )


def _class_of(name: str) -> type[Any] | None:
    module, own, kind = name.partition(":")
    if not own:
        module, _, kind = name.partition(".")
        return getattr(_MODULES[module], kind, None)
    target: Any = sys.modules.get(module)
    for part in kind.split("."):
        target = getattr(target, part, None)
    # Nothing is imported, and nothing but networks and optimizers is called: a file cannot choose what is run.
    return target if isinstance(target, type) and issubclass(target, torch.nn.Module | torch.optim.Optimizer) else None


def restore_settings(saved: Mapping[str, Any], custom: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the settings of a model, with those of `custom` instead of the saved ones."""
    custom = custom or {}
    restored: dict[str, Any] = {}
    for name, value in saved.items():
        restored[name] = custom[name] if name in custom else from_json(name, value)
    for name in custom.keys() - saved.keys():
        warnings.warn(f"custom_objects has {name!r}, which the saved model does not have", UserWarning, stacklevel=3)
    return restored


def policy_weights(model: Any) -> dict[str, torch.Tensor]:
    """Return the weights of a model; those of a policy of `torch.compile` without the prefix that it adds."""
    return {name.removeprefix("_orig_mod."): x for name, x in model.policy.state_dict().items()}


def tensors_of(arrays: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    return {name: torch.as_tensor(x) for name, x in arrays.items()}


def optimizer_state(optimizer: torch.optim.Optimizer, slots: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state dict for `optimizer` with stored slots."""
    return {**optimizer.state_dict(), "state": {int(i): tensors_of(each) for i, each in slots.items()}}


def optimizer_slots(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Return the slots of all parameters, by the number of the parameter."""
    state = optimizer.state_dict()["state"]
    return {str(i): {n: torch.as_tensor(x) for n, x in each.items() if x is not None} for i, each in state.items()}


def save_policy(policy: Any, path: Any) -> None:
    arguments = policy._get_constructor_parameters()
    spaces = {f"{name}_space": space_to_tree(arguments.pop(f"{name}_space")) for name in ("observation", "action")}
    arguments.pop("lr_schedule", None)
    write_zip(path, {"arguments": to_json("arguments", arguments), **spaces, "policy": policy.state_dict()})


def load_policy(kind: type[Any], path: Any, device: Any) -> Any:
    """Return a policy of class `kind`."""
    tree = read_zip(path)
    spaces = (space_from_tree(tree[f"{name}_space"]) for name in ("observation", "action"))
    policy = kind(*spaces, ConstantSchedule(0.0), **from_json("arguments", tree["arguments"]))
    policy.load_state_dict(tensors_of(tree["policy"]))
    return policy.to(layers.get_device(device))
