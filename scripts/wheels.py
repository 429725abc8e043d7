"""Builds the sdist and the wheel into dist/, looks into both, and tries the wheel in a separate environment.

`--without-compiler` proves the other kind of installation instead: a wheel built where no compiler is found, tried the same
way, thrown away. What surefoot depends on is borrowed from the environment this runs in; only build tools are downloaded.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
CODE = ROOT / "src"
NEEDED = {
    file.relative_to(CODE).as_posix()
    for file in sorted((CODE / "surefoot").rglob("*"))
    if file.is_file() and file.suffix not in (".pyc", ".so") and file.parent != CODE / "surefoot/native/src"
}
"""All there is, but for the kernel's sources: pages, templates, data and licences too."""
SOURCES = (
    "CMakeLists.txt",
    *(file.relative_to(ROOT).as_posix() for file in sorted((CODE / "surefoot/native").glob("*/*.[chi]*"))),
)
LEFTOVERS = (".c", ".h", ".inc", ".o", ".a", ".ninja", ".cmake", ".txt", ".pyc")
TRY = """
import sys
from surefoot import native
from surefoot.native import include_dir
assert include_dir().is_relative_to(sys.prefix), include_dir()
assert (include_dir() / "surefoot_env.h").is_file()
from surefoot.server.http import page
from surefoot.server.studio import app
for static in (app.STATIC, page.STATIC):
    assert static.is_relative_to(sys.prefix), static
    assert (static / "index.html").is_file()
print(native.kernel.__file__ if native.kernel else native.why_not)
"""


def run(*command: str | Path, **environment: str) -> str:
    """What a command printed; stderr is shown, and a failure ends everything."""
    said = subprocess.run(
        [str(word) for word in command], env=os.environ | environment, stdout=subprocess.PIPE, text=True, check=False
    )
    if said.returncode:
        sys.exit(f"wheels: {' '.join(map(str, command))} failed\n{said.stdout}")
    return said.stdout


def environment(where: Path, *packages: str | Path) -> Path:
    """A fresh environment with these packages and none of what they depend on; its python."""
    venv.create(where, with_pip=True)
    python = where / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return python


def refuse(what: str, wrong: list[str]) -> None:
    if wrong:
        sys.exit(f"wheels: {what}: {', '.join(wrong)}")


def look_into_sdist(path: Path) -> None:
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    refuse(f"{path.name} lacks", [name for name in SOURCES if name not in names])
    refuse(f"{path.name} should not have", [name for name in names if name.endswith((".so", ".pyc"))])


def look_into_wheel(path: Path, *, compiled: bool) -> None:
    names = zipfile.ZipFile(path).namelist()
    inside = [name for name in names if name.startswith("surefoot/")]
    refuse(f"{path.name} lacks", sorted(NEEDED - set(names)))
    left = [name for name in inside if name.endswith(LEFTOVERS) and name not in NEEDED]
    refuse(f"{path.name} should not have", left)
    refuse(f"{path.name} should not have", [n for n in names if not n.startswith("surefoot") or "/native/src/" in n])
    modules = [name for name in inside if name.endswith(".so")]
    if modules != (["surefoot/native/_kernel.abi3.so"] if compiled else []):
        sys.exit(f"wheels: {path.name} has these compiled modules: {modules}")
    tag = "-cp311-abi3-" if compiled else "-py3-none-any"
    if tag not in path.name:
        sys.exit(f"wheels: {path.name} should be called …{tag}…")


def try_out(wheel: Path, where: Path, *, compiled: bool) -> None:
    """Install it alone, borrow the rest, and use it."""
    python = environment(where, "--no-deps", "--no-index", wheel)
    borrowed = [entry for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))]
    (next(where.glob("lib/python*/site-packages")) / "borrowed.pth").write_text("\n".join(borrowed) + "\n")
    off = {"PYTHONPATH": "", "SUREFOOT_KERNEL": "auto", "SUREFOOT_NATIVE": "1"}
    print(run(python, "-c", TRY, **off).strip())
    surefoot = where / "bin" / "surefoot"
    said = run(surefoot, "--version", **off)
    print(said.strip())
    path = "native path" if compiled else "torch path"
    words = ["--steps", "1024", "--display", "lines", "--eval-every", "0", "--runs", where / "runs", "--name", "try"]
    trained = run(surefoot, "train", "CartPole-v1", *words, **off)
    print("\n".join(line for line in trained.splitlines() if "path" in line))
    if path not in said or path not in trained:
        sys.exit(f"wheels: {wheel.name} does not say that it has the {path}")


def main(arguments: list[str]) -> int:
    compiled = "--without-compiler" not in arguments
    with tempfile.TemporaryDirectory(prefix="surefoot-wheels-") as name:
        work = Path(name).resolve()
        tools = environment(work / "tools", "build")
        out = ROOT / "dist" if compiled else work / "dist"
        shutil.rmtree(out, ignore_errors=True)
        run(tools, "-m", "build", "--outdir", out, ROOT, **({} if compiled else {"CC": "/nonexistent"}))
        sdist, wheel = next(out.glob("*.tar.gz")), next(out.glob("*.whl"))
        look_into_sdist(sdist)
        look_into_wheel(wheel, compiled=compiled)
        try_out(wheel, work / "fresh", compiled=compiled)
        for path in (sdist, wheel):
            print(f"{path.name}  {path.stat().st_size / 1024:,.0f} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
