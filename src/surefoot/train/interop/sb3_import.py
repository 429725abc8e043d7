"""Import of Stable-Baselines3 models: a policy with the weights of a .zip and the same actions and values.

Only two members of the zip are read: `data`, which is JSON (the base64 pickles in it are ignored), and `policy.pth`, whose
tensors learn/checkpoint/torch_zip.py reads without running code.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from surefoot.data.kinds import as_list, as_mapping
from surefoot.data.spaces import ActionSpace, Box, Discrete, MultiDiscrete, ObservationSpace
from surefoot.errors import CheckpointCorrupt, CheckpointIncompatible, CheckpointMissing, SurefootError
from surefoot.learn.checkpoint.torch_zip import members, read_tensors
from surefoot.learn.checkpoint.vecnormalize import Statistics
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig

# Names of the hidden layers in SB3's MlpExtractor.
_LAYER = re.compile(r"mlp_extractor\.(policy|value)_net\.(\d+)\.(weight|bias)")
# A number in numpy's text of an array.
_NUMBER = re.compile(r"[-+]?(?:inf|\d+\.?\d*(?:e[-+]?\d+)?)")
# Attributes of SB3's PPO that are hyperparameters and plain numbers in `data`.
_SETTINGS = (
    *("learning_rate", "n_steps", "batch_size", "n_epochs", "gamma", "gae_lambda", "ent_coef", "vf_coef"),
    *("max_grad_norm", "n_envs", "target_kl", "seed", "normalize_advantage"),
)
# SB3 stores these as functions, so constants must be parsed from a text (see `_constant`).
_SCHEDULES = ("learning_rate", "clip_range", "clip_range_vf")
_NORMALIZER = "network.torso.normalizer."
_CONSTANT = re.compile(r"ConstantSchedule\(val=([-+.e\d]+)\)")


@dataclass(frozen=True, slots=True)
class Sb3Model:
    """The content of an SB3 zip file."""

    tensors: dict[str, np.ndarray]
    data: dict[str, Any]
    """The member `data` without its pickles."""

    @property
    def settings(self) -> dict[str, Any]:
        """The hyperparameters by SB3's names. Schedules that are not constant are stored as pickles and not read."""
        result = {name: value for name in _SETTINGS if isinstance(value := self.data.get(name), int | float)}
        return result | {name: value for name in _SCHEDULES if (value := _constant(self.data.get(name))) is not None}

    @property
    def left_out(self) -> list[str]:
        """The names of settings that the zip has but that cannot be read."""
        known = self.settings
        return sorted(name for name in _SCHEDULES if as_mapping(self.data.get(name)) is not None and name not in known)


def read_sb3(path: Path) -> Sb3Model:
    """Return the tensors and settings of a .zip that SB3's `model.save` wrote. No code of the file is run."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise CheckpointMissing(f"{path} does not exist") from None
    except OSError as why:
        raise CheckpointCorrupt(f"{path} cannot be read: {why.strerror}") from why
    files = members(data, path.name)
    if "policy.pth" not in files or "data" not in files:
        raise CheckpointIncompatible(
            f"{path} does not contain policy.pth and data; pass a .zip that Stable-Baselines3's model.save wrote"
        )
    tensors = read_tensors(files["policy.pth"], f"{path.name}/policy.pth")
    try:
        description = json.loads(files["data"])
    except (ValueError, RecursionError) as why:
        raise CheckpointCorrupt(f"{path.name}: its member data is not JSON ({why})") from why
    if not isinstance(description, dict):
        raise CheckpointCorrupt(f"{path.name}: its member data is not a JSON object")
    return Sb3Model(tensors, _readable(description))


def policy_from_sb3(
    model: Sb3Model,
    observation: ObservationSpace | None = None,
    action: ActionSpace | None = None,
    statistics: Statistics | None = None,
) -> ActorCritic:
    """Return a policy with the weights of an SB3 model.

    Args:
        model: The content of the zip.
        observation: The observation space. Default: the one that the zip describes.
        action: The action space. Default: the one that the zip describes.
        statistics: VecNormalize's statistics; they become part of the policy, which then takes raw observations.
    """
    tensors = _without_duplicates(model.tensors)
    _refuse_unknown(tensors)
    observation = observation or observation_of(model)
    action = action or action_of(model)
    net, names = _layout(model, tensors)
    try:
        if statistics is not None:
            net = net.replace(normalize_obs=True, obs_clip=statistics.clip)
        policy = ActorCritic(observation, action, net)
        current = policy.state_dict()
        weights = {name: torch.from_numpy(tensors[sb3_name].astype(np.float32)) for name, sb3_name in names.items()}
        weights |= _moments(current, statistics)
    except (KeyError, SurefootError) as why:
        raise CheckpointIncompatible(f"the model cannot be built: {why}") from why
    missing = sorted(set(current) ^ set(weights))
    wrong = [name for name in current if name in weights and current[name].shape != weights[name].shape]
    if missing or wrong:
        name = (missing or wrong)[0]
        expected, saved = (list(w[name].shape) if name in w else "missing" for w in (current, weights))
        raise CheckpointIncompatible(
            f"the model does not fit {observation} and {action}: {name} is {saved} in the zip but must be {expected}; "
            "pass the env it was trained in"
        )
    bad = [name for name, weight in weights.items() if not bool(torch.isfinite(weight).all())]
    if bad:
        raise CheckpointCorrupt(f"{names.get(bad[0], bad[0])} of the model contains NaN or infinity")
    policy.load_state_dict(weights)
    return policy


def _moments(current: Mapping[str, torch.Tensor], statistics: Statistics | None) -> dict[str, torch.Tensor]:
    """Return the normalizer's state with which it computes the same as VecNormalize: (x - mean) / sqrt(var + epsilon)."""
    if statistics is None:
        return {}
    if _NORMALIZER + "mean" not in current:
        raise CheckpointIncompatible(
            "the model takes images, which VecNormalize does not normalize; leave its file out"
        )
    # VecNormalize adds epsilon to the variance before the root, so it is added to the stored variance.
    moments = {"mean": statistics.mean, "var": statistics.var + statistics.epsilon, "count": np.array(statistics.count)}
    flat = {
        _NORMALIZER + name: torch.from_numpy(np.array(x).reshape(-1 if x.ndim else ())) for name, x in moments.items()
    }
    return flat | {_NORMALIZER + "rejected": torch.zeros((), dtype=torch.int64)}


def observation_of(model: Sb3Model) -> ObservationSpace:
    description = as_mapping(model.data.get("observation_space")) or {}
    match _kind(description):
        case "Box":
            shape = _shape(description)
            if description.get("dtype") == "uint8":
                return {"obs": Box(shape, 0.0, 255.0, "uint8")}
            low = _bound(description, "low", shape, -math.inf)
            return {"obs": Box(shape, low, _bound(description, "high", shape, math.inf))}
        case "Discrete":
            # Discrete observations are one-hot, in SB3 as well.
            return {"obs": Box((int(description["n"]),), 0.0, 1.0)}
        case kind:
            raise CheckpointIncompatible(
                f"the observation space of the model is {kind or 'not described'}; pass the env with --env"
            )


def action_of(model: Sb3Model) -> ActionSpace:
    description = as_mapping(model.data.get("action_space")) or {}
    match _kind(description):
        case "Box":
            shape = _shape(description)
            return Box(shape, _bound(description, "low", shape, None), _bound(description, "high", shape, None))
        case "Discrete":
            return Discrete(int(description["n"]), int(description.get("start", 0)))
        case "MultiDiscrete":
            return MultiDiscrete(tuple(int(float(n)) for n in _NUMBER.findall(str(description["nvec"]))))
        case kind:
            raise CheckpointIncompatible(
                f"the action space of the model is {kind or 'not described'}; pass the env with --env"
            )


def _without_duplicates(tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the tensors without the copies that SB3 saves of a shared feature extractor (pi_… and vf_…)."""
    result = dict(tensors)
    for name in list(result):
        for prefix in ("pi_", "vf_"):
            if name.startswith(f"{prefix}features_extractor."):
                first = name.removeprefix(prefix)
                if first not in result or not np.array_equal(result[first], result[name]):
                    raise CheckpointIncompatible(
                        "actor and critic of the model have separate feature extractors (share_features_extractor=False); "
                        "only models with a shared one can be imported"
                    )
                del result[name]
    return result


def _refuse_unknown(tensors: Mapping[str, np.ndarray]) -> None:
    for part, kind in (
        ("lstm", "a recurrent policy of sb3-contrib"),
        ("features_extractor.extractors", "a MultiInputPolicy"),
        ("shared_net", "a network whose first layers are shared"),
    ):
        if any(part in name for name in tensors):
            raise CheckpointIncompatible(
                f"the model is {kind}, which cannot be imported; only MlpPolicy and CnnPolicy can"
            )
    if "action_net.weight" not in tensors or "value_net.weight" not in tensors:
        raise CheckpointIncompatible("the zip has no action_net and value_net, so it is not a PPO (or A2C) model")


def _layout(model: Sb3Model, tensors: Mapping[str, np.ndarray]) -> tuple[NetConfig, dict[str, str]]:
    """Return the network config, and {name of a weight in the policy: its name in SB3}."""
    names = {f"network.policy_out.{w}": f"action_net.{w}" for w in ("weight", "bias")}
    names |= {f"network.value_out.{w}": f"value_net.{w}" for w in ("weight", "bias")}
    widths: dict[str, list[tuple[int, int]]] = {"policy": [], "value": []}
    for name, tensor in tensors.items():
        if match := _LAYER.fullmatch(name):
            side, index, kind = match.groups()
            names[f"network.{'actor' if side == 'policy' else 'critic'}.{index}.{kind}"] = name
            if kind == "weight":
                widths[side].append((int(index), int(tensor.shape[0])))
    hidden, critic = (tuple(width for _, width in sorted(widths[side])) for side in ("policy", "value"))
    kwargs = as_mapping(model.data.get("policy_kwargs")) or {}
    if str(kwargs.get("squash_output", False)) == "True":
        raise CheckpointIncompatible("the model has squash_output=True, which is not supported (in SB3 only with gSDE)")
    settings: dict[str, Any] = {"hidden": hidden, "critic_hidden": None if critic == hidden else critic}
    if "activation_fn" in kwargs:
        settings |= {"activation_fn": re.findall(r"\w+", str(kwargs["activation_fn"]))[-1]}
    if "log_std" in tensors:
        names["head.log_std"] = "log_std"
        # gSDE has a matrix of deviations, [features, actions].
        settings["gsde"] = tensors["log_std"].ndim == 2
    if any(name.startswith("features_extractor.cnn.") for name in tensors):
        settings |= {"cnn": "nature", "cnn_features": int(tensors["features_extractor.linear.0.weight"].shape[0])}
        # NatureCNN: convolutions at 0, 2 and 4 with activations between, then a linear layer (7 after Flatten).
        for w in ("weight", "bias"):
            for index in (0, 2, 4):
                names[f"network.torso.images.0.layers.{index}.{w}"] = f"features_extractor.cnn.{index}.{w}"
            names[f"network.torso.images.0.layers.7.{w}"] = f"features_extractor.linear.0.{w}"
    else:
        settings["cnn"] = "off"
    # A weight that is silently dropped would change the policy.
    unknown = sorted(set(tensors) - set(names.values()))
    if unknown:
        raise CheckpointIncompatible(
            f"the weight {unknown[0]} of the model is unknown; only MlpPolicy and CnnPolicy can be imported"
        )
    try:
        return NetConfig.make(**settings), names
    except SurefootError as why:
        raise CheckpointIncompatible(f"the model's network cannot be built: {why}") from why


def _constant(value: Any) -> float | None:
    """Return the value of a constant schedule, which newer versions of SB3 also write as text; otherwise None."""
    description = as_mapping(value) or {}
    match = _CONSTANT.fullmatch(str(description.get("value_schedule", "")))
    try:
        return None if match is None else float(match[1])
    except ValueError:
        return None


def _readable(description: dict[str, Any]) -> dict[str, Any]:
    """Return the description without base64 pickles."""
    result: dict[str, Any] = {}
    for name, value in description.items():
        fields = as_mapping(value)
        result[name] = value if fields is None else {k: v for k, v in fields.items() if k != ":serialized:"}
    return result


def _kind(description: Mapping[str, Any]) -> str:
    """Return the class name of a space, such as "Box"; "" if it is missing."""
    words = re.findall(r"\w+", str(description.get(":type:", "")))
    return words[-1] if words else ""


def _shape(description: Mapping[str, Any]) -> tuple[int, ...]:
    shape = as_list(description.get("_shape"))
    if not shape or not all(type(n) is int and n > 0 for n in shape):
        raise CheckpointIncompatible(
            f"the zip describes a space of shape {description.get('_shape')!r}; pass the env with --env"
        )
    return tuple(shape)


def _bound(description: Mapping[str, Any], name: str, shape: tuple[int, ...], unknown: float | None) -> Any:
    """Return a bound, parsed from numpy's text of it: one number for all entries, or one per entry."""
    numbers = tuple(float(text) for text in _NUMBER.findall(str(description.get(name, ""))))
    # numpy abbreviates long arrays with "..."; then the bound is unknown.
    if len(numbers) == math.prod(shape) and "..." not in str(description.get(name)):
        return numbers[0] if len(set(numbers)) == 1 else numbers
    if unknown is None:
        raise CheckpointIncompatible(
            f"the zip does not contain the {name} bound of the actions; pass the env with --env"
        )
    return unknown
