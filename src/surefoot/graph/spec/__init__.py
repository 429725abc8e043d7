"""The definition of a graph: typed ports, edges, parameters and their validation. No torch."""

from __future__ import annotations
