"""The processes that torchrun started, as one: sums, gatherings, and who is told what to do next."""

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

PATIENCE = timedelta(hours=1)
"""How long one process may wait for another: the first may be evaluating meanwhile."""


class ProcessGroup:
    """R processes. Whatever they do together, all must do, in the same order."""

    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def sum_(self, x: Tensor) -> Tensor:
        """`x`, now the sum of everybody's."""
        dist.all_reduce(x)
        return x

    def gather(self, numbers: np.ndarray) -> np.ndarray:
        """[R, …] float64: everybody's numbers, which all have one shape."""
        mine = torch.from_numpy(np.ascontiguousarray(numbers, dtype=np.float64))
        found = [torch.empty_like(mine) for _ in range(self.size)]
        dist.all_gather(found, mine)
        return torch.stack(found).numpy()

    def gather_bytes(self, data: bytes) -> list[bytes]:
        """Everybody's bytes, of any length."""
        lengths = self.gather(np.array([len(data)])).astype(np.int64)[:, 0]
        mine = torch.zeros(int(lengths.max()), dtype=torch.uint8)
        mine[: len(data)] = torch.frombuffer(bytearray(data), dtype=torch.uint8) if data else mine[:0]
        found = [torch.empty_like(mine) for _ in range(self.size)]
        dist.all_gather(found, mine)
        return [x[:n].numpy().tobytes() for x, n in zip(found, lengths.tolist(), strict=True)]

    def tell(self, word: int = 0) -> int:
        """The word of the first process, to all."""
        said = torch.tensor([word])
        dist.broadcast(said, src=0)
        return int(said)

    def close(self) -> None:
        """Leave the others."""
        dist.destroy_process_group()


def join_group() -> ProcessGroup:
    """This process's place among those that torchrun started."""
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        raise ConfigError(
            "learning together is started by torchrun: torchrun --nproc-per-node 2 -m surefoot train ENV --ddp --name NAME"
        )
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    store, rank, size = next(rendezvous("env://", timeout=PATIENCE))
    # torchrun keeps its store when it starts everybody anew, with the addresses of those who are gone in it.
    store = PrefixStore(f"surefoot {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=PATIENCE)
    return ProcessGroup()
