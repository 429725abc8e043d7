"""Three hundred cycles of capture and training in one process: does it leak, freeze, or forget?

python benchmarks/soak.py                    300 cycles of queue_conflict, under five minutes
python benchmarks/soak.py --cycles 40        a try

Each cycle captures samples with the policy of now, writes and reads them, learns from them and from live towns, and
records both. After a warm-up resident memory may grow by 8 KiB a cycle at most; file descriptors and threads stay; the
record rotates; no two updates are alike; at the end the policy is better than at the start. Exit code 1 if not.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
OUT = HERE / "results" / "soak.json"
MOST_KIB_A_CYCLE = 8.0


def resident_kib() -> float:
    """Memory of this process that is in RAM."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return float(line.split()[1])
    raise RuntimeError("no VmRSS in /proc/self/status; this benchmark needs Linux")


def slope(values: list[float]) -> float:
    """Theil-Sen: the median of the slopes between all pairs, which a single jump cannot bend."""
    y = np.array(values)
    i, j = np.triu_indices(len(y), 1)
    return float(np.median((y[j] - y[i]) / (j - i))) if len(y) > 1 else 0.0


def soak(cycles: int, folder: Path, scenario: str, rotate_bytes: int) -> dict[str, Any]:
    from surefoot.data.replayset import ReplayDataset, read_manifest
    from surefoot.telemetry.files.rotation import rotated_parts
    from surefoot.telemetry.writer import Recorder
    from surefoot.town.training.run import TownTraining

    town = TownTraining(scenario, towns=8, settings={"lr": 1e-3})
    before = float(town.measure(64)["return"].mean())
    recorder = Recorder(folder / "telemetry.ndjson", "soak", rotate_bytes=rotate_bytes, updates_per_second=1e9)
    recorder.header(env=f"town/{scenario}", seed=0, config=town.training.spec.to_json())
    memory, descriptors, threads, seen, alike = [], [], [], set[tuple[float, ...]](), 0
    begin = time.perf_counter()
    for cycle in range(cycles):
        where = folder / "capture"
        town.capture(40).save(where)
        dataset = ReplayDataset(read_manifest(where / "rollout_sample_manifest.json").entries, batch_size=3)
        reports = town.learn(dataset) + town.learn(epochs=1)
        shutil.rmtree(where)
        for report in reports:
            key = (report.loss, report.policy_loss, report.value_loss, report.entropy, report.grad_norm)
            alike += key in seen
            seen.add(key)
            recorder.update(
                env_steps=town.training.env_steps,
                updates=report.update,
                m={**report.metrics(), **report.stats},
                seconds=report.seconds,
                labels={"data_mode": "mixed"},
            )
        memory.append(resident_kib())
        descriptors.append(len(os.listdir("/proc/self/fd")))
        threads.append(threading.active_count())
        if cycle % 50 == 49:
            print(
                f"cycle {cycle + 1}: {memory[-1] / 1024:.1f} MiB, {descriptors[-1]} files, {threads[-1]} threads",
                flush=True,
            )
    seconds = time.perf_counter() - begin
    recorder.close("finished")
    warm = cycles // 3
    return {
        "cycles": cycles,
        "seconds": seconds,
        "kib_a_cycle": slope(memory[warm:]),
        "mib": memory[-1] / 1024,
        "descriptors": [min(descriptors[warm:]), max(descriptors[warm:])],
        "threads": [min(threads[warm:]), max(threads[warm:])],
        "parts": 1 + len(rotated_parts(folder / "telemetry.ndjson")),
        "alike": alike,
        "updates": len(seen),
        "return_before": before,
        "return_after": float(town.measure(64)["return"].mean()),
    }


def verdict(found: dict[str, Any]) -> list[tuple[str, bool, str]]:
    """(what, holds, in numbers)."""
    return [
        (
            "memory",
            found["kib_a_cycle"] <= MOST_KIB_A_CYCLE,
            f"{found['kib_a_cycle']:.2f} KiB a cycle after the warm-up",
        ),
        ("files", found["descriptors"][0] == found["descriptors"][1], f"{found['descriptors']} open"),
        ("threads", found["threads"][0] == found["threads"][1], f"{found['threads']}"),
        ("record", found["parts"] > 1, f"{found['parts']} parts"),
        ("moving", found["alike"] == 0, f"{found['alike']} of {found['updates']} updates are like another"),
        (
            "learning",
            found["return_after"] > found["return_before"],
            f"{found['return_before']:.3f} → {found['return_after']:.3f}",
        ),
        ("time", found["seconds"] < 300, f"{found['seconds']:.0f} s"),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=300)
    parser.add_argument("--scenario", default="queue_conflict")
    parser.add_argument(
        "--rotate-bytes", type=int, default=None, help="default: so that the record rotates a few times"
    )
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    from surefoot.train.device import pin_threads

    pin_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        found = soak(args.cycles, Path(scratch), args.scenario, args.rotate_bytes or max(20_000, 700 * args.cycles))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(found, indent=1) + "\n")
    checks = verdict(found)
    for name, ok, told in checks:
        print(f"{'ok  ' if ok else 'FAIL'} {name}: {told}")
    return 0 if all(ok for _, ok, _ in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
