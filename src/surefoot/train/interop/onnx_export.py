"""ONNX export: model.onnx, and contract.json with its inputs, outputs and the result of the verification."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from surefoot.envs.api import World
from surefoot.errors import CheckpointIncompatible, PolicyError
from surefoot.learn.checkpoint.atomic_files import REAL_FS, make_directory, replace_file
from surefoot.nets.actor_critic import ActorCritic, policy_from_description
from surefoot.nets.onnx import policy_graph
from surefoot.nets.onnx_builder import IR_VERSION, OPSET, optional_module
from surefoot.nets.policy import load_weights
from surefoot.train.assemble import SavedModel
from surefoot.train.interop.contract import contract_of, require_proof, takes_masks
from surefoot.train.interop.onnx_check import verify

# 50 batches, 25 of them from the env. More find rarer differences and take longer.
OBSERVATIONS = 1000


@dataclass(frozen=True, slots=True)
class ExportResult:
    """The folder and the contract that were written."""

    directory: Path
    contract: dict[str, Any]


def policy_of(saved: SavedModel) -> ActorCritic:
    try:
        policy = policy_from_description(saved.parts["policy"])
    except CheckpointIncompatible as why:
        raise PolicyError(
            f"this policy cannot be exported: {why}; in Python, surefoot.train.interop.onnx_export.export_onnx takes it"
        ) from why
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
    masks = takes_masks(policy, world) if masks is None else masks
    model, sheet = policy_graph(policy, masks=masks)
    data: bytes = model.SerializeToString(deterministic=True)
    runtime = optional_module("onnxruntime")
    verification = verify(policy, open_session(runtime, data), world, masks=masks, observations=observations)
    require_proof(verification, "ONNX model")
    contract = contract_of(
        policy,
        sheet.inputs,
        sheet.outputs,
        verification,
        model={
            "file": "model.onnx",
            "bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
            "opset": OPSET,
            "ir_version": IR_VERSION,
        },
        origin=origin,
        env=env,
        masks=masks,
        runtime=f"onnxruntime {runtime.__version__}",
    )
    # The contract is written last, so that an interrupted export never leaves a contract for another model.
    make_directory(REAL_FS, directory)
    replace_file(REAL_FS, directory / "model.onnx", data)
    text = json.dumps(contract, indent=2, allow_nan=False) + "\n"
    replace_file(REAL_FS, directory / "contract.json", text.encode())
    return ExportResult(directory, contract)


def open_session(runtime: Any, data: bytes) -> Any:
    options = runtime.SessionOptions()
    # A small model is slower with more threads, and the verification should not depend on their number.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # Errors only.
    options.log_severity_level = 3
    return runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
