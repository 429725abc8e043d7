"""Node graphs: drawn, checked, run and written out as programs. Torch loads when something is run."""

from __future__ import annotations
