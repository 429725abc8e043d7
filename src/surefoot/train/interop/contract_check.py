"""Reads an exported ONNX policy back: is the model the one of its contract, and does it still give the contract's answers?"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from surefoot.errors import PolicyError
from surefoot.nets.onnx_builder import optional_module
from surefoot.train.interop.onnx_check import TOLERANCE
from surefoot.train.interop.onnx_export import open_session

_RUNTIME_TYPES = {
    "tensor(float)": "float32",
    "tensor(uint8)": "uint8",
    "tensor(bool)": "bool",
    "tensor(int64)": "int64",
}


class ContractPort(msgspec.Struct):
    """An input or output of the model; the first dimension is the batch."""

    name: str
    dtype: Literal["float32", "uint8", "bool", "int64"]
    shape: Annotated[list[int | str], msgspec.Meta(min_length=1)]


class ContractModel(msgspec.Struct):
    """The file that the contract is about."""

    file: str
    bytes: Annotated[int, msgspec.Meta(ge=0)]
    sha256: str


class ContractExample(msgspec.Struct):
    """One row of each input, and the outputs for it."""

    inputs: dict[str, Any]
    outputs: dict[str, Any]


class Contract(msgspec.Struct):
    """What is checked of contract.json."""

    format: Literal["surefoot-contract"]
    version: Literal[1]
    model: ContractModel
    inputs: list[ContractPort]
    outputs: list[ContractPort]
    examples: list[ContractExample]


@dataclass(frozen=True, slots=True)
class CheckedContract:
    """A contract that holds."""

    contract: Contract
    examples: int
    worst: float
    """The largest |a - b| / max(1, |b|) of the examples' outputs."""
    runtime: str


def check_contract(directory: Path) -> CheckedContract:
    """Compare model.onnx in a directory with contract.json beside it. Raise `PolicyError` if they differ.

    Args:
        directory: What `surefoot export --to onnx` wrote.
    """
    contract = _read(directory / "contract.json")
    data = _model_bytes(directory, contract.model)
    runtime = optional_module("onnxruntime")
    try:
        session = open_session(runtime, data)
    # onnxruntime's exceptions share no base class but Exception.
    except Exception as why:
        raise PolicyError(f"onnxruntime cannot load {directory / contract.model.file}: {_line(why)}") from why
    for kind, ports, of_model in (
        ("inputs", contract.inputs, session.get_inputs()),
        ("outputs", contract.outputs, session.get_outputs()),
    ):
        listed = {port.name: (port.dtype, port.shape) for port in ports}
        actual = {port.name: (_RUNTIME_TYPES.get(port.type, port.type), list(port.shape)) for port in of_model}
        if listed != actual:
            raise PolicyError(f"the {kind} of the model are {actual}; the contract lists {listed}")
    worst = max((_example(session, contract, example) for example in contract.examples), default=0.0)
    return CheckedContract(contract, len(contract.examples), worst, f"onnxruntime {runtime.__version__}")


def _read(path: Path) -> Contract:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Contract)
    except OSError as why:
        raise PolicyError(
            f"{path} cannot be read: {why.strerror}; give a directory that `surefoot export` wrote"
        ) from why
    except msgspec.DecodeError as why:
        raise PolicyError(f"{path} is not a contract of an exported policy: {why}") from why


def _model_bytes(directory: Path, model: ContractModel) -> bytes:
    # A name only: a contract must not point to files elsewhere.
    if not model.file or model.file != Path(model.file).name:
        raise PolicyError(f"the contract names the model {model.file!r}; it must be a file beside contract.json")
    path = directory / model.file
    try:
        data = path.read_bytes()
    except OSError as why:
        raise PolicyError(f"{path} cannot be read: {why.strerror}") from why
    digest = hashlib.sha256(data).hexdigest()
    if (len(data), digest) != (model.bytes, model.sha256):
        raise PolicyError(
            f"{path} is not the model of the contract: it has {len(data):,} bytes and the SHA-256 {digest}; the contract has "
            f"{model.bytes:,} bytes and {model.sha256}"
        )
    return data


def _example(session: Any, contract: Contract, example: ContractExample) -> float:
    """Return the largest difference of an example's outputs."""
    feed = {port.name: _row(port, example.inputs) for port in contract.inputs}
    names = [port.name for port in contract.outputs]
    answers, worst = dict(zip(names, session.run(names, feed), strict=True)), 0.0
    for port in contract.outputs:
        wanted = _row(port, example.outputs).astype(np.float64)
        difference = np.abs(answers[port.name].astype(np.float64) - wanted) / np.maximum(1.0, np.abs(wanted))
        largest = float(difference.max(initial=0.0))
        if not largest <= TOLERANCE:  # NaN too
            raise PolicyError(
                f"the model answers an example of the contract with {port.name} {answers[port.name][0].tolist()}; the contract "
                f"has {example.outputs[port.name]} (at most {TOLERANCE:g} apart)"
            )
        worst = max(worst, largest)
    return worst


def _row(port: ContractPort, values: dict[str, Any]) -> np.ndarray:
    """Return an example's numbers for a port as a batch of one."""
    try:
        array = np.array([values[port.name]], port.dtype)
    except (KeyError, ValueError, TypeError, OverflowError) as why:
        raise PolicyError(f"an example of the contract has no {port.dtype} numbers for {port.name!r}") from why
    if array.shape[1:] != tuple(port.shape[1:]):
        raise PolicyError(
            f"an example of the contract has {port.name} {list(array.shape[1:])}; it must be {port.shape[1:]}"
        )
    return array


def _line(why: Exception) -> str:
    return " ".join(str(why).split())[:300]
