"""`save` and `load` of a model."""

from __future__ import annotations

import warnings
from typing import Any

from surefoot.compat.sb3.files.model_files import (
    from_json,
    optimizer_slots,
    optimizer_state,
    policy_weights,
    read_zip,
    restore_settings,
    tensors_of,
    to_json,
    write_zip,
)
from surefoot.compat.sb3.spaces import check_for_correct_spaces
from surefoot.train.predict import space_from_tree, space_to_tree


def save_model(model: Any, path: Any, left_out: set[str]) -> None:
    """Write a model to a path or a file object, without the settings `left_out`."""
    values = {name: to_json(name, getattr(model, name)) for name in model.settings if name not in left_out}
    alias = next((a for a, kind in model.policy_aliases.items() if kind is model.policy_class), None)
    tree = {
        "settings": values,
        "policy_class": alias or to_json("policy_class", model.policy_class),
        "counters": {"num_timesteps": model.num_timesteps, "_n_updates": model._n_updates},
        "n_envs": model.n_envs,
        "observation_space": space_to_tree(model.observation_space),
        "action_space": space_to_tree(model.action_space),
        "policy": policy_weights(model),
        "optimizer": optimizer_slots(model.policy.optimizer),
        "last_obs": model._last_obs,
    }
    write_zip(path, tree)


def load_model(
    kind: Any, path: Any, env: Any, device: Any, custom: dict[str, Any], force_reset: bool, kwargs: dict[str, Any]
) -> Any:
    """Return a saved model of the class `kind`; `kwargs` and `custom` replace saved settings."""
    data = read_zip(path)
    policy = custom.pop("policy_class", None) or from_json("policy_class", data["policy_class"] or {})
    chosen_spaces = {name: custom.pop(name, None) for name in ("observation_space", "action_space")}
    if lost := [name for name in data.get("left_out", ()) if name not in custom and name not in kwargs]:
        warnings.warn(
            f"{', '.join(lost)} of {path} are functions, which are not read; SB3's defaults are used. "
            f"Pass custom_objects={{{lost[0]!r}: …}} to set them",
            UserWarning,
            stacklevel=3,
        )
    wanted = kwargs.get("policy_kwargs")
    settings = restore_settings(data["settings"], custom)
    if wanted is not None and wanted != settings["policy_kwargs"]:
        raise ValueError(f"the model was saved with policy_kwargs={settings['policy_kwargs']}, not {wanted}")
    model = kind(policy, None, device=device, _init_setup_model=False, **{**settings, **kwargs})
    for name, space in chosen_spaces.items():
        space = space or (data[name] and space_from_tree(data[name]))
        if space is None and env is None:
            raise ValueError(
                f"{path} does not describe the {name} completely; pass env or custom_objects={{{name!r}: …}}"
            )
        setattr(model, name, space)
    model.n_envs = data["n_envs"]
    if env is not None:
        model.env = kind._wrap_env(env, model.verbose)
        model.observation_space = model.observation_space or model.env.observation_space
        model.action_space = model.action_space or model.env.action_space
        check_for_correct_spaces(model.env, model.observation_space, model.action_space)
        model.n_envs = model.env.num_envs
    model._setup_model()
    model.policy.load_state_dict(tensors_of(data["policy"]))
    optimizer = model.policy.optimizer
    optimizer.load_state_dict(optimizer_state(optimizer, data["optimizer"]))
    if env is None or not force_reset:
        model._last_obs = data.get("last_obs")
    for name, value in data["counters"].items():
        setattr(model, name, value)
    return model
