"""The contract of an exported policy: its inputs and outputs, where it comes from, and the result of the verification."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from surefoot.data.spaces import Box, Discrete, Hybrid, MultiDiscrete
from surefoot.envs.api import World
from surefoot.envs.builtin.classic import Components, units_of
from surefoot.errors import PolicyError
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.onnx import MASK, port_name
from surefoot.nets.onnx_builder import ExportPort
from surefoot.train.interop.onnx_check import TOLERANCE, Verification


def takes_masks(policy: ActorCritic, world: World | None) -> bool:
    """Return True if the policy chooses and its world has action masks."""
    return bool(policy.choices()) and world is not None and world.reset(0).action_mask is not None


def require_proof(verification: Verification, model: str) -> None:
    """Raise `PolicyError` if the outputs of the exported model are not the policy's."""
    if not verification.holds:
        raise PolicyError(
            f"the outputs of the {model} differ from the policy's by {verification.worst:.2g} (at most {TOLERANCE:g}), with "
            f"{verification.wrong_choices} wrong choices in {verification.observations} observations; nothing was written"
        )


def contract_of(
    policy: ActorCritic,
    inputs: Sequence[ExportPort],
    outputs: Sequence[ExportPort],
    verification: Verification,
    *,
    model: dict[str, Any],
    origin: dict[str, Any],
    env: str,
    masks: bool,
    runtime: str,
) -> dict[str, Any]:
    """Return the contract as it is written to JSON; `model` describes the file."""
    return {
        "format": "surefoot-contract",
        "version": 1,
        "model": model,
        "weights_sha256": weights_hash(policy),
        "from": {**origin, "env": env, "surefoot": _version()},
        **_ports(policy, inputs, outputs, env),
        "inside": _inside(policy, masks=masks),
        "proof": {
            "observations": verification.observations,
            "shown_by_the_world": verification.from_world,
            "tolerance": TOLERANCE,
            "largest_difference": verification.difference,
            "measure": "|a - b| / max(1, |b|)",
            "runtime": runtime,
        },
        "examples": verification.examples,
    }


def weights_hash(policy: ActorCritic) -> str:
    """Return the SHA-256 of the names, types, shapes and bytes of all weights and running statistics."""
    digest = hashlib.sha256()
    for name, value in sorted(policy.state_dict().items()):
        array = np.ascontiguousarray(value.cpu().numpy())
        digest.update(f"{name} {array.dtype} {array.shape};".encode() + array.tobytes())
    return digest.hexdigest()


def _ports(
    policy: ActorCritic, inputs: Sequence[ExportPort], outputs: Sequence[ExportPort], env: str
) -> dict[str, Any]:
    observed, acted = units_of(env)
    boxes = {port_name(name): box for name, box in policy.observation.items()}
    return {
        "inputs": [_input(port, boxes.get(port.name), observed) for port in inputs],
        "outputs": [_output(port, policy, acted) for port in outputs],
    }


def _input(port: ExportPort, box: Box | None, components: Components | None) -> dict[str, Any]:
    port_info = _plain(port)
    if box is None:
        meaning = "True for allowed choices; the choices of all parts concatenated" if port.name == MASK else "memory"
        return port_info | {"meaning": meaning} | ({} if port.name == MASK else {"at_the_start_of_an_episode": "zeros"})
    port_info |= {"meaning": "observation", **_range(box)}
    # Wrappers can change the size of an observation; then the names of the components do not apply.
    if components is not None and len(components) == box.size:
        port_info["components"] = [{"name": name, "unit": unit} for name, unit in components]
    return port_info


# Texts of the contract for outputs other than the action.
_MEANINGS: dict[str, str] = {
    "value": "expected discounted return, in units of the reward the policy learned from",
    "mean": "mean of the distribution before bounds and scaling",
    "std": "standard deviation of the distribution before bounds and scaling",
    "alpha": "α of a Beta distribution over the bounds",
    "beta": "β of a Beta distribution over the bounds",
}


def _output(port: ExportPort, policy: ActorCritic, components: Components | None) -> dict[str, Any]:
    port_info = _plain(port)
    if port.name != "action":
        probs = port.name.startswith("probs")
        meaning = (
            "probability of each choice" if probs else _MEANINGS.get(port.name, "pass it as the input without _out")
        )
        return port_info | {"meaning": meaning} | ({"low": 0.0, "high": 1.0} if probs else {})
    port_info["meaning"] = "the most likely action, in the form that the env takes"
    match policy.action:
        case Discrete() as space:
            port_info |= {"low": space.start, "high": space.start + space.n - 1}
        case MultiDiscrete() as space:
            port_info |= {"low": 0, "high": [n - 1 for n in space.nvec], "note": "counted from 0"}
        case Hybrid() as space:
            port_info |= {
                "choices": list(space.nvec),
                "numbers": _range(space.box),
                "note": "choices first, then numbers",
            }
        case Box() as space:
            port_info |= _range(space)
    if components is not None:
        port_info["components"] = [{"name": name, "unit": unit} for name, unit in components]
    return port_info


def _plain(port: ExportPort) -> dict[str, Any]:
    return {"name": port.name, "dtype": port.dtype, "shape": list(port.shape)}


def _range(box: Box) -> dict[str, Any]:
    """Return the bounds for JSON, which has no infinity: null means unbounded."""

    def bound(value: Any) -> Any:
        if isinstance(value, tuple):
            return [bound(x) for x in value]  # pyright: ignore[reportUnknownVariableType]
        return float(value) if math.isfinite(value) else None

    return {"low": bound(box.low), "high": bound(box.high)}


def _inside(policy: ActorCritic, *, masks: bool) -> dict[str, Any]:
    config = policy.config
    scaling = "none" if isinstance(policy.action, Discrete | MultiDiscrete) else "clipped to the bounds"
    if config.squash or config.beta:
        scaling = f"{'tanh' if config.squash else 'Beta'}, stretched to the bounds"
    return {
        "normalizer": {"clip": config.obs_clip} if config.normalize_obs else None,
        "action_mask": masks,
        "action_scaling": scaling,
        "memory": config.memory,
        "value": not config.critic_only,
    }


def _version() -> str:
    # A source tree on the path has no package metadata.
    try:
        return version("surefoot")
    except PackageNotFoundError:
        return "unknown"
