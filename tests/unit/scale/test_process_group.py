"""The group of processes, with one process in it; tests/e2e runs it with several."""

from __future__ import annotations

import socket

import numpy as np
import pytest
import torch

from surefoot.errors import ConfigError
from surefoot.scale.process_group import join_group


def test_without_torchrun_the_error_says_how_to_start_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(ConfigError, match="torchrun --nproc-per-node 2"):
        join_group()


def test_one_process_alone_hears_itself(monkeypatch: pytest.MonkeyPatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for name, value in {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}.items():
        monkeypatch.setenv(name, value)
    group = join_group()
    try:
        assert (group.rank, group.size, group.broadcast(3)) == (0, 1, 3)
        assert group.sum_(torch.tensor([2.0, 3.0])).tolist() == [2.0, 3.0]
        assert group.gather(np.array([1, 2])).tolist() == [[1.0, 2.0]]
        assert [group.gather_bytes(data) for data in (b"abc", b"")] == [[b"abc"], [b""]]
    finally:
        group.close()
