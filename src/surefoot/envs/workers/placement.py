"""Decide whether envs run in this process or in workers, by the measured cost of a step."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from surefoot.envs.gym.single_envs import SingleEnv
from surefoot.envs.workers.env_workers import require_sendable
from surefoot.errors import EnvError

Workers = int | Literal["auto"]
"""Number of processes that step envs besides this one."""

# Seconds of a step with workers beyond the largest share, and more for each worker to wake. benchmarks/workers.py measures
# both: on two idle virtual cores, CartPole's 79 µs of 8 envs become 199 with one worker and 316 with two.
HANDSHAKE = 35e-6
PER_WORKER = 125e-6
# How much longer a share takes than its envs would alone: cores share caches and, as hyperthreads, a core; and all wait for
# the share with the most resets. Hopper's 1268 µs of 8 envs become 1008 with one worker, not 634 + 160.
SLOWDOWN = 1.4
# Workers must be faster by this factor; less is soon lost to a longer start and to other processes on the cores.
GAIN = 1.15
# Most workers; beyond that, waking them is most of the work.
MOST = 16
# Steps and seconds of the measurement: long enough for a median of eight, short enough not to be noticed at a start.
_STEPS, _BUDGET = 48, 0.15


class Placement(NamedTuple):
    """The number of workers and the reason."""

    workers: int
    why: str


def choose_workers(step: float, streams: int, cores: int) -> Placement:
    """Return the number of workers that minimises the time of a step of all streams; 0 if none is `GAIN` times faster.

    Alone, this process takes `streams · step` seconds. With W workers, a step takes as long as the largest share and the
    handshake:

        ⌈streams / (W + 1)⌉ · step · SLOWDOWN + HANDSHAKE + W · PER_WORKER        1 ≤ W < min(cores, streams)
    """
    alone = streams * step
    took = f"a step takes {_micro(step)}, of all {streams} envs {_micro(alone)}"
    counts = range(1, min(cores, streams, MOST + 1))
    if not counts:
        return Placement(0, f"envs in this process: {took}, and no core is free for a worker")
    cost, workers = min(
        (math.ceil(streams / (w + 1)) * step * SLOWDOWN + HANDSHAKE + w * PER_WORKER, w) for w in counts
    )
    with_workers = f"{_micro(cost)} with {workers} worker{'s' if workers > 1 else ''}"
    if alone < GAIN * cost:
        return Placement(0, f"envs in this process: {took}; it would be about {with_workers}")
    return Placement(workers, f"envs in {workers + 1} processes: {took}; it should be about {with_workers}")


def place(build: Callable[[], SingleEnv], streams: int) -> Placement:
    """Return the placement for "auto"; measure a temporary env unless the answer is clear without."""
    if streams < 2:
        return Placement(0, "envs in this process: there is only one")
    if os.name != "posix":
        return Placement(0, "envs in this process: workers need POSIX")
    if cores() < 2:
        return Placement(0, "envs in this process: only one core is available")
    try:
        require_sendable([build])
        step = measure(build)
    except Exception as why:
        # If the env is broken, making the world raises a better error.
        return Placement(0, f"envs in this process, not measured: {why}")
    return choose_workers(step, streams, free_cores())


def measure(build: Callable[[], SingleEnv], *, steps: int = _STEPS, budget: float = _BUDGET) -> float:
    """Return the seconds per step of a temporary env with random actions, resets included; a median of eight pieces.

    Takes at most `budget` seconds and one step more. Its seed is not one of any run's.
    """
    env = build()
    try:
        if env.render_mode == "human":
            raise EnvError("it renders to a window")
        env.action_space.seed(0)
        env.reset(seed=2**31 - 1)
        env.step(env.action_space.sample())  # the first step may load modules and files
        began, pieces = time.perf_counter(), []
        while len(pieces) < 8 and (not pieces or time.perf_counter() - began < budget):
            piece_began, count = time.perf_counter(), 0
            while count < max(1, steps // 8) and (count == 0 or time.perf_counter() < began + budget):
                _, _, over, cut, _ = env.step(env.action_space.sample())
                count += 1
                if over or cut:
                    env.reset()
            pieces.append((time.perf_counter() - piece_began) / count)
    finally:
        env.close()
    return sorted(pieces)[len(pieces) // 2]


def cores() -> int:
    """Return the cores that this process may use, by its affinity and its container's quota."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return min(count, max(1, int(quota) // int(period)))
    except (OSError, ValueError):  # no cgroups, or "max": no quota
        return count


def free_cores() -> int:
    """Return those of `cores` that are idle at this moment, this process's core included."""
    try:
        running = sorted(_running() for _ in range(9))[4]
    except (OSError, ValueError, IndexError):  # not Linux
        return cores()
    others = running - 1
    return max(1, min(cores(), (os.cpu_count() or 1) - others))


def _running() -> int:
    """Return the runnable threads of this machine now; the load average would still include the previous run."""
    time.sleep(0.001)
    return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0])


def _micro(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f} µs" if seconds < 0.01 else f"{seconds * 1e3:,.0f} ms"
