"""Where a world's envs run: in this process or in workers, by what a step costs."""

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
"""How many processes step envs besides this one."""

HANDSHAKE = 35e-6
"""Seconds that a step of all streams takes beyond the largest share when there are workers."""
PER_WORKER = 125e-6
"""Seconds more for each worker that has to be woken. benchmarks/workers.py measures both: on two idle virtual cores,
CartPole's 79 µs of 8 envs become 199 with one worker and 316 with two."""
SLOWDOWN = 1.4
"""How much longer a share takes than its envs would alone: cores share caches and, where they are hyperthreads, a core;
and all wait for the share with the most resets. Hopper's 1268 µs of 8 envs become 1008 with one worker, not 634 + 160."""
GAIN = 1.15
"""Workers must be faster by this much; less is soon lost to a longer start and to a core that others want too."""
MOST = 16
"""Workers at most; beyond that, waking them is most of the work."""
_STEPS, _BUDGET = 48, 0.15


class Placement(NamedTuple):
    """How many workers, and why."""

    workers: int
    why: str


def choose_workers(step: float, streams: int, cores: int) -> Placement:
    """The number of workers that makes a step of all streams cheapest, or 0 if none is `GAIN` times faster.

    Alone, this process takes `streams · step` seconds. With W workers beside it, it takes as long as the largest share
    and the handshake:

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
    helped = f"{_micro(cost)} with {workers} worker{'s' if workers > 1 else ''}"
    if alone < GAIN * cost:
        return Placement(0, f"envs in this process: {took}; it would be about {helped}")
    return Placement(workers, f"envs in {workers + 1} processes: {took}; it should be about {helped}")


def place(build: Callable[[], SingleEnv], streams: int) -> Placement:
    """What "auto" means: measure an env that is thrown away, unless it is clear without."""
    if streams < 2:
        return Placement(0, "envs in this process: there is only one")
    if os.name != "posix":
        return Placement(0, "envs in this process: workers need POSIX")
    if cores() < 2:
        return Placement(0, "envs in this process: it may use only one core")
    try:
        require_sendable([build])
        step = measure(build)
    except Exception as why:
        # Not ours to raise: if the env is broken, the world that is made next says so in its own words.
        return Placement(0, f"envs in this process, not measured: {why}")
    return choose_workers(step, streams, free_cores())


def measure(build: Callable[[], SingleEnv], *, steps: int = _STEPS, budget: float = _BUDGET) -> float:
    """Seconds per step of an env of its own, resets included, under random actions; a median of eight pieces.

    Takes at most `budget` seconds and one step more. The random numbers are the env's own, seeded apart from any run's.
    """
    env = build()
    try:
        if env.render_mode == "human":
            raise EnvError("it draws into a window")
        env.action_space.seed(0)
        env.reset(seed=2**31 - 1)
        env.step(env.action_space.sample())  # the first one loads what is loaded late
        began, pieces = time.perf_counter(), []
        while len(pieces) < 8 and (not pieces or time.perf_counter() - began < budget):
            piece_began, taken = time.perf_counter(), 0
            while taken < max(1, steps // 8) and (taken == 0 or time.perf_counter() < began + budget):
                _, _, over, cut, _ = env.step(env.action_space.sample())
                taken += 1
                if over or cut:
                    env.reset()
            pieces.append((time.perf_counter() - piece_began) / taken)
    finally:
        env.close()
    return sorted(pieces)[len(pieces) // 2]


def cores() -> int:
    """Cores that this process may use, by its affinity and by its container's quota."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return min(count, max(1, int(quota) // int(period)))
    except (OSError, ValueError):  # no cgroups here, or "max": no quota
        return count


def free_cores() -> int:
    """Those of `cores` that nobody else wants at this moment, this process's own included."""
    try:
        running = sorted(_running() for _ in range(9))[4]
    except (OSError, ValueError, IndexError):  # only Linux tells
        return cores()
    others = running - 1
    return max(1, min(cores(), (os.cpu_count() or 1) - others))


def _running() -> int:
    """How many threads of this machine run or could run now. Not the load average, which remembers the run before."""
    time.sleep(0.001)
    return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0])


def _micro(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f} µs" if seconds < 0.01 else f"{seconds * 1e3:,.0f} ms"
