"""What a machine does with a training: how many steps a second, where the time goes, and what would change that."""

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
DOMINATES = 0.5
"""Share of the time from which on a part is the one to look at."""
BUSY = 0.3
"""Share of a matrix product's speed from which on an update is arithmetic rather than overhead."""
WIDE_MINIBATCH = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A stretch of training, after one update of warm-up."""

    env: str
    backend: str
    """Whose env: "surefoot" or "gymnasium"."""
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
    """The largest the process has been; None where the system does not say."""
    sgemm_gflops: float
    """What this machine reaches in a matrix product of 1024 × 1024, on as many threads."""
    update_gflops: float
    """About what the updates reached, counted from the sizes of the policy's layers."""

    @property
    def steps_per_second(self) -> float:
        return self.steps / self.wall_seconds

    @property
    def steps_per_cpu_second(self) -> float:
        return self.steps / self.cpu_seconds

    def share(self, part: str) -> float:
        """Of the wall time, 0 … 1."""
        return self.seconds[part] / self.wall_seconds

    def as_dict(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        rates = {"steps_per_second": self.steps_per_second, "steps_per_cpu_second": self.steps_per_cpu_second}
        return {**asdict(self), **rates}


def measure(
    training: Training,
    *,
    seconds: float = 5.0,
    steps: int | None = None,
    watch: Callable[[float], None] = lambda share: None,
) -> Measured:
    """Train for `seconds`, or for `steps` env steps, and say what it took; at least one whole update either way.

    `watch` is told how much of it is done, 0 … 1, after every update.
    """
    if not seconds > 0 or (steps is not None and steps < 1):
        raise ConfigError(f"seconds is {seconds:g} and steps is {steps}; both must be positive")
    sgemm = sgemm_gflops()
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
        wall, taken = time.perf_counter() - begin, training.env_steps - first
        done = wall / seconds if steps is None else taken / steps
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
        steps=taken,
        updates=updates,
        gradient_steps=gradient_steps,
        wall_seconds=wall,
        cpu_seconds=used,
        seconds={
            "env": spent["env"],
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
    """What would make this training faster, in sentences; the numbers are the measured ones."""
    told: list[str] = []
    share = {part: measured.share(part) for part in PARTS}
    if share["env"] >= DOMINATES:
        told += _faster_env(measured, share["env"])
    elif share["update"] >= DOMINATES:
        told.append(_faster_update(measured, training, share["update"]))
    elif share["policy"] >= DOMINATES:
        told.append(
            f"choosing actions is {share['policy']:.0%} of the time, one call for {measured.envs} "
            f"env{'s' if measured.envs > 1 else ''}: more of them share a call, --set envs={max(8, 2 * measured.envs)}"
        )
    else:
        largest = max(share, key=lambda part: share[part])
        told.append(f"no part takes half of the time; the largest is {largest} with {share[largest]:.0%}")
    if measured.path == "torch" and training.spec.ppo.path == "torch":
        told.append("path=torch was asked for; --set path=auto takes the kernel where it knows the policy")
    elif measured.path == "torch" and share["update"] >= DOMINATES:
        told.append(f"the update ran in torch, not in the faster kernel, because {measured.path_reason}")
    got = measured.cpu_seconds / measured.wall_seconds
    if got < 0.85:
        told.append(f"this process got {got:.0%} of a core: something else is running, so compare steps per CPU-second")
    return told


def _faster_env(measured: Measured, share: float) -> list[str]:
    told = [
        f"the env is {share:.0%} of the time: a faster env helps, a bigger network costs little, and no policy or "
        f"update however fast makes this more than {1 / share:.1f} times faster"
    ]
    if measured.backend == "gymnasium" and measured.env in own_worlds():
        told.append(f"--env-backend surefoot plays our own vectorised {measured.env} instead of Gymnasium's")
    elif measured.backend == "gymnasium":
        told.append("from Python, PPO takes a gymnasium.vector.AsyncVectorEnv, which plays on the other cores")
    return told


def _faster_update(measured: Measured, training: Training, share: float) -> str:
    ppo, reached = training.spec.ppo, measured.update_gflops / measured.sgemm_gflops
    told = f"the update is {share:.0%} of the time, at {reached:.1%} of what a matrix product reaches here"
    if reached >= BUSY:
        return f"{told}: that is arithmetic; a smaller network or fewer than {ppo.epochs} epochs is what saves time"
    size, _ = ppo.minibatch_size_for(ppo.batch_size)
    wider = min(WIDE_MINIBATCH, ppo.batch_size)
    if size < wider:
        return (
            f"{told}: small steps cost more than their arithmetic; --set minibatch_size={wider} makes "
            f"{wider / size:.3g} times fewer (and learns differently), a bigger network costs little"
        )
    longer = "longer rollouts" if size >= ppo.batch_size else "larger minibatches"
    return f"{told}: the rest is overhead, which {longer} or fewer epochs make smaller (and learn differently)"


def flops_per_sample(training: Training) -> float:
    """Multiplications and additions of one gradient step for one sample: two forward, four backward for each weight."""
    return 6.0 * sum(p.numel() for p in training.policy.parameters() if p.ndim == 2)


def sgemm_gflops(size: int = 1024, seconds: float = 0.3) -> float:
    """The best of several matrix products, on the threads this process uses."""
    a, b = torch.rand(size, size), torch.rand(size, size)
    out = a @ b
    best, begin = float("inf"), time.perf_counter()
    while time.perf_counter() - begin < seconds:
        before = time.perf_counter()
        torch.mm(a, b, out=out)
        best = min(best, time.perf_counter() - before)
    return 2.0 * size**3 / best / 1e9


def peak_mb() -> float | None:
    """The largest this process has been; Linux counts in kilobytes, macOS in bytes, Windows not at all."""
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
