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
            self.found[key] = (
                made | {"cpu_seconds": round(time.process_time() - began, 1)} if isinstance(made, dict) else made
            )
            self.path.parent.mkdir(exist_ok=True)
            self.path.write_text(json.dumps(self.found, indent=1) + "\n")
        return self.found[key]


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
