"""What plugs into a trainer: curiosity, and a schedule of the learning rate."""

from __future__ import annotations

from surefoot.graph.nodes.catalogue import declare

NODES = declare("extras")
