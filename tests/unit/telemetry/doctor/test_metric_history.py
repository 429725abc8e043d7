"""Tests of `surefoot.telemetry.doctor.metric_history`."""

from __future__ import annotations
