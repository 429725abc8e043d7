"""Graphs from programs and from other tools' workflows. Reading runs nothing."""

from __future__ import annotations
