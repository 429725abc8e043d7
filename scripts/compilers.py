"""Compiles the kernel with GCC and Clang for every platform, and runs it wherever that is possible.

    python scripts/compilers.py            compile all, run the driver of each build, compare the numbers
    python scripts/compilers.py aarch64-linux-musl   only this platform, and GCC
    python scripts/compilers.py --quick    as `make test` does: little optimisation, GCC's base build as the reference
    python scripts/compilers.py --emulator install qemu-user where apt may be used
    python scripts/compilers.py --module   also build the extension module with Clang and run its tests

Clang and the headers of other systems come with the Python package `ziglang`; aarch64 runs under `qemu-aarch64` (Debian's
qemu-user). What is missing is skipped by name. Windows' objects are not linked: that needs Python's import library.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
NATIVE = ROOT / "src" / "surefoot" / "native"
AVX2 = ("-mavx2", "-mfma", "-mbmi2")
AVX512 = (*AVX2, "-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl", "-mprefer-vector-width=512")
SETS = {"base": (), "avx2": AVX2, "wide": AVX2, "avx512": AVX512}
TARGETS = ("x86_64-linux-gnu", "aarch64-linux-musl", "x86_64-macos", "aarch64-macos", "x86_64-windows-gnu")
# musl: its programs need no libraries of the emulated machine.
# What CPython's own pyconfig.h of 64-bit Windows defines and the stable ABI looks at; the other headers are the same everywhere.
PYCONFIG = """
#define MS_WINDOWS
#define MS_WIN64
#define Py_ENABLE_SHARED 1
#define HAVE_DECLSPEC_DLL
#define NT_THREADS
#define SIZEOF_VOID_P 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_WCHAR_T 2
#define SIZEOF_LONG 4
#define SIZEOF_LONG_LONG 8
"""
# The largest relative difference between two builds after two epochs: sums are added in another order.
CLOSE = 2e-4


def python_headers(target: str, place: Path) -> Path:
    """The directory of Python's headers for a platform."""
    here = Path(sysconfig.get_path("include"))
    if "windows" not in target:
        return here
    for header in here.iterdir():
        (place / header.name).symlink_to(header)
    (place / "pyconfig.h").unlink()
    (place / "pyconfig.h").write_text(PYCONFIG)
    return place


def flags(optimise: str, headers: Path) -> list[str]:
    """What CMakeLists.txt passes."""
    warnings = ["-Wall", "-Wextra", "-Wno-psabi", "-Wno-unused-parameter", "-Werror"]
    include = [f"-I{NATIVE / 'src'}", f"-I{NATIVE / 'include'}", "-isystem", str(headers)]
    return [
        optimise,
        "-std=gnu11",
        *warnings,
        "-fno-math-errno",
        "-fno-trapping-math",
        "-DPy_LIMITED_API=0x030B0000",
        *include,
    ]


def compile_all(compiler: list[str], place: Path, sets: Sequence[str], options: list[str]) -> list[Path]:
    """The objects of the driver; every other source of the kernel is compiled too."""
    kernels = {f"kernel_{name}": SETS[name] for name in sets}
    sources = [p for p in sorted((NATIVE / "src").glob("*.c")) if not p.stem.startswith("kernel_")]
    for source in [*sources, *(NATIVE / "src" / f"{name}.c" for name in kernels)]:
        command = [
            *compiler,
            *options,
            *kernels.get(source.stem, ()),
            "-c",
            str(source),
            "-o",
            str(place / f"{source.stem}.o"),
        ]
        subprocess.run(command, check=True)
    return [place / f"{name}.o" for name in (*kernels, "network", "network_options")]


def build_driver(
    compiler: list[str], place: Path, objects: list[Path], sets: Sequence[str], options: list[str]
) -> Path:
    """The program that runs the kernel without Python."""
    driver = place / "driver"
    source = str(ROOT / "scripts" / "kernel_driver.c")
    only = [] if len(sets) == len(SETS) else [f"-DSETS={','.join(f'&sf_ops_{name}' for name in sets)}"]
    subprocess.run([*compiler, *options, *only, source, *map(str, objects), "-o", str(driver), "-lm"], check=True)
    return driver


def numbers(command: list[str]) -> list[float]:
    """What a driver prints."""
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return [float(word) for line in result.stdout.splitlines() for word in line.split()[1:]]


def difference(ours: list[float], theirs: list[float]) -> float:
    """The largest difference, relative to numbers above 1."""
    if len(ours) != len(theirs):
        return float("inf")
    return max(abs(a - b) / max(1.0, abs(b)) for a, b in zip(ours, theirs, strict=True))


def sets_of_this_machine() -> list[str]:
    """The instruction sets that can be run, by the installed kernel."""
    from surefoot import native

    return [] if native.kernel is None else native.kernel.instruction_sets()


def compare(
    place: Path, clang: list[str] | None, gcc: str | None, targets: Sequence[str] = TARGETS, *, quick: bool = False
) -> int:
    """Compile for every platform and run what can be run; the number of builds that differ.

    Builds of every instruction set with GCC are what the kernel's tests run: `quick` needs only one of them to compare with.
    """
    builds: dict[str, tuple[list[str], Path, Sequence[str]]] = {}
    if gcc is not None:
        sets = ["base"] if quick else list(SETS)
        options = flags("-O1" if quick else "-O3", python_headers("linux", place))
        objects = compile_all([gcc], _made(place / "gcc"), sets, options)
        builds["gcc x86_64-linux"] = ([], build_driver([gcc], place / "gcc", objects, sets, options), sets)
    for target in targets if clang is not None else ():
        assert clang is not None
        # zig's own sanitizer of undefined behaviour needs a library per platform; `make sanitize` has GCC's.
        compiler = [*clang, "-target", target, "-fno-sanitize=undefined"]
        # `wide` has the flags of `avx2` and the source of `avx512`.
        sets = [s for s in SETS if s == "base" or (target.startswith("x86_64") and not (quick and s == "wide"))]
        runner = {"x86_64-linux-gnu": "", "aarch64-linux-musl": shutil.which("qemu-aarch64") or "-"}.get(target, "-")
        optimise = "-O3" if not quick else "-O0" if runner == "-" else "-O1"
        options = flags(optimise, python_headers(target, _made(place / f"{target}-python")))
        objects = compile_all(compiler, _made(place / target), sets, options)
        print(f"compiled  clang {target}", flush=True)
        if runner != "-":
            driver = build_driver(compiler, place / target, objects, sets, options)
            builds[f"clang {target}"] = ([runner] if runner else [], driver, sets)
    reference: list[float] = []
    wrong = 0
    for name, (runner, driver, sets) in builds.items():
        for kernel in [s for s in sets_of_this_machine() or ["base"] if s in sets]:
            ours = numbers([*runner, str(driver), kernel])
            reference = reference or ours
            far = difference(ours, reference)
            wrong += far > CLOSE
            print(f"ran       {name} {kernel}: {len(ours):,} numbers, largest difference {far:.1e}", flush=True)
    return wrong


def _made(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


def install_emulator() -> None:
    """Install qemu-user if it is missing and apt may be used."""
    if shutil.which("qemu-aarch64") is None and shutil.which("apt-get") and os.geteuid() == 0:
        apt = ["apt-get", "-qq", "--no-install-recommends", "--yes"]
        for command in ([*apt, "update"], [*apt, "install", "qemu-user"]):
            subprocess.run(command, check=False, env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"})


def main(arguments: list[str]) -> int:
    if "--emulator" in arguments:
        install_emulator()
        return 0
    gcc = shutil.which("gcc")
    clang = [sys.executable, "-m", "ziglang", "cc"] if importlib.util.find_spec("ziglang") else None
    if clang is None and (path := os.environ.get("ZIG")):
        clang = [path, "cc"]
    if clang is None:
        print(
            "compilers: no Clang with other systems' headers here (pip install ziglang, or ZIG=path); only GCC is tried"
        )
    if shutil.which("qemu-aarch64") is None:
        print("compilers: no qemu-aarch64 here (apt install qemu-user); aarch64 is compiled and not run")
    with tempfile.TemporaryDirectory(prefix="surefoot-compilers-") as name:
        targets = [x for x in arguments if x in TARGETS] or TARGETS
        wrong = compare(Path(name), clang, gcc, targets, quick="--quick" in arguments)
        if clang is not None and "--module" in arguments:
            wrapper = Path(name) / "clang"
            wrapper.write_text(f'#!/bin/sh\nexec {" ".join(clang)} "$@"\n')
            wrapper.chmod(0o755)
            wrong += module_tests(wrapper, Path(name))
    return 1 if wrong else 0


def module_tests(compiler: Path, place: Path) -> int:
    """Build the extension module with Clang and run the kernel's tests on it; 1 if one fails."""
    import sanitize

    build = place / "module"
    options = [f"-DCMAKE_C_COMPILER={compiler}", f"-DPython_EXECUTABLE={sys.executable}"]
    subprocess.run(["cmake", "-S", str(ROOT), "-B", str(build), *options], check=True, stdout=subprocess.PIPE)
    subprocess.run(["cmake", "--build", str(build), "--parallel", "2"], check=True, stdout=subprocess.PIPE)
    module = sanitize.package(build / sanitize.MODULE, place)
    environment = os.environ | {"PYTHONPATH": str(place / "package"), "SUREFOOT_NATIVE": "1"}
    command = [
        sys.executable,
        "-c",
        sanitize.RUN,
        str(module),
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-q",
        "tests/unit/native",
    ]
    return int(subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode != 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
