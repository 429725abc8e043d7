"""Townlet's names: `TrainingHarness`, and telemetry 1.0 to 1.2 read and 1.1 written. See docs/explain/origins.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surefoot._lazy import lazy_names

if TYPE_CHECKING:
    from surefoot.compat.townlet.harness import PolicyRuntime as PolicyRuntime
    from surefoot.compat.townlet.harness import TrainingHarness as TrainingHarness
    from surefoot.compat.townlet.record_writer import FlatMirror as FlatMirror

__getattr__, __dir__ = lazy_names(__name__)
