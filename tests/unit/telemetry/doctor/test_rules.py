"""Tests of `surefoot.telemetry.doctor.rules`."""

from __future__ import annotations
