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


class Laps:
    """The measured part of a workload, after warm-up; repeated from fresh starts until it took `seconds` of CPU.

    Everyone's laps are the same updates: a policy that has learned more ends fewer episodes, and ends cost time.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds, self.used, self.wall, self.steps = seconds, 0.0, 0.0, 0

    def begin(self) -> None:
        self._cpu, self._wall = cpu(), time.perf_counter()

    def end(self, steps: int) -> None:
        """`steps` env steps were taken since `begin`."""
        self.used += cpu() - self._cpu
        self.wall += time.perf_counter() - self._wall
        self.steps += steps

    @property
    def enough(self) -> bool:
        return self.used >= self.seconds

    def numbers(self) -> dict[str, float]:
        return {
            "steps": self.steps,
            "cpu_seconds": self.used,
            "wall_seconds": self.wall,
            "core_share": self.used / self.wall,
            "steps_per_cpu_second": self.steps / self.used,
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
