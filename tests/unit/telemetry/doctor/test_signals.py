"""Tests of `surefoot.telemetry.doctor.signals`."""

from __future__ import annotations
