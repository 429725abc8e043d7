"""What worker processes bring: a world's steps in one process and in several, in turns, and what the handshake costs.

    python benchmarks/workers.py --envs Hopper-v5 CartPole-v1 --streams 8 --workers 0 1 2 --seconds 10

Prints, for each number of workers, the median over short bursts of: microseconds a step of all streams takes, env steps
a second, CPU microseconds over all processes, and how many cores other processes used meanwhile. With --think, the parent
is busy for so many microseconds between steps, as a policy would be. With --wait, bursts are only begun while a core is free.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from surefoot.data.spaces import Box
from surefoot.envs.api import World
from surefoot.envs.make import make_world
from surefoot.envs.workers.placement import cores, free_cores
from surefoot.envs.workers.process_world import ProcessWorld

BURST = 0.15


def worker_cpu(world: World) -> float:
    """CPU seconds of a world's workers so far."""
    if not isinstance(world, ProcessWorld):
        return 0.0
    paths = [Path(f"/proc/{pid}/schedstat") for pid in world.worker_pids]
    return sum(int(path.read_text().split()[0]) for path in paths) / 1e9


def machine_cpu() -> float:
    """CPU seconds of the whole machine so far."""
    ticks = [int(part) for part in Path("/proc/stat").read_text().splitlines()[0].split()[1:8]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def burst(world: World, actions: list[np.ndarray], think: float) -> dict[str, float]:
    busy, cpu, begin, steps = machine_cpu(), time.process_time() + worker_cpu(world), time.perf_counter(), 0
    while time.perf_counter() - begin < BURST:
        world.step(actions[steps % len(actions)])
        steps += 1
        until = time.perf_counter() + think
        while think and time.perf_counter() < until:
            pass
    wall = time.perf_counter() - begin
    cpu = time.process_time() + worker_cpu(world) - cpu
    return {
        "wall": wall / steps - think,
        "cpu": cpu / steps - think,
        "others": max(0.0, (machine_cpu() - busy - cpu) / wall),
    }


def random_actions(world: World, rng: np.random.Generator) -> np.ndarray:
    if isinstance(world.action, Box):
        low, high = world.action.bounds()
        return rng.uniform(low, high, (world.num_envs, *world.action.shape)).astype(np.float32)
    assert hasattr(world.action, "n"), f"{world.name} has several choices at once"
    return rng.integers(0, world.action.n, world.num_envs)


def compare(env: str, args: argparse.Namespace) -> None:
    worlds: dict[int, World] = {}
    for count in args.workers:
        begin = time.perf_counter()
        worlds[count] = make_world(env, args.streams, backend="gymnasium", workers=count)
        worlds[count].reset(0)
        print(f"{env}: {count} workers, made in {time.perf_counter() - begin:.2f} s")
    rng = np.random.default_rng(0)
    actions = [random_actions(worlds[args.workers[0]], rng) for _ in range(64)]
    found: dict[int, list[dict[str, Any]]] = {count: [] for count in worlds}
    until = time.monotonic() + args.seconds
    while time.monotonic() < until:
        if args.wait and free_cores() < cores():
            time.sleep(0.2)
            continue
        for count, world in worlds.items():
            found[count].append(burst(world, actions, args.think * 1e-6))
    for count, world in worlds.items():
        world.close()
        rows = found[count]
        kept = [row for row in rows if row["others"] < 0.2] if args.wait else rows
        if not kept:
            print(f"  {count} workers: nothing in {len(rows)} bursts that others did not disturb")
            continue
        wall, cpu, others = (median(row[name] for row in kept) for name in ("wall", "cpu", "others"))
        print(
            f"  {count} workers: {wall * 1e6:7.0f} µs a step of all {args.streams}, {args.streams / wall:8,.0f} steps/s, "
            f"{cpu * 1e6:7.0f} µs CPU, others {others:.2f} cores ({len(kept)} of {len(rows)} bursts)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", nargs="+", default=["Hopper-v5", "CartPole-v1"])
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--think", type=float, default=0.0)
    parser.add_argument("--wait", action="store_true")
    args = parser.parse_args()
    print(f"{cores()} cores, {free_cores()} of them free")
    for env in args.envs:
        compare(env, args)


if __name__ == "__main__":
    main()
