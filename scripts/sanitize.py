"""Builds the kernel with AddressSanitizer and UndefinedBehaviorSanitizer and runs its own tests on that build.

The build is kept in `build/sanitize`, so that only what changed is compiled again; the installed kernel is unchanged. What is
run is what needs no torch: `tests/unit/native`, or whatever pytest arguments are given. With `--build` nothing is run: that
needs no more than Python and a compiler, and can be done while everything else is being installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "sanitize"
PACKAGE = ROOT / "src" / "surefoot"
MODULE = "_kernel.abi3.so"

RUN = """
import sys
from importlib.machinery import BuiltinImporter, FrozenImporter, PathFinder

# An editable install installs a finder, which would find the installed kernel first.
sys.meta_path[:] = [f for f in sys.meta_path if f in (BuiltinImporter, FrozenImporter, PathFinder)]
wanted, *arguments = sys.argv[1:]
from surefoot import native

if native.kernel is None or native.kernel.__file__ != wanted:
    found = native.why_not or native.kernel.__file__
    sys.exit(f"sanitize: the tests would not run on the sanitized kernel {wanted} but: {found}")
import pytest

sys.exit(pytest.main(arguments))
"""


def runtime(compiler: str) -> str | None:
    """The compiler's library of AddressSanitizer, which a Python that was built without it must load first."""
    for name in ("libasan.so", "libclang_rt.asan-x86_64.so", "libclang_rt.asan.so"):
        said = subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=False)
        path = said.stdout.strip()
        if said.returncode == 0 and Path(path).is_absolute() and Path(path).exists():
            return str(Path(path).resolve())
    return None


def can_sanitize(compiler: str, directory: Path) -> bool:
    """True if a program of one line can be built with both sanitizers."""
    source = directory / "one.c"
    source.write_text("int main(void) { return 0; }\n")
    flags = ["-fsanitize=address,undefined", "-o", str(directory / "one")]
    return subprocess.run([compiler, *flags, str(source)], capture_output=True, check=False).returncode == 0


def build(compiler: str) -> Path:
    """The sanitized module, made or brought up to date."""
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    # The interpreter that a virtual environment was made of: the same headers, before and after it is there.
    python = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    options = [f"-DCMAKE_C_COMPILER={compiler}", f"-DPython_EXECUTABLE={python}", "-DSUREFOOT_SANITIZE=ON"]
    command = ["cmake", "-S", str(ROOT), "-B", str(BUILD), *generator, *options]
    if subprocess.run(command, check=False, capture_output=True).returncode:  # made of another place or generator
        shutil.rmtree(BUILD, ignore_errors=True)
        subprocess.run(command, check=True, stdout=subprocess.PIPE)
    subprocess.run(["cmake", "--build", str(BUILD), "--parallel", "2"], check=True, stdout=subprocess.PIPE)
    return BUILD / MODULE


def package(module: Path, directory: Path) -> Path:
    """The module's place inside a package of links to the sources."""
    native = directory / "package" / "surefoot" / "native"
    native.mkdir(parents=True)
    for path in [*PACKAGE.iterdir(), *(PACKAGE / "native").iterdir()]:
        if path.name not in ("native", "__pycache__") and path.suffix != ".so":
            (directory / "package" / path.relative_to(PACKAGE.parent)).symlink_to(path)
    shutil.copy(module, native / MODULE)
    return native / MODULE


def main(arguments: list[str]) -> int:
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang") or shutil.which("cc")
    if compiler is None or shutil.which("cmake") is None:
        print("sanitize: there is no C compiler or no CMake here; the kernel is not looked at")
        return 0
    with tempfile.TemporaryDirectory(prefix="surefoot-sanitize-") as name:
        directory = Path(name).resolve()
        library = runtime(compiler)
        if library is None or not can_sanitize(compiler, directory):
            print(f"sanitize: {compiler} has no AddressSanitizer; the kernel is not looked at")
            return 0
        built = build(compiler)
        if arguments == ["--build"]:
            return 0
        module = package(built, directory)
        environment = os.environ | {
            "LD_PRELOAD": library,
            # Python itself leaks what it keeps to the end; its small objects need real allocations to have edges.
            "ASAN_OPTIONS": "detect_leaks=0:strict_string_checks=1",
            "UBSAN_OPTIONS": "print_stacktrace=1",
            "PYTHONMALLOC": "malloc",
            "PYTHONPATH": str(directory / "package"),
            "SUREFOOT_NATIVE": "1",
        }
        tests = arguments or ["tests/unit/native"]
        # The sanitizers' reports go to the process's own stderr, which pytest would otherwise keep to itself.
        plugins = ["-p", "no:cacheprovider", "-p", "no:xdist", "--capture=sys"]
        command = [sys.executable, "-c", RUN, str(module), *plugins, *tests]
        code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    if code:
        print(f"sanitize: the tests on the sanitized kernel ended with {code}", file=sys.stderr)
    return 1 if code else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
