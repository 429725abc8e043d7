"""What a graph is: nodes with typed ports, edges that may wait a tick, and the rules they keep. No torch here."""

from __future__ import annotations
