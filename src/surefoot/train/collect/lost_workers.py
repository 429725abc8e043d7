"""The state of a collector whose world is stepped by worker processes, some of which may be lost."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from surefoot.envs.api import View, World
from surefoot.envs.workers.process_world import ProcessWorld
from surefoot.errors import WorkersLost
from surefoot.train.collect.collector import Collector


def state_with_all_workers(collector: Collector, world: World) -> dict[str, Any]:
    """Return the collector's state with no worker missing: where one was lost, new episodes begin first."""
    if not isinstance(world, ProcessWorld):
        return collector.state()
    while True:
        with suppress(WorkersLost):  # the next try takes what is left: all streams begin anew
            if (settled := world.settle()) is not None:
                begin_anew(collector, *settled)
            lost, state = world.losses, collector.state()
            if lost == world.losses:
                return state


def begin_anew(collector: Collector, view: View, streams: np.ndarray) -> None:
    """Go on at `view`; the episodes that ran in `streams` ([N] bool) are forgotten."""
    collector.view = collector.guard.cleaned(view)
    collector.start = collector.start | streams
    collector.scaler.running = np.where(streams, 0.0, collector.scaler.running)
    for stream in np.flatnonzero(streams):
        collector.episodes.forget(int(stream))
