"""Exports a policy of every head to C, compiles it with every compiler here, runs its self-test, and measures its size.

    python scripts/c_policies.py           print; exit code 1 if a build has other bits or a warning
    python scripts/c_policies.py --write   also write benchmarks/results/c_export.json, for the table in docs/how-to/export.md

GCC; Clang (Debian's clang, or the Python package `ziglang`); aarch64 by `ziglang` and `qemu-aarch64`; a Cortex-M4 by
`arm-none-eabi-gcc` and `qemu-system-arm` (its board mps2-an386). What is missing is skipped by name.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import torch

from surefoot.data.spaces import ActionSpace, Box, Discrete, Hybrid, MultiDiscrete
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.train.interop.c_export import export_c

ROOT = Path(__file__).parents[1]
BOARD = ROOT / "scripts" / "cortex_m4"
RESULT = ROOT / "benchmarks" / "results" / "c_export.json"
STRICT = ["-std=c99", "-O2", "-Wall", "-Wextra", "-pedantic", "-Werror"]
CORTEX = ["-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"]
MAIN = '#define POLICY_SELF_TEST\n#include "policy.h"\nint main(void) { return policy_self_test() != 0; }\n'
# Nothing but the call, so that the object has what a program with the policy would have.
CALL = '#include "policy.h"\nvoid call(const policy_input *in, {memory}policy_output *out) {{ policy_act(in, {argument}out); }}\n'

REACH = Box((4,), -1.0, 2.0)
POLICIES: dict[str, tuple[ActionSpace, dict[str, Any]]] = {
    "one choice of 4": (Discrete(4), {}),
    "three choices": (MultiDiscrete((3, 2, 9)), {}),
    "eight buttons": (MultiDiscrete((2,) * 8), {}),
    "Gaussian": (REACH, {}),
    "squashed Gaussian": (REACH, {"squash": True}),
    "gSDE": (REACH, {"gsde": True}),
    "Beta": (REACH, {"beta": True}),
    "hybrid": (Hybrid((3, 2), REACH), {}),
    **{f"Gaussian, {a}": (REACH, {"activation": a}) for a in ("relu", "elu", "silu", "gelu", "leaky_relu")},
    "Gaussian, GRU": (REACH, {"memory": "gru"}),
    "Gaussian, LSTM": (REACH, {"memory": "lstm"}),
}
"""Each with 8 observed numbers, normalised, and layers of 64 and 64 for actor and critic."""


def policy_of(action: ActionSpace, net: dict[str, Any]) -> ActorCritic:
    """A policy whose weights are not those of a new one."""
    policy = ActorCritic({"obs": Box((8,))}, action, NetConfig(normalize_obs=True, **net))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in policy.parameters():
            weight.add_(0.1 * torch.randn(weight.shape, generator=generator))
    policy.absorb({"obs": torch.randn((64, 8), generator=generator).numpy()})
    return policy


class Build(NamedTuple):
    """A compiler, its options, and the emulator that runs its programs."""

    compiler: list[str]
    options: list[str]
    runner: list[str]


def builds() -> dict[str, Build]:
    """Those that are here, by name."""
    zig = [sys.executable, "-m", "ziglang", "cc"] if importlib.util.find_spec("ziglang") else None
    clang = [path] if (path := shutil.which("clang")) else zig
    found: dict[str, Build] = {}
    # Fused multiply-adds are there and allowed: the pragma in the header must forbid them.
    fused = ["-march=native", "-std=gnu11", "-O3"]
    if gcc := shutil.which("gcc"):
        found["GCC x86-64"] = Build([gcc], [], [])
        found["GCC x86-64, -march=native -std=gnu11 -O3"] = Build([gcc], fused, [])
    if clang:
        found["Clang x86-64"] = Build(clang, [], [])
        found["Clang x86-64, -march=native -std=gnu11 -O3"] = Build(clang, fused, [])
    if zig and shutil.which("qemu-aarch64"):
        found["Clang aarch64"] = Build(zig, ["-target", "aarch64-linux-musl"], ["qemu-aarch64"])
    if (arm := shutil.which("arm-none-eabi-gcc")) and shutil.which("qemu-system-arm"):
        bare = [*CORTEX, "-ffreestanding", "-nostdlib", f"-T{BOARD / 'link.ld'}"]
        board = ["qemu-system-arm", "-machine", "mps2-an386", "-nographic", "-monitor", "none", "-serial", "none"]
        run = [*board, "-semihosting-config", "enable=on,target=native", "-kernel"]
        found["GCC Cortex-M4"] = Build([arm], bare, run)
        found["GCC Cortex-M4, -std=gnu11 -O3"] = Build([arm], [*bare, "-std=gnu11", "-O3"], run)
    for tool in ("gcc", "clang", "arm-none-eabi-gcc", "qemu-system-arm", "qemu-aarch64"):
        if shutil.which(tool) is None:
            print(f"c_policies: no {tool} here; skipped")
    if zig is None:
        print("c_policies: no ziglang here; aarch64 is skipped")
    return found


def same_bits(build: Build, place: Path) -> bool:
    """Compile the self-test without a warning, run it, and return whether every bit was the same."""
    source = BOARD / "start.c" if "-nostdlib" in build.options else place / "main.c"
    (place / "main.c").write_text(MAIN)
    command = [*build.compiler, *STRICT, *build.options, f"-I{place}", "-o", str(place / "program"), str(source)]
    subprocess.run(command, check=True)
    return subprocess.run([*build.runner, str(place / "program")], timeout=60, check=False).returncode == 0


def sizes(place: Path, memory: bool) -> dict[str, int]:
    """Bytes of code and constants on a Cortex-M4 with -Os, with and without the critic; bytes of stack."""
    result: dict[str, int] = {}
    text = CALL.format(memory="policy_memory *memory, " if memory else "", argument="memory, " if memory else "")
    (place / "call.c").write_text(text)
    for name, options in {"": [], "_without_value": ["-DPOLICY_NO_VALUE"]}.items():
        target = place / "call.o"
        command = ["arm-none-eabi-gcc", *CORTEX, *STRICT, "-Os", "-fstack-usage", *options, "-c", "-o", str(target)]
        subprocess.run([*command, str(place / "call.c")], check=True)
        listing = subprocess.run(["arm-none-eabi-size", "-A", str(target)], capture_output=True, text=True, check=True)
        sections = [line.split()[:2] for line in listing.stdout.splitlines() if line.startswith(".")]
        for kind, prefix in (("code", ".text"), ("constants", ".rodata")):
            result[kind + name] = sum(int(size) for section, size in sections if section.startswith(prefix))
        result["stack" + name] = max(int(line.split()[-2]) for line in (place / "call.su").read_text().splitlines())
    return result


def main(arguments: list[str]) -> int:
    found, rows, wrong = builds(), dict[str, Any](), 0
    versions = {
        tool: subprocess.run([tool, "--version"], capture_output=True, text=True, check=True).stdout.partition("\n")[0]
        for tool in ("gcc", "clang", "arm-none-eabi-gcc", "qemu-system-arm", "qemu-aarch64")
        if shutil.which(tool)
    }
    with tempfile.TemporaryDirectory(prefix="surefoot-c-") as directory:
        place = Path(directory)
        for policy, (action, net) in POLICIES.items():
            contract = export_c(policy_of(action, net), place / "policy.h", origin={}).contract
            same = {name: same_bits(build, place) for name, build in found.items()}
            wrong += list(same.values()).count(False)
            row = {"largest_difference": max(contract["proof"]["largest_difference"].values()), "same_bits": same}
            if shutil.which("arm-none-eabi-gcc"):
                row |= sizes(place, "memory" in net)
            rows[policy] = row
            print(policy, json.dumps(row), flush=True)
    if "--write" in arguments:
        RESULT.write_text(json.dumps({"versions": versions, "policies": rows}, indent=1) + "\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
