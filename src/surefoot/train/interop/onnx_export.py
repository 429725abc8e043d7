"""A policy to take away: model.onnx, contract.json that says how to use it, and the proof that it answers alike."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.data.spaces import Box, Discrete, Hybrid, MultiDiscrete
from surefoot.envs.api import World
from surefoot.envs.builtin.classic import Components, units_of
from surefoot.errors import CheckpointIncompatible, PolicyError
from surefoot.learn.checkpoint.atomic_files import REAL_FS, make_directory, replace_file
from surefoot.nets.actor_critic import ActorCritic, policy_from_description
from surefoot.nets.onnx import IR_VERSION, MASK, OPSET, policy_graph, port_name
from surefoot.nets.onnx_builder import OnnxPort, Sheet, optional_module
from surefoot.nets.policy import load_weights
from surefoot.train.assemble import SavedModel
from surefoot.train.interop.onnx_check import TOLERANCE, prove

OBSERVATIONS = 1000


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written."""

    directory: Path
    contract: dict[str, Any]


def policy_of(saved: SavedModel) -> ActorCritic:
    """The policy in a checkpoint."""
    try:
        policy = policy_from_description(saved.parts["policy"])
    except CheckpointIncompatible as why:
        raise PolicyError(f"this policy cannot be exported: {why}") from why
    load_weights(policy, saved.parts["weights"])
    return policy


def export_onnx(
    policy: ActorCritic,
    directory: Path,
    *,
    origin: dict[str, Any],
    env: str = "",
    world: World | None = None,
    masks: bool | None = None,
    observations: int = OBSERVATIONS,
) -> Exported:
    """Write model.onnx and contract.json into `directory`, once the model has answered as the policy does.

    `world` shows half of the observations it is tried on, and says whether masks are needed if `masks` is None.
    `origin` goes into the contract as it is.
    """
    if masks is None:
        masks = bool(policy.choices()) and world is not None and world.reset(0).action_mask is not None
    model, sheet = policy_graph(policy, masks=masks)
    data: bytes = model.SerializeToString(deterministic=True)
    runtime = optional_module("onnxruntime")
    session = open_session(runtime, data)
    proof = prove(policy, session, world, masks=masks, observations=observations)
    if not proof.holds:
        raise PolicyError(
            f"the ONNX model does not answer as the policy does: off by {proof.worst:.2g} (at most {TOLERANCE:g}), "
            f"{proof.other_choices} other choices in {proof.observations} observations; nothing was written"
        )
    contract = {
        "format": "surefoot-contract",
        "version": 1,
        "model": {
            "file": "model.onnx",
            "bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
            "opset": OPSET,
            "ir_version": IR_VERSION,
        },
        "weights_sha256": weights_hash(policy),
        "from": {**origin, "env": env, "surefoot": _version()},
        **_ports(policy, sheet, env),
        "inside": _inside(policy, masks=masks),
        "proof": {
            "observations": proof.observations,
            "shown_by_the_world": proof.shown,
            "tolerance": TOLERANCE,
            "largest_difference": proof.difference,
            "measure": "|a - b| / max(1, |b|)",
            "runtime": f"onnxruntime {runtime.__version__}",
        },
        "examples": proof.examples,
    }
    make_directory(REAL_FS, directory)
    replace_file(REAL_FS, directory / "model.onnx", data)
    text = json.dumps(contract, indent=2, allow_nan=False) + "\n"
    replace_file(REAL_FS, directory / "contract.json", text.encode())
    return Exported(directory, contract)


def open_session(runtime: Any, data: bytes) -> Any:
    """One thread: a small model is slower with more, and a proof should not depend on how many there are."""
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def weights_hash(policy: ActorCritic) -> str:
    """sha256 over names, types, shapes and bytes of all that was learned, statistics included."""
    digest = hashlib.sha256()
    for name, value in sorted(policy.state_dict().items()):
        array = np.ascontiguousarray(value.cpu().numpy())
        digest.update(f"{name} {array.dtype} {array.shape};".encode() + array.tobytes())
    return digest.hexdigest()


def _ports(policy: ActorCritic, sheet: Sheet, env: str) -> dict[str, Any]:
    observed, done = units_of(env)
    boxes = {port_name(name): box for name, box in policy.observation.items()}
    inputs = [_input(port, boxes.get(port.name), observed) for port in sheet.inputs]
    outputs = [_output(port, policy, done) for port in sheet.outputs]
    return {"inputs": inputs, "outputs": outputs}


def _input(port: OnnxPort, box: Box | None, components: Components | None) -> dict[str, Any]:
    port_info = _plain(port)
    if box is None:
        what = "True where a choice is allowed; all choices side by side" if port.name == MASK else "what it remembers"
        return port_info | {"meaning": what} | ({} if port.name == MASK else {"at_the_start_of_an_episode": "zeros"})
    port_info |= {"meaning": "observation", **_range(box)}
    if components is not None and len(components) == box.size:
        port_info["components"] = [{"name": name, "unit": unit} for name, unit in components]
    return port_info


_MEANINGS: dict[str, str] = {
    "value": "expected discounted return, in units of the reward the policy learned from",
    "mean": "mean of the distribution before bounds and scaling",
    "std": "standard deviation of the distribution before bounds and scaling",
    "alpha": "α of a Beta distribution over the bounds",
    "beta": "β of a Beta distribution over the bounds",
}


def _output(port: OnnxPort, policy: ActorCritic, components: Components | None) -> dict[str, Any]:
    port_info = _plain(port)
    if port.name != "action":
        probs = port.name.startswith("probs")
        what = "probability of each choice" if probs else _MEANINGS.get(port.name, "pass it as the input without _out")
        return port_info | {"meaning": what} | ({"low": 0.0, "high": 1.0} if probs else {})
    port_info["meaning"] = "the likeliest action, as the env takes it"
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


def _plain(port: OnnxPort) -> dict[str, Any]:
    return {"name": port.name, "dtype": port.dtype, "shape": list(port.shape)}


def _range(box: Box) -> dict[str, Any]:
    """Bounds as JSON has them: null where there is none."""

    def bound(value: Any) -> Any:
        if isinstance(value, tuple):
            return [bound(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
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
    try:
        return version("surefoot")
    except PackageNotFoundError:
        return "unknown"
