"""W5 by RLtools: its own Pendulum benchmark, compiled from a checkout of its repository. Prints JSON.

python rltools_pendulum.py DIR SEED

Needs g++ and OpenBLAS (libopenblas-dev). The program is changed in two places: it takes its seed from the command line, and it
includes the header that gives its layers their BLAS products, without which it runs on generic loops, 15 times slower. It is
compiled once per checkout and flags; compiling is not counted.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = "src/rl/environments/pendulum/ppo/cpu"
FLAGS = ("-std=c++17", "-Ofast", "-march=native", "-DRL_TOOLS_BACKEND_ENABLE_OPENBLAS", "-DBENCHMARK")
ADAM = "#include <rl_tools/nn/optimizers/adam/instance/operations_generic.h>\n"
CHANGES = (
    (ADAM, ADAM + "#include <rl_tools/nn/operations_cpu_mux.h>\n"),
    ("for (TI seed=0; seed < 1; seed++)", "for (TI seed=std::atoi(argv[1]), last=seed; seed <= last; seed++)"),
)


def changed(program: str) -> str:
    """Return training.cpp with the two changes."""
    for before, after in CHANGES:
        if program.count(before) != 1:
            raise SystemExit(
                f"RLtools' training.cpp is not the one this was written for: {before.strip()!r} is missing"
            )
        program = program.replace(before, after)
    return program


def compiled(checkout: Path) -> Path:
    """Return the program, which calls BLAS."""
    source = changed((checkout / PROGRAM / "training.cpp").read_text())
    folder = Path(tempfile.gettempdir()) / f"surefoot-{os.getuid()}-rltools"
    folder.mkdir(mode=0o700, exist_ok=True)
    key = hashlib.sha256(json.dumps([source, FLAGS, str(checkout)]).encode()).hexdigest()[:12]
    binary = folder / f"pendulum-{key}"
    if not binary.exists():
        (folder / "training.cpp").write_text(source)
        includes = [f"-I{checkout / 'include'}", f"-I{checkout / PROGRAM}"]
        command = ["g++", *FLAGS, *includes, str(folder / "training.cpp"), "-o", f"{binary}.new", "-lopenblas"]
        subprocess.run(command, check=True)
        Path(f"{binary}.new").rename(binary)
    wanted = subprocess.run(["nm", "-D", "--undefined-only", str(binary)], check=True, capture_output=True, text=True)
    if "cblas_sgemm" not in wanted.stdout:
        raise SystemExit("RLtools was compiled without BLAS")
    return binary


def child_cpu() -> float:
    """User plus system seconds of the children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(checkout: Path, seed: int) -> None:
    """Train and evaluate once."""
    binary = compiled(checkout.resolve())
    before = child_cpu()
    done = subprocess.run([str(binary), str(seed)], check=True, capture_output=True, text=True)
    used = child_cpu() - before
    returned = re.search(r"Mean return: (\S+)", done.stdout)
    updates = re.search(r"PPO steps: (\d+)", done.stdout)
    if returned is None or updates is None:
        raise SystemExit(f"RLtools wrote no result: {done.stdout}")
    print(
        json.dumps(
            {
                "cpu_seconds": used,
                "return": float(returned[1]),
                "steps": int(updates[1]) * 4096,
                "peak_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**10,
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
