"""Graphs written out as programs that a person would have written, and as pictures."""

from __future__ import annotations
