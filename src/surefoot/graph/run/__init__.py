"""Three engines, one schedule, the same digits: interpreter, queues across processes, compiled program."""

from __future__ import annotations
