"""Speed and memory of a PPO step against TRL 1.12's, in its own environment; CPU-seconds, one thread, first step dropped.

Ours is in bfloat16 where the CPU computes in it (AVX512_BF16, AMX) and in float32 elsewhere; the bars were set for the former.

python benchmarks/peers.py trl                        makes .venv-peers-trl once
python benchmarks/lm/speed.py [--rounds 3] [--fresh]  the table, and the cost over prompts and tokens; results/lm_speed.json
python benchmarks/lm/speed.py --only tiny             one size
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import common

HERE = Path(__file__).resolve().parent
PEER = HERE.parents[1] / ".venv-peers-trl/bin/python"
OURS = {
    "gpt2, LoRA everywhere": ["--size", "gpt2", "--learn-rows", "4"],
    "gpt2, LoRA in the top 4, trunk once a rollout": ["--size", "gpt2", "--learn-rows", "4", "--top", "4"],
    "tiny, LoRA, fp32": ["--size", "tiny", "--dtype", "float32"],
}
THEIRS = {
    "gpt2, TRL as it is used (4 models, fp32)": ["--size", "gpt2"],
    "gpt2, TRL with LoRA, bf16": ["--size", "gpt2", "--lora"],
    "gpt2, TRL with LoRA, fp32": ["--size", "gpt2", "--lora", "--dtype", "float32"],
    "tiny, TRL (4 models, fp32)": ["--size", "tiny"],
}
BARS = [  # ours, the peer, times faster, times less memory (0: none was set)
    ("gpt2, LoRA everywhere", "gpt2, TRL as it is used (4 models, fp32)", 4.5, 6.0),
    ("gpt2, LoRA everywhere", "gpt2, TRL with LoRA, bf16", 2.5, 3.0),
    ("gpt2, LoRA everywhere", "gpt2, TRL with LoRA, fp32", 2.5, 3.0),
    ("gpt2, LoRA in the top 4, trunk once a rollout", "gpt2, TRL as it is used (4 models, fp32)", 6.0, 0.0),
    ("tiny, LoRA, fp32", "tiny, TRL (4 models, fp32)", 3.5, 0.0),
]
PROMPTS, TOKENS = (1, 2, 4, 8, 16), (64, 128, 256)


def measure(python: Path | str, script: str, words: list[str]) -> dict[str, Any]:
    done = subprocess.run(
        [str(python), str(HERE / script), *words],
        env={**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        capture_output=True, text=True, check=False, cwd=HERE,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{script} {' '.join(words)} failed:\n{done.stderr[-2000:]}")
    said = json.loads(done.stdout.splitlines()[-1])
    return {"step": statistics.median(said["cpu_seconds"][1:]), "peak_mb": said["peak_mb"], "all": said}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", help="rows whose name begins so")
    parser.add_argument("--no-sweep", action="store_true")
    parser.add_argument("--fresh", action="store_true")
    args = parser.parse_args()
    kept = common.Kept("lm_speed", fresh=args.fresh)
    wanted = [n for n in (*OURS, *THEIRS) if n.startswith(args.only or "")]
    for number in range(args.rounds):  # in turn, so that both see the same machine
        for name in wanted:
            if name in OURS:
                kept.get(f"{name} #{number}", lambda n=name: measure(sys.executable, "step_ours.py", OURS[n]))
            elif PEER.exists():
                kept.get(f"{name} #{number}", lambda n=name: measure(PEER, "step_trl.py", THEIRS[n]))
            else:
                print(f"{name}: no peer; python benchmarks/peers.py trl")
                continue
            print(f"{name}: {kept.found[f'{name} #{number}']['step']:.2f} CPU-s a step", flush=True)

    def median(name: str, what: str) -> float | None:
        found = [made[what] for key, made in kept.found.items() if key.startswith(f"{name} #")]
        return statistics.median(found) if found else None

    rows = []
    for ours, theirs, bar, less in BARS:
        a, b = median(ours, "step"), median(theirs, "step")
        if a is not None and b is not None:
            memory = (median(theirs, "peak_mb") or 0) / (median(ours, "peak_mb") or 1)
            met = "yes" if b / a >= bar and memory >= less else "NO"
            rows.append([ours, theirs, a, b, b / a, bar, memory, less or "", met])
    print(
        common.table(["ours", "peer", "CPU-s", "peer CPU-s", "times", "bar", "memory, times less", "bar", "met"], rows)
    )
    if not args.no_sweep and not (args.only or "").startswith("tiny"):
        sweep(kept)


def sweep(kept: common.Kept) -> None:
    """Cost over prompts and over tokens, as numbers and as a plot."""
    found = {}
    for prompts in PROMPTS:
        words = ["--size", "gpt2", "--learn-rows", "4", "--prompts", str(prompts), "--steps", "2"]
        found[f"{prompts} prompts"] = kept.get(
            f"sweep prompts {prompts}", lambda w=words: measure(sys.executable, "step_ours.py", w)
        )["step"]
    for tokens in TOKENS:
        words = ["--size", "gpt2", "--learn-rows", "4", "--tokens", str(tokens), "--steps", "2"]
        found[f"{tokens} tokens"] = kept.get(
            f"sweep tokens {tokens}", lambda w=words: measure(sys.executable, "step_ours.py", w)
        )["step"]
    print(common.table(["workload", "CPU-s a step"], [[k, v] for k, v in found.items()]))
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        return
    _, axes = plt.subplots(1, 2, figsize=(8, 3))
    axes[0].plot(PROMPTS, [found[f"{p} prompts"] for p in PROMPTS], marker="o")
    axes[0].set(xlabel="prompts (64 tokens)", ylabel="CPU-s a step", ylim=0)
    axes[1].plot(TOKENS, [found[f"{t} tokens"] for t in TOKENS], marker="o")
    axes[1].set(xlabel="new tokens (8 prompts)", ylim=0)
    plt.tight_layout()
    plt.savefig(common.RESULTS.parents[1] / "docs/assets/lm-speed.png", dpi=120)


if __name__ == "__main__":
    main()
