"""The process group of torchrun: sums, gathers, and broadcasts of the first process's commands."""

from __future__ import annotations

import os
from datetime import timedelta

import numpy as np
import torch
from torch import Tensor
from torch import distributed as dist
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from surefoot.errors import ConfigError

# How long one process waits for another: the first one also evaluates and saves, which can take long.
PATIENCE = timedelta(hours=1)


class ProcessGroup:
    """R processes. All of them must call the same methods in the same order."""

    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def sum_(self, x: Tensor) -> Tensor:
        """Replace `x` by its sum over all processes, and return it."""
        dist.all_reduce(x)
        return x

    def gather(self, numbers: np.ndarray) -> np.ndarray:
        """Return the numbers of all processes, [R, …] float64; their shapes must be equal."""
        local = torch.from_numpy(np.ascontiguousarray(numbers, dtype=np.float64))
        parts = [torch.empty_like(local) for _ in range(self.size)]
        dist.all_gather(parts, local)
        return torch.stack(parts).numpy()

    def gather_bytes(self, data: bytes) -> list[bytes]:
        """Return the bytes of all processes, of any length."""
        lengths = self.gather(np.array([len(data)])).astype(np.int64)[:, 0]
        # all_gather needs equal sizes: pad to the longest.
        local = torch.zeros(int(lengths.max()), dtype=torch.uint8)
        local[: len(data)] = torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else local[:0]
        parts = [torch.empty_like(local) for _ in range(self.size)]
        dist.all_gather(parts, local)
        return [x[:n].numpy().tobytes() for x, n in zip(parts, lengths.tolist(), strict=True)]

    def broadcast(self, command: int = 0) -> int:
        """Return the first process's `command` in all processes."""
        value = torch.tensor([command])
        dist.broadcast(value, src=0)
        return int(value)

    def close(self) -> None:
        """Leave the group."""
        dist.destroy_process_group()


def join_group() -> ProcessGroup:
    """Join the process group that torchrun started."""
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        raise ConfigError(
            "data-parallel learning needs torchrun; start it with: "
            "torchrun --nproc-per-node 2 -m surefoot train ENV --ddp --name NAME"
        )
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    store, rank, size = next(rendezvous("env://", timeout=PATIENCE))
    # After a restart torchrun's store still has the addresses of the ended processes: a prefix per restart hides them.
    store = PrefixStore(f"surefoot {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=PATIENCE)
    return ProcessGroup()
