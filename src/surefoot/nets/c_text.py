"""C text: names, numbers, structs, and the functions of `c_runtime.h` that a piece of code calls."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from importlib import resources
from typing import Any

import numpy as np

from surefoot.nets.onnx_builder import ExportPort

_C_TYPES = {"float32": "float", "uint8": "uint8_t", "bool": "uint8_t", "int32": "int32_t"}
# With those of C++ that a part of an observation could be called.
_KEYWORD = re.compile(
    "auto|break|case|char|class|const|continue|default|delete|do|double|else|enum|extern|float|for|goto|if|inline|int|long|new|"
    "register|restrict|return|short|signed|sizeof|static|struct|switch|this|typedef|union|unsigned|void|volatile|while"
)


def is_c_name(name: str) -> bool:
    """Return True if a function can be called this."""
    return re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name) is not None and not _KEYWORD.fullmatch(name)


def c_name(port: str) -> str:
    name = re.sub(r"\W", "_", port, flags=re.ASCII)
    return name if is_c_name(name) else f"_{name}"


def c_numbers(values: Iterable[Any]) -> str:
    """Return numbers as C constants that give the same bits, in lines of up to 120 characters."""
    lines = [""]
    for value in values:
        number = str(np.float32(value)) if isinstance(value, float | np.floating) else str(int(value))
        if isinstance(value, float | np.floating):
            number = f"{number if '.' in number or 'e' in number else number + '.0'}f"
        if len(lines[-1]) + len(number) > 110:
            lines.append("")
        lines[-1] += f" {number},"
    return "\n   ".join(lines)


def c_struct(name: str, ports: Sequence[ExportPort]) -> str:
    """Return a struct with one member per port; those that only the value needs are last, and optional."""
    lines: list[str] = []
    for port in ports:
        size = f"[{math.prod(int(n) for n in port.shape)}]" if port.shape else ""
        line = f"    {_C_TYPES[port.dtype]} {c_name(port.name)}{size};"
        lines.append(optional(line) if port.name in ("value", "critic_memory") and name != "input" else line)
    members = "\n".join(lines)
    return f"typedef struct {{\n{members}\n}} policy_{name};"


def optional(text: str) -> str:
    """Return lines that are left out where `POLICY_NO_VALUE` is defined."""
    return f"#ifndef POLICY_NO_VALUE\n{text}\n#endif"


def called_functions(code: str) -> str:
    """Return the functions of the runtime that `code` calls, and those that they call, in their order."""
    _, *blocks = resources.files("surefoot.nets").joinpath("c_runtime.h").read_text("utf-8").strip().split("\n\n")
    called: list[str] = []
    for block in reversed(blocks):  # a function calls only those before it
        name = re.search(r"policy_\w+(?=\(|;\n*$)", block)
        assert name is not None
        if re.search(rf"\b{name[0]}\b", code):
            called.insert(0, block)
            code += block
    return "\n\n".join(called)


def with_prefix(code: str, name: str) -> str:
    """Put the policy's name before everything that the header defines, so that a program can have several policies."""
    code = re.sub(r"\bpolicy_", f"{name}_", code)
    return re.sub(r"\bPOLICY_", f"{name.upper()}_", code)
