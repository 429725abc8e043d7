"""What the language benchmarks share: results kept per seed, CPU time, one thread."""

from __future__ import annotations

import json
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
RESULTS = Path(__file__).resolve().parents[1] / "results"


class Kept:
    """A JSON file of results by name; what is there is not made again."""

    def __init__(self, name: str, *, fresh: bool = False) -> None:
        self.path = RESULTS / f"{name}.json"
        self.found: dict[str, Any] = {}
        if self.path.is_file() and not fresh:
            self.found = json.loads(self.path.read_text())

    def get(self, key: str, make: Callable[[], Any]) -> Any:
        """The result called `key`, made if it is missing and written down at once."""
        if key not in self.found:
            began = time.process_time()
            made = make()
            if isinstance(made, dict):
                earlier = made.pop("earlier_seconds", 0.0)
                made |= {"cpu_seconds": round(earlier + time.process_time() - began, 1)}
            self.found[key] = made
            self.path.parent.mkdir(exist_ok=True)
            self.path.write_text(json.dumps(self.found, indent=1) + "\n")
        return self.found[key]


def go_on(name: str, training: Any, row: Callable[[Any], Any], *, every: int = 4) -> tuple[list[Any], float]:
    """(a row for each step, CPU-seconds spent before this process): train to the end, from where a stopped run was."""
    from surefoot.learn.checkpoint.checkpoint import load_checkpoint, save_checkpoint
    from surefoot.learn.checkpoint.retention import prune
    from surefoot.lm.download import cache_root

    root = cache_root() / "benchmarks" / name
    rows: list[Any] = []
    before, began = 0.0, time.process_time()
    if root.is_dir() and any(root.iterdir()):
        found = load_checkpoint(root)
        training.set_state(found.parts)
        rows, before = list(found.meta["rows"]), float(found.meta["spent"])
    root.mkdir(parents=True, exist_ok=True)
    while not training.finished:
        step = training.step()
        rows.append(row(step))
        print(f"{name} step {step.number}: {rows[-1]}", flush=True)
        if training.finished or step.number % every == 0:
            spent = before + time.process_time() - began
            save_checkpoint(root, step.number, training.state(), meta={"rows": rows, "spent": spent})
            prune(root, 1)
    return rows, before


def peak_mb() -> float:
    """Most memory this process ever had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def table(head: list[str], rows: list[list[Any]]) -> str:
    """Markdown."""
    cells = [
        head,
        ["---"] * len(head),
        *([f"{x:.3g}" if isinstance(x, float) else str(x) for x in row] for row in rows),
    ]
    return "\n".join("| " + " | ".join(row) + " |" for row in cells)
