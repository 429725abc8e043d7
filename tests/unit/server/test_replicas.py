"""Processes that run the same function and are replaced when they die."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time

from surefoot.server import replicas


def test_a_process_that_dies_is_replaced_and_all_end_with_close(monkeypatch):
    monkeypatch.setattr(replicas, "CHECK_SECONDS", 0.02)
    group = replicas.Replicas(2, time.sleep, 600)

    async def story() -> list[int]:
        watching = asyncio.create_task(group.watch())
        before = group.pids()
        os.kill(before[0], signal.SIGKILL)
        while group.pids()[0] == before[0]:
            await asyncio.sleep(0.02)
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
        return before

    group.start()
    try:
        before = asyncio.run(asyncio.wait_for(story(), 60))
        assert group.pids()[1] == before[1]
        processes = [process for process, _ in group._running]
    finally:
        group.close()
    assert group.pids() == []
    assert not any(process.is_alive() for process in processes)
