"""Tests of `surefoot.telemetry.doctor.findings`."""

from __future__ import annotations
