"""ONNX export: model.onnx, and contract.json with its inputs, outputs and the result of the verification."""

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
from surefoot.train.interop.onnx_check import TOLERANCE, verify

# 50 batches, 25 of them from the env. More find rarer differences and take longer.
OBSERVATIONS = 1000


@dataclass(frozen=True, slots=True)
class ExportResult:
    """The folder and the contract that were written."""

    directory: Path
    contract: dict[str, Any]


def policy_of(saved: SavedModel) -> ActorCritic:
    """Return the policy of a checkpoint."""
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
) -> ExportResult:
    """Write model.onnx and contract.json. Raise `PolicyError` and write nothing if the model's outputs differ.

    Args:
        policy: The policy.
        directory: The folder to write to; created if missing.
        origin: Where the policy comes from; copied into the contract unchanged.
        env: Id of the environment, for the names and units of observations and actions.
        world: Source of half of the observations for the verification.
        masks: Whether the model has an action mask as input. Default: if the world has masks.
        observations: Number of observations to verify on.
    """
    if masks is None:
        masks = bool(policy.choices()) and world is not None and world.reset(0).action_mask is not None
    model, sheet = policy_graph(policy, masks=masks)
    data: bytes = model.SerializeToString(deterministic=True)
    runtime = optional_module("onnxruntime")
    session = open_session(runtime, data)
    verification = verify(policy, session, world, masks=masks, observations=observations)
    if not verification.holds:
        raise PolicyError(
            f"the outputs of the ONNX model differ from the policy's by {verification.worst:.2g} (at most {TOLERANCE:g}), with "
            f"{verification.wrong_choices} wrong choices in {verification.observations} observations; nothing was written"
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
            "observations": verification.observations,
            "shown_by_the_world": verification.from_world,
            "tolerance": TOLERANCE,
            "largest_difference": verification.difference,
            "measure": "|a - b| / max(1, |b|)",
            "runtime": f"onnxruntime {runtime.__version__}",
        },
        "examples": verification.examples,
    }
    # The contract is written last, so that an interrupted export never leaves a contract for another model.
    make_directory(REAL_FS, directory)
    replace_file(REAL_FS, directory / "model.onnx", data)
    text = json.dumps(contract, indent=2, allow_nan=False) + "\n"
    replace_file(REAL_FS, directory / "contract.json", text.encode())
    return ExportResult(directory, contract)


def open_session(runtime: Any, data: bytes) -> Any:
    """Return an inference session for a model."""
    options = runtime.SessionOptions()
    # A small model is slower with more threads, and the verification should not depend on their number.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # Errors only.
    options.log_severity_level = 3
    return runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def weights_hash(policy: ActorCritic) -> str:
    """Return the SHA-256 of the names, types, shapes and bytes of all weights and running statistics."""
    digest = hashlib.sha256()
    for name, value in sorted(policy.state_dict().items()):
        array = np.ascontiguousarray(value.cpu().numpy())
        digest.update(f"{name} {array.dtype} {array.shape};".encode() + array.tobytes())
    return digest.hexdigest()


def _ports(policy: ActorCritic, sheet: Sheet, env: str) -> dict[str, Any]:
    observed, acted = units_of(env)
    boxes = {port_name(name): box for name, box in policy.observation.items()}
    inputs = [_input(port, boxes.get(port.name), observed) for port in sheet.inputs]
    outputs = [_output(port, policy, acted) for port in sheet.outputs]
    return {"inputs": inputs, "outputs": outputs}


def _input(port: OnnxPort, box: Box | None, components: Components | None) -> dict[str, Any]:
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


def _output(port: OnnxPort, policy: ActorCritic, components: Components | None) -> dict[str, Any]:
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


def _plain(port: OnnxPort) -> dict[str, Any]:
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
