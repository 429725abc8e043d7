"""C export: one header, compiled and compared with the policy before it is written."""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.envs.api import World
from surefoot.errors import ConfigError
from surefoot.learn.checkpoint.atomic_files import REAL_FS, make_directory, replace_file
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.c_header import CHeader, c_header
from surefoot.nets.c_text import c_name, c_numbers
from surefoot.nets.onnx_builder import ExportPort
from surefoot.train.interop.contract import contract_of, require_proof, takes_masks
from surefoot.train.interop.onnx_check import Arrays, verify
from surefoot.train.interop.onnx_export import OBSERVATIONS, ExportResult

# Every fifth batch of the verification gives one example of the self-test: half of them from the environment.
_EXAMPLE_EVERY = 5
_DTYPES = {"float32": "f4", "uint8": "u1", "bool": "u1", "int32": "i4"}


def export_c(
    policy: ActorCritic,
    path: Path,
    *,
    origin: dict[str, Any],
    env: str = "",
    world: World | None = None,
    masks: bool | None = None,
    observations: int = OBSERVATIONS,
) -> ExportResult:
    """Write a C99 header with the policy. Raise `PolicyError` and write nothing if its outputs differ.

    Args:
        policy: The policy.
        path: The file to write; its name without .h is the prefix of the functions. A directory gets a policy.h.
        origin: Where the policy comes from; copied into the contract unchanged.
        env: Id of the environment, for the names and units of observations and actions.
        world: Source of half of the observations for the verification.
        masks: Whether the input has an action mask. Default: if the world has masks.
        observations: Number of observations to verify on.
    """
    path = path if path.suffix == ".h" else path / "policy.h"
    masks = takes_masks(policy, world) if masks is None else masks
    header = c_header(policy, name=path.stem, masks=masks)
    with tempfile.TemporaryDirectory(prefix="surefoot-c-") as place:
        compiled = CompiledHeader(header, Path(place))
        verification = verify(policy, compiled, world, masks=masks, observations=observations)
    require_proof(verification, "C header")
    contract = contract_of(
        policy,
        [*header.inputs, *header.memories],
        header.outputs,
        verification,
        model={"file": path.name, "bytes": 0, "sha256": "", "language": "C99"},
        origin=origin,
        env=env,
        masks=masks,
        runtime=compiled.compiler,
    )
    text = _file_text(header, contract, _self_test(header, compiled.examples))
    contract["model"] |= {"bytes": len(text.encode()), "sha256": hashlib.sha256(text.encode()).hexdigest()}
    make_directory(REAL_FS, path.parent)
    replace_file(REAL_FS, path, text.encode())
    return ExportResult(path.parent, contract)


class CompiledHeader:
    """A header as a shared library, with the interface of an onnxruntime session that `verify` needs."""

    def __init__(self, header: CHeader, place: Path) -> None:
        name, self._ports = header.name, header.outputs
        self._memories = [port.name for port in header.memories]
        self._input, self._memory, self._output = (
            np.dtype([(port.name, _DTYPES[port.dtype], port.shape) for port in ports], align=True)
            for ports in (header.inputs, header.memories, header.outputs)
        )
        self.examples: list[tuple[np.void, np.void, np.void, np.void]] = []
        """Some rows: input, memory before, output, memory after."""
        self._calls = 0
        memory, argument = (f"{name}_memory *memory, ", "memory + i, ") if self._memories else ("void *memory, ", "")
        (place / f"{name}.h").write_text(f"#include <stdint.h>\n\n{header.code}", encoding="utf-8")
        source = (
            f'#include "{name}.h"\nvoid run(int n, const {name}_input *in, {memory}{name}_output *out) {{\n'
            f"    int i;\n    (void)memory;\n    for (i = 0; i < n; i++) {name}_act(in + i, {argument}out + i);\n}}\n"
        )
        (place / "run.c").write_text(source, encoding="utf-8")
        self.compiler, library = compile_library(place / "run.c")
        self._run = ctypes.CDLL(str(library)).run
        self._run.restype = None

    def get_outputs(self) -> list[ExportPort]:
        """Return the outputs, and those of a memory, as the ONNX model has them."""
        return [*self._ports, *(ExportPort(f"{name}_out", "float32", ()) for name in self._memories)]

    def run(self, names: None, feed: Arrays) -> list[np.ndarray]:
        """Return the outputs for a batch of inputs."""
        n = len(next(iter(feed.values())))
        row_in, memory, out = (np.zeros(n, dtype) for dtype in (self._input, self._memory, self._output))
        for name, values in feed.items():
            (memory if name in self._memories else row_in)[name] = values
        before = memory.copy()
        self._run(n, *(ctypes.c_void_p(array.ctypes.data) for array in (row_in, memory, out)))
        if self._calls % _EXAMPLE_EVERY == 0:
            self.examples.append((row_in[0], before[0], out[0], memory[0]))
        self._calls += 1
        return [out[port.name] for port in self._ports] + [memory[name] for name in self._memories]


def compile_library(source: Path) -> tuple[str, Path]:
    """Return the name of the C compiler (`CC`, or cc) and the shared library that it made of a file."""
    compiler, library = os.environ.get("CC", "cc").split(), source.with_suffix(".so")
    # Two roundings per multiplication and addition, as in the header's own pragma.
    options = ["-std=c99", "-O2", "-ffp-contract=off", "-shared", "-fPIC", "-o", str(library), str(source)]
    try:
        version = subprocess.run([*compiler, "--version"], capture_output=True, text=True, check=True).stdout
        subprocess.run([*compiler, *options], capture_output=True, text=True, check=True)
    except OSError:
        raise ConfigError(
            f"the header is compiled to verify it, but there is no {compiler[0]!r} here; install gcc or clang, or set CC"
        ) from None
    except subprocess.CalledProcessError as why:
        raise ConfigError(f"{compiler[0]} cannot compile the header: {why.stderr.strip()[:300]}") from why
    return version.partition("\n")[0], library


def _file_text(header: CHeader, contract: dict[str, Any], self_test: str) -> str:
    name, macro = header.name, header.name.upper()
    proof, origin = contract["proof"], contract["from"]
    worst = max(proof["largest_difference"].values())
    memory = f"{name}_memory memory = {{{{0}}}}; " if header.memories else ""
    argument = "&memory, " if header.memories else ""
    about = [
        f"{header.name}.h: a trained policy in C99, written by surefoot {origin['surefoot']}.",
        "",
        f"    {name}_input in; {name}_output out; {memory}",
        f"    {name}_act(&in, {argument}&out);",
        "",
        "It allocates nothing and calls no library. Include it in one source file. Define before the #include:",
        f"    {macro}_NO_VALUE   to leave out the critic, its weights and out.value",
        f"    {macro}_SELF_TEST  to have int {name}_self_test(void), which returns the number of outputs with wrong bits",
        "",
        *_port_lines(contract["inputs"]),
        *_port_lines(contract["outputs"]),
        "",
        f"Compiled by {proof['runtime']}, it gave the policy's answers",
        f"to {proof['observations']} observations within {worst:.1e}.",
        "The bits need IEEE arithmetic: do not compile with -ffast-math.",
    ]
    comment = "\n".join(f" * {line}".rstrip() for line in about).replace("*/", "* /")
    constants = {**origin, "weights_sha256": contract["weights_sha256"]}
    defines = [
        f"#define {macro}_{c_name(key).upper()} {value if isinstance(value, int) else _c_text(str(value))}"
        for key, value in constants.items()
    ]
    sizes = [
        f"#define {macro}_{c_name(port.name).upper()}_SIZE {int(np.prod([int(n) for n in port.shape]))}"
        for port in (*header.inputs, *header.memories, *header.outputs)
        if port.shape
    ]
    return (
        f"/*{comment[2:]}\n */\n#ifndef {macro}_H\n#define {macro}_H\n\n#include <stdint.h>\n\n"
        + "\n".join([*defines, *sizes])
        + f"\n\n{_PRAGMA}{header.code}\n{self_test}\n{_PRAGMA_END}#endif\n"
    )


# One rounding for a * b + c is a right answer too, but not the kernel's. GCC fuses unless it gets -std=c99.
_PRAGMA = """#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#endif

"""
_PRAGMA_END = """#if defined(__clang__)
#pragma STDC FP_CONTRACT DEFAULT
#elif defined(__GNUC__)
#pragma GCC pop_options
#endif
"""


def _c_text(text: str) -> str:
    """Return a string constant; anything but printable ASCII is left out."""
    plain = "".join(c for c in text if " " <= c <= "~")
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"').replace("??", "?\\?") + '"'


def _port_lines(ports: Sequence[dict[str, Any]]) -> list[str]:
    """Return one line per input or output of the contract: type, size, meaning, components, range."""
    lines: list[str] = []
    for port in ports:
        shape = "".join(f"[{n}]" for n in port["shape"])
        components = ", ".join(f"{c['name']} ({c['unit']})" for c in port.get("components", ()))
        line = f"    {c_name(port['name'])} {port['dtype']}{shape}: {port['meaning']}"
        line += f": {components}" if components else ""
        bounds = f"{port['low']} to {port['high']}" if "low" in port else ""
        # A list with one bound for each of many components would hide everything else.
        line += f"; {bounds}" if bounds and len(bounds) < 80 else ""
        lines.append("".join(c for c in line if c.isprintable()))
    return lines


def _self_test(header: CHeader, examples: Sequence[tuple[np.void, np.void, np.void, np.void]]) -> str:
    """Return the function that evaluates the examples again; expected outputs are words, so that every bit counts."""
    name, count = header.name, len(examples)
    rows = ",\n    ".join(
        "{" + ", ".join(_initializer(row_in[port.name], port) for port in header.inputs) + "}"
        for row_in, *_ in examples
    )
    tables = [f"static const {name}_input in[{count}] = {{\n    {rows}}};"]

    def words(table: str, values: Sequence[np.void]) -> None:
        lines = ",\n    ".join(
            "{" + ", ".join(f"0x{w:08x}u" for w in np.frombuffer(v.tobytes(), np.uint32)) + "}" for v in values
        )
        width = values[0].nbytes // 4
        tables.append(f"static const uint32_t {table}[{count}][{width}] = {{\n    {lines}}};")

    words("expected", [out for _, _, out, _ in examples])
    load, check, argument, union = "", "", "", ""
    if header.memories:
        words("before", [before for _, before, _, _ in examples])
        words("after", [after for _, _, _, after in examples])
        union = f"\n    union {{ {name}_memory value; uint32_t word[sizeof({name}_memory) / 4]; }} memory;"
        load = f"\n        for (i = 0; i < sizeof({name}_memory) / 4; i++) memory.word[i] = before[k][i];"
        check = f"\n        for (i = 0; i < sizeof({name}_memory) / 4; i++) wrong += memory.word[i] != after[k][i];"
        argument = "&memory.value, "
    body = "\n".join(tables).replace("\n", "\n    ")
    return f"""#ifdef {name.upper()}_SELF_TEST
/* Observations of the proof, with the outputs for them as words: the number of words that differ now. */
static inline int {name}_self_test(void) {{
    {body}
    union {{ {name}_output value; uint32_t word[sizeof({name}_output) / 4]; }} out;{union}
    unsigned k, i;
    int wrong = 0;
    for (k = 0; k < {count}; k++) {{{load}
        {name}_act(&in[k], {argument}&out.value);
        for (i = 0; i < sizeof({name}_output) / 4; i++) wrong += out.word[i] != expected[k][i];{check}
    }}
    return wrong;
}}
#endif
"""


def _initializer(values: np.ndarray, port: ExportPort) -> str:
    numbers = c_numbers(np.asarray(values).ravel() if port.dtype == "float32" else np.asarray(values, np.int64).ravel())
    return f"{{{numbers.strip(' ,')}}}" if port.shape else numbers.strip(" ,")
