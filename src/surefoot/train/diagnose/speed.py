"""Measure training speed on this machine: steps per second, time per part, and advice on what to change."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch

from surefoot.envs.make import backend_of
from surefoot.envs.register import own_worlds
from surefoot.errors import ConfigError
from surefoot.train.training import Training

PARTS = ("env", "policy", "update", "rest")
# A part with at least this share of the time dominates: speeding up the others gains at most 2 times.
DOMINATES = 0.5
# From this share of a matrix product's speed on, an update counts as limited by arithmetic rather than overhead. A higher
# value recommends larger minibatches to more users, a lower one smaller networks.
BUSY = 0.3
# Minibatch size that is suggested if overhead dominates. A larger one would be faster but changes learning more.
WIDE_MINIBATCH = 256
# Below this share of one core, other processes slow the measurement down noticeably.
FREE_CORE = 0.85


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Measurements of training, after one update of warm-up."""

    env: str
    backend: str
    """Implementation of the env: "surefoot" or "gymnasium"."""
    envs: int
    threads: int
    steps: int
    updates: int
    gradient_steps: int
    wall_seconds: float
    cpu_seconds: float
    seconds: dict[str, float]
    """Wall seconds in "env", "policy", "update" and "rest"."""
    path: str
    path_reason: str
    peak_mb: float | None
    """Peak memory of the process in MB; None if the system does not report it."""
    sgemm_gflops: float
    """Speed of a matrix product of 1024 × 1024 on this machine, with the same number of threads."""
    update_gflops: float
    """Approximate speed of the updates, computed from the sizes of the policy's layers."""

    @property
    def steps_per_second(self) -> float:
        return self.steps / self.wall_seconds

    @property
    def steps_per_cpu_second(self) -> float:
        return self.steps / self.cpu_seconds

    def share(self, part: str) -> float:
        """Return the share of the wall time that a part took, 0 … 1."""
        return self.seconds[part] / self.wall_seconds

    def as_dict(self) -> dict[str, Any]:
        """Return all fields and rates as JSON values."""
        rates = {"steps_per_second": self.steps_per_second, "steps_per_cpu_second": self.steps_per_cpu_second}
        return {**asdict(self), **rates}


def measure(
    training: Training,
    *,
    seconds: float = 5.0,
    steps: int | None = None,
    watch: Callable[[float], None] = lambda share: None,
) -> Measured:
    """Train for `seconds`, or for `steps` env steps, and return the measurements. At least one complete update is measured.

    `watch` is called after every update with the share that is done, 0 … 1.
    """
    if not seconds > 0 or (steps is not None and steps < 1):
        raise ConfigError(f"seconds is {seconds:g} and steps is {steps}; both must be positive")
    sgemm = sgemm_gflops()
    # Warm-up: the first update allocates memory and starts threads.
    training.update()
    spent: Counter[str] = Counter()
    first, updates, gradient_steps, flops = training.env_steps, 0, 0, 0.0
    per_sample = flops_per_sample(training)
    begin, cpu = time.perf_counter(), time.process_time()
    while True:
        report = training.update()
        updates, gradient_steps = updates + 1, gradient_steps + report.minibatches
        size, _ = training.spec.ppo.minibatch_size_for(max(1, report.samples))
        flops += per_sample * report.minibatches * size
        spent.update(report.seconds)
        wall, env_steps = time.perf_counter() - begin, training.env_steps - first
        done = wall / seconds if steps is None else env_steps / steps
        watch(min(1.0, done))
        if done >= 1.0:
            break
    used = time.process_time() - cpu
    update = spent["prepare"] + spent["learn"]
    return Measured(
        env=training.spec.env,
        backend=backend_of(training.world),
        envs=training.world.num_envs,
        threads=torch.get_num_threads(),
        steps=env_steps,
        updates=updates,
        gradient_steps=gradient_steps,
        wall_seconds=wall,
        cpu_seconds=used,
        seconds={
            "env": spent["env"],
            # Collecting includes the env's steps.
            "policy": spent["collect"] - spent["env"],
            "update": update,
            "rest": max(0.0, wall - spent["collect"] - update),
        },
        path=report.path,
        path_reason=report.path_reason,
        peak_mb=peak_mb(),
        sgemm_gflops=sgemm,
        update_gflops=flops / update / 1e9 if update else 0.0,
    )


def advice(measured: Measured, training: Training) -> list[str]:
    """Return sentences on what would make this training faster, with the measured numbers."""
    advice_lines: list[str] = []
    share = {part: measured.share(part) for part in PARTS}
    if share["env"] >= DOMINATES:
        advice_lines += _faster_env(measured, share["env"])
    elif share["update"] >= DOMINATES:
        advice_lines.append(_faster_update(measured, training, share["update"]))
    elif share["policy"] >= DOMINATES:
        advice_lines.append(
            f"choosing actions is {share['policy']:.0%} of the time, one call for {measured.envs} "
            f"env{'s' if measured.envs > 1 else ''}; more envs share a call: --set envs={max(8, 2 * measured.envs)}"
        )
    else:
        largest = max(share, key=lambda part: share[part])
        advice_lines.append(f"no part takes half of the time; the largest is {largest} with {share[largest]:.0%}")
    if measured.path == "torch" and training.spec.ppo.path == "torch":
        advice_lines.append("path=torch is set; --set path=auto uses the faster kernel for policies that it supports")
    elif measured.path == "torch" and share["update"] >= DOMINATES:
        advice_lines.append(f"the update ran in torch, not in the faster kernel, because {measured.path_reason}")
    cpu_share = measured.cpu_seconds / measured.wall_seconds
    if cpu_share < FREE_CORE:
        advice_lines.append(
            f"this process got {cpu_share:.0%} of a core because other processes are running; compare steps per CPU-second"
        )
    return advice_lines


def _faster_env(measured: Measured, share: float) -> list[str]:
    advice_lines = [
        # Amdahl's law: with the other parts at no cost, the env's share remains.
        f"the env is {share:.0%} of the time: a faster env helps, a larger network costs little, and a faster policy or "
        f"update cannot make training more than {1 / share:.1f} times faster"
    ]
    if measured.backend == "gymnasium" and measured.env in own_worlds():
        advice_lines.append(
            f"--env-backend surefoot uses the vectorized {measured.env} of this package instead of Gymnasium's"
        )
    elif measured.backend == "gymnasium":
        advice_lines.append("in Python, pass PPO a gymnasium.vector.AsyncVectorEnv, which runs envs on the other cores")
    return advice_lines


def _faster_update(measured: Measured, training: Training, share: float) -> str:
    ppo, reached = training.spec.ppo, measured.update_gflops / measured.sgemm_gflops
    summary = f"the update is {share:.0%} of the time, at {reached:.1%} of the speed of a matrix product"
    if reached >= BUSY:
        return f"{summary}: that is arithmetic; a smaller network or fewer than {ppo.epochs} epochs saves time"
    size, _ = ppo.minibatch_size_for(ppo.batch_size)
    wider = min(WIDE_MINIBATCH, ppo.batch_size)
    if size < wider:
        return (
            f"{summary}: the overhead of small steps dominates; --set minibatch_size={wider} takes "
            f"{wider / size:.3g} times fewer steps (and learns differently), and a larger network costs little"
        )
    longer = "longer rollouts" if size >= ppo.batch_size else "larger minibatches"
    return f"{summary}: the remaining time is overhead; {longer} or fewer epochs reduce it (and learn differently)"


def flops_per_sample(training: Training) -> float:
    """Return the floating-point operations of one gradient step per sample: 2 forward and 4 backward per weight."""
    return 6.0 * sum(p.numel() for p in training.policy.parameters() if p.ndim == 2)


def sgemm_gflops(size: int = 1024, seconds: float = 0.3) -> float:
    """Return the speed of the fastest of several matrix products, with the threads of this process."""
    a, b = torch.rand(size, size), torch.rand(size, size)
    out = a @ b
    # The fastest, not the mean: interruptions only ever make a product slower.
    best, begin = float("inf"), time.perf_counter()
    while time.perf_counter() - begin < seconds:
        before = time.perf_counter()
        torch.mm(a, b, out=out)
        best = min(best, time.perf_counter() - before)
    return 2.0 * size**3 / best / 1e9


def peak_mb() -> float | None:
    """Return the peak memory of this process in MB; None on Windows, which has no `resource` module."""
    try:
        import resource
    except ImportError:
        return None
    # ru_maxrss is in kilobytes on Linux and in bytes on macOS.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
