"""Makes the environments of those we are measured against, each beside the project and none of it inside.

python benchmarks/peers.py                 all of them: .venv-peers, .venv-peers-jax, .venv-peers-trl, .venv-peers-rlgames,
                                           .venv-peers-rltools, .venv-peers-cleanrl
python benchmarks/peers.py sb3 jax         some of them
PureJaxRL is no package: clone it (github.com/luchris429/purejaxrl) and give its directory as --purejaxrl.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TORCH = "torch==2.13.0"


@dataclass(frozen=True)
class Peer:
    """One environment: where it is and what is put into it, a list for each call of pip."""

    folder: str
    installs: tuple[tuple[str, ...], ...]

    @property
    def python(self) -> Path:
        return ROOT / self.folder / "bin/python"


PEERS = {
    "sb3": Peer(
        ".venv-peers",
        (
            (TORCH,),
            (
                "stable-baselines3==2.9.2",
                "sb3-contrib==2.9.2",
                "gymnasium[mujoco,box2d]",
                "fastapi",
                "uvicorn[standard]",
            ),
            ("tyro", "tensorboard"),  # what CleanRL's ppo.py imports
        ),
    ),
    # CleanRL's scripts read `final_info` as Gymnasium 0.29 has it.
    "cleanrl": Peer(".venv-peers-cleanrl", ((TORCH,), ("gymnasium[mujoco]==0.29.1", "numpy<2", "tyro", "tensorboard"))),
    # gymnax 1.0 answers a step with six values; PureJaxRL unpacks five.
    "jax": Peer(".venv-peers-jax", (("jax==0.10.2", "flax==0.12.8", "optax", "distrax", "gymnax==0.0.9"),)),
    # The last release with PPO: 1.13 deleted it.
    "trl": Peer(".venv-peers-trl", ((TORCH,), ("trl==1.12.0", "transformers==5.22.2", "peft==0.21.2"))),
    "rlgames": Peer(".venv-peers-rlgames", ((TORCH,), ("rl_games==1.6.5",))),
    # MKL is what RLtools' own documentation recommends; without it the compiled program is 15 times slower.
    "rltools": Peer(".venv-peers-rltools", (("rltools==2.2.1", "numpy", "mkl", "mkl-include"),)),
}


def install(peer: Peer, torch_index: str | None) -> None:
    if not peer.python.exists():
        venv.create(ROOT / peer.folder, with_pip=True)
    with tempfile.TemporaryDirectory() as scratch:
        kept = Path(scratch) / "kept.txt"
        kept.write_text(TORCH + "\n")  # what comes after must not bring another torch
        for packages in peer.installs:
            index = ["--index-url", torch_index] if torch_index and packages == (TORCH,) else []
            command = [str(peer.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*command, "-c", str(kept), *index, *packages], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="PEER", help=f"which: {', '.join(PEERS)} (default all)")
    parser.add_argument("--torch-index", default=os.environ.get("TORCH_INDEX"), help="where pip finds torch")
    args = parser.parse_args()
    if unknown := [name for name in args.names if name not in PEERS]:
        parser.error(f"there is no peer {unknown[0]!r}; there are {', '.join(PEERS)}")
    for name in args.names or PEERS:
        print(f"{name}: {PEERS[name].folder}", file=sys.stderr)
        install(PEERS[name], args.torch_index or None)


if __name__ == "__main__":
    main()
