"""Models of Stable-Baselines3: the weights of a .zip in a policy of ours that chooses and judges alike.

Only two members of the zip are looked at: `data`, which is JSON (what it has of pickles in base64 is left alone), and
`policy.pth`, whose tensors learn/checkpoint/torch_zip.py reads without running anything.
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

_LAYER = re.compile(r"mlp_extractor\.(policy|value)_net\.(\d+)\.(weight|bias)")
_NUMBER = re.compile(r"[-+]?(?:inf|\d+\.?\d*(?:e[-+]?\d+)?)")
_SETTINGS = (
    *("learning_rate", "n_steps", "batch_size", "n_epochs", "gamma", "gae_lambda", "ent_coef", "vf_coef"),
    *("max_grad_norm", "n_envs", "target_kl", "seed", "normalize_advantage"),
)
_SCHEDULES = ("learning_rate", "clip_range", "clip_range_vf")
_NORMALIZER = "network.torso.normalizer."
_CONSTANT = re.compile(r"ConstantSchedule\(val=([-+.e\d]+)\)")


@dataclass(frozen=True, slots=True)
class Sb3Model:
    """What a zip says."""

    tensors: dict[str, np.ndarray]
    data: dict[str, Any]
    """The readable part of its `data`."""

    @property
    def settings(self) -> dict[str, Any]:
        """The numbers it was trained with, by SB3's names; a schedule that moves is a pickle there and is not read."""
        result = {name: value for name in _SETTINGS if isinstance(value := self.data.get(name), int | float)}
        return result | {name: value for name in _SCHEDULES if (value := _constant(self.data.get(name))) is not None}

    @property
    def left_out(self) -> list[str]:
        """Settings that are there but could not be read."""
        held = self.settings
        return sorted(name for name in _SCHEDULES if as_mapping(self.data.get(name)) is not None and name not in held)


def read_sb3(path: Path) -> Sb3Model:
    """The tensors and settings of a .zip that SB3's `model.save` wrote; nothing in it is run."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise CheckpointMissing(f"there is no file {path}") from None
    except OSError as why:
        raise CheckpointCorrupt(f"{path} cannot be read: {why.strerror}") from why
    files = members(data, path.name)
    if "policy.pth" not in files or "data" not in files:
        raise CheckpointIncompatible(
            f"{path} has no policy.pth and data in it; Stable-Baselines3's model.save writes both"
        )
    tensors = read_tensors(files["policy.pth"], f"{path.name}/policy.pth")
    try:
        description = json.loads(files["data"])
    except (ValueError, RecursionError) as why:
        raise CheckpointCorrupt(f"{path.name}: its data is no JSON ({why})") from why
    if not isinstance(description, dict):
        raise CheckpointCorrupt(f"{path.name}: its data is no JSON object")
    return Sb3Model(tensors, _readable(description))


def policy_from_sb3(
    model: Sb3Model,
    observation: ObservationSpace | None = None,
    action: ActionSpace | None = None,
    statistics: Statistics | None = None,
) -> ActorCritic:
    """A policy with a model's weights, in the spaces of its env, or else in those that the zip describes.

    `statistics` are VecNormalize's: the policy then takes observations as the env gives them.
    """
    tensors = _own_copies(model.tensors)
    _refuse_unknown(tensors)
    observation = observation or observation_of(model)
    action = action or action_of(model)
    net, names = _plan(model, tensors)
    try:
        if statistics is not None:
            net = net.replace(normalize_obs=True, obs_clip=statistics.clip)
        policy = ActorCritic(observation, action, net)
        current = policy.state_dict()
        weights = {ours: torch.from_numpy(tensors[sb3_name].astype(np.float32)) for ours, sb3_name in names.items()}
        weights |= _moments(current, statistics)
    except (KeyError, SurefootError) as why:
        raise CheckpointIncompatible(f"the model cannot be built: {why}") from why
    missing = sorted(set(current) ^ set(weights))
    wrong = [name for name in current if name in weights and current[name].shape != weights[name].shape]
    if missing or wrong:
        name = (missing or wrong)[0]
        ours, saved_shape = (list(w[name].shape) if name in w else "nothing" for w in (current, weights))
        raise CheckpointIncompatible(
            f"the model does not fit {observation} and {action}: {name} is {saved_shape} in the zip and {ours} here; "
            "give the env it was trained in"
        )
    bad = [name for name, weight in weights.items() if not bool(torch.isfinite(weight).all())]
    if bad:
        raise CheckpointCorrupt(f"{names.get(bad[0], bad[0])} of the model holds NaN or infinity")
    policy.load_state_dict(weights)
    return policy


def _moments(current: Mapping[str, torch.Tensor], statistics: Statistics | None) -> dict[str, torch.Tensor]:
    """What the policy's normaliser must hold to give what VecNormalize gave: (x - mean) / sqrt(var + epsilon)."""
    if statistics is None:
        return {}
    if _NORMALIZER + "mean" not in current:
        raise CheckpointIncompatible("the model observes images, for which there are no statistics here")
    moments = {"mean": statistics.mean, "var": statistics.var + statistics.epsilon, "count": np.array(statistics.count)}
    flat = {
        _NORMALIZER + name: torch.from_numpy(np.array(x).reshape(-1 if x.ndim else ())) for name, x in moments.items()
    }
    return flat | {_NORMALIZER + "rejected": torch.zeros((), dtype=torch.int64)}


def observation_of(model: Sb3Model) -> ObservationSpace:
    """The observation space a zip describes."""
    description = as_mapping(model.data.get("observation_space")) or {}
    match _kind(description):
        case "Box":
            shape = _shape(description)
            dtype = "uint8" if description.get("dtype") == "uint8" else "float32"
            if dtype == "uint8":
                return {"obs": Box(shape, 0.0, 255.0, "uint8")}
            return {
                "obs": Box(
                    shape, _bound(description, "low", shape, -math.inf), _bound(description, "high", shape, math.inf)
                )
            }
        case "Discrete":
            return {"obs": Box((int(description["n"]),), 0.0, 1.0)}
        case kind:
            raise CheckpointIncompatible(
                f"the model observes a {kind or 'space that is not described'}; give the env with --env"
            )


def action_of(model: Sb3Model) -> ActionSpace:
    """The action space a zip describes."""
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
                f"the model acts in a {kind or 'space that is not described'}; give the env with --env"
            )


def _own_copies(tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Without SB3's second and third names for one extractor, if they are the same."""
    result = dict(tensors)
    for name in list(result):
        for prefix in ("pi_", "vf_"):
            if name.startswith(f"{prefix}features_extractor."):
                first = name.removeprefix(prefix)
                if first not in result or not np.array_equal(result[first], result[name]):
                    raise CheckpointIncompatible(
                        "actor and critic of the model have extractors of their own (share_features_extractor=False), "
                        "for which there is no policy here"
                    )
                del result[name]
    return result


def _refuse_unknown(tensors: Mapping[str, np.ndarray]) -> None:
    for part, what in (
        ("lstm", "a recurrent policy of sb3-contrib"),
        ("features_extractor.extractors", "a MultiInputPolicy"),
        ("shared_net", "a network whose first layers are shared"),
    ):
        if any(part in name for name in tensors):
            raise CheckpointIncompatible(
                f"the model is {what}, whose weights are not read; MlpPolicy and CnnPolicy are"
            )
    if "action_net.weight" not in tensors or "value_net.weight" not in tensors:
        raise CheckpointIncompatible("the zip has no action_net and value_net: it is not a PPO (or A2C) model")


def _plan(model: Sb3Model, tensors: Mapping[str, np.ndarray]) -> tuple[NetConfig, dict[str, str]]:
    """How the policy must be built, and {our name of a weight: SB3's}."""
    names = {f"network.policy_out.{w}": f"action_net.{w}" for w in ("weight", "bias")}
    names |= {f"network.value_out.{w}": f"value_net.{w}" for w in ("weight", "bias")}
    widths: dict[str, list[tuple[int, int]]] = {"policy": [], "value": []}
    for name, tensor in tensors.items():
        if result := _LAYER.fullmatch(name):
            side, place, what = result.groups()
            names[f"network.{'actor' if side == 'policy' else 'critic'}.{place}.{what}"] = name
            if what == "weight":
                widths[side].append((int(place), int(tensor.shape[0])))
    hidden, critic = (tuple(width for _, width in sorted(widths[side])) for side in ("policy", "value"))
    kwargs = as_mapping(model.data.get("policy_kwargs")) or {}
    if str(kwargs.get("squash_output", False)) == "True":
        raise CheckpointIncompatible("the model has squash_output=True, which SB3 has for gSDE alone and we do not")
    shaped: dict[str, Any] = {"hidden": hidden, "critic_hidden": None if critic == hidden else critic}
    if "activation_fn" in kwargs:
        shaped |= {"activation_fn": re.findall(r"\w+", str(kwargs["activation_fn"]))[-1]}
    if "log_std" in tensors:
        names["head.log_std"] = "log_std"
        shaped["gsde"] = tensors["log_std"].ndim == 2
    if any(name.startswith("features_extractor.cnn.") for name in tensors):
        shaped |= {"cnn": "nature", "cnn_features": int(tensors["features_extractor.linear.0.weight"].shape[0])}
        for w in ("weight", "bias"):
            for place in (0, 2, 4):
                names[f"network.torso.images.0.layers.{place}.{w}"] = f"features_extractor.cnn.{place}.{w}"
            names[f"network.torso.images.0.layers.7.{w}"] = f"features_extractor.linear.0.{w}"
    else:
        shaped["cnn"] = "off"
    left = sorted(set(tensors) - set(names.values()))
    if left:
        raise CheckpointIncompatible(
            f"{left[0]} of the model has no place in a policy here; MlpPolicy and CnnPolicy have none"
        )
    try:
        return NetConfig.make(**shaped), names
    except SurefootError as why:
        raise CheckpointIncompatible(f"the model's network cannot be built: {why}") from why


def _constant(value: Any) -> float | None:
    """What newer versions of SB3 write beside the pickle of a schedule that does not move."""
    description = as_mapping(value) or {}
    result = _CONSTANT.fullmatch(str(description.get("value_schedule", "")))
    try:
        return None if result is None else float(result[1])
    except ValueError:
        return None


def _readable(description: dict[str, Any]) -> dict[str, Any]:
    """Without what is a pickle in base64."""
    result: dict[str, Any] = {}
    for name, value in description.items():
        fields = as_mapping(value)
        result[name] = value if fields is None else {k: v for k, v in fields.items() if k != ":serialized:"}
    return result


def _kind(description: Mapping[str, Any]) -> str:
    words = re.findall(r"\w+", str(description.get(":type:", "")))
    return words[-1] if words else ""


def _shape(description: Mapping[str, Any]) -> tuple[int, ...]:
    shape = as_list(description.get("_shape"))
    if not shape or not all(type(n) is int and n > 0 for n in shape):
        raise CheckpointIncompatible(
            f"the zip describes a space of shape {description.get('_shape')!r}; give the env with --env"
        )
    return tuple(shape)


def _bound(description: Mapping[str, Any], name: str, shape: tuple[int, ...], unknown: float | None) -> Any:
    """A bound from numpy's text of it: one number for all, or one each."""
    numbers = tuple(float(text) for text in _NUMBER.findall(str(description.get(name, ""))))
    if len(numbers) == math.prod(shape) and "..." not in str(description.get(name)):
        return numbers[0] if len(set(numbers)) == 1 else numbers
    if unknown is None:
        raise CheckpointIncompatible(f"the zip does not say the {name} bound of the actions; give the env with --env")
    return unknown
