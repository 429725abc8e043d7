"""Observations and actions as numbers: what was noticed about a query, and tools by their index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from surefoot.decide.tools.motifs import VOCABULARY
from surefoot.errors import ConfigError, UnknownOption

ENCODING = 1
"""Version of what follows; saved with every policy."""

TOOL_TO_INDEX = {"answer": 0, "search": 1, "calc": 2, "notion_write": 3, "query": 4}
"""The seed's five. Further tools get the indices from 5 on, in the order they come, and keep them."""

MODES = ("fast", "fused")
OBSERVATION_SIZE = len(VOCABULARY) + 3 + len(MODES)
_WEIGHT = 0.25
"""Length of these features next to the query's vector, which has length 1."""


def encode_observation(observation: Mapping[str, Any]) -> np.ndarray:
    """[25] float32: motifs as 0 or 1, then context/10, scales/3, threads/20 (each at most 1), then the retrieval mode."""
    row = np.zeros(OBSERVATION_SIZE, np.float32)
    for motif in observation.get("motifs_detected", ()):
        if motif not in VOCABULARY:
            raise ConfigError(f"motif {motif!r} is not in the vocabulary: {', '.join(VOCABULARY)}")
        row[VOCABULARY.index(motif)] = 1.0
    begin = len(VOCABULARY)
    row[begin] = min(observation.get("context_shards_count", 0) / 10.0, 1.0)
    row[begin + 1] = min(len(observation.get("embedding_scales_used", ())) / 3.0, 1.0)
    row[begin + 2] = min(observation.get("threads_activated_count", 0) / 20.0, 1.0)
    mode = observation.get("retrieval_mode", "")
    if mode in MODES:
        row[begin + 3 + MODES.index(mode)] = 1.0
    return row


def weighted(row: np.ndarray) -> np.ndarray:
    """An encoded observation as it joins the query's vector."""
    return (row * (_WEIGHT / np.sqrt(max(1.0, float(row @ row))))).astype(np.float32)


def encode_action(tool: str, names: Mapping[str, int] = TOOL_TO_INDEX) -> int:
    """The index of a tool."""
    if tool not in names:
        raise UnknownOption(f"no tool {tool!r}; there are {', '.join(names)}")
    return names[tool]


def decode_action(index: int, names: Mapping[str, int] = TOOL_TO_INDEX) -> str:
    """The tool with that index."""
    for name, at in names.items():
        if at == index:
            return name
    raise UnknownOption(f"no tool has index {index}; there are {len(names)}")
