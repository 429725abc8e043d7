"""What every workload measures the same way: CPU time, wall time, peak memory; one JSON line at the end."""

from __future__ import annotations

import json
import resource
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any


def cpu() -> float:
    """User plus system seconds of this process since it was started, imports included."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def peak_mb() -> float:
    """The largest the process has been; Linux counts in kilobytes, macOS in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


class Stretch:
    """The measured part of a run: begins after warm-up, long enough once it has used `seconds` of CPU."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self._cpu, self._wall = seconds, cpu(), time.perf_counter()

    @property
    def enough(self) -> bool:
        return cpu() - self._cpu >= self.seconds

    def numbers(self, steps: int) -> dict[str, float]:
        """`steps` env steps were taken since it began."""
        used, wall = cpu() - self._cpu, time.perf_counter() - self._wall
        return {
            "steps": steps,
            "cpu_seconds": used,
            "wall_seconds": wall,
            "core_share": used / wall,
            "steps_per_cpu_second": steps / used,
        }


def tell(**numbers: Any) -> None:
    """The workload's one line."""
    print(json.dumps({**numbers, "peak_mb": peak_mb()}))


def seconds_each(work: Callable[[], object], at_least: float = 0.1) -> float:
    """CPU-seconds of one call, the median of several that take `at_least` seconds together."""
    taken: list[float] = []
    while sum(taken) < at_least:
        before = time.process_time()
        work()
        taken.append(time.process_time() - before)
    return statistics.median(taken)
