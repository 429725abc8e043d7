"""Depth of an answer: embedding scales, amount of retrieved context, and time limit."""

from __future__ import annotations

from dataclasses import dataclass

from surefoot.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """Embedding scales with their weights, how context is retrieved, and the time limit."""

    name: str
    scales: tuple[int, ...]
    weights: tuple[float, ...]
    retrieval: str
    """fast: the smallest scale only; fused: all scales, weighted, and BM25."""
    k: int
    """Maximum number of retrieved passages."""
    bm25: float
    """Weight of BM25 in the score, 0 to 1."""
    timeout: float
    """Seconds for the whole answer; the tool gets the remaining time."""

    def __post_init__(self) -> None:
        if len(self.scales) != len(self.weights):
            raise ConfigError(f"depth {self.name!r} has {len(self.scales)} scales and {len(self.weights)} weights")


# Scales are quarters and halves of 384, MiniLM's dimension. Deeper means better retrieval for more time; the weights
# grow with the scale because longer vectors separate passages better.
BARE = Depth(name="bare", scales=(96,), weights=(1.0,), retrieval="fast", k=3, bm25=0.0, timeout=2.0)
FAST = Depth(name="fast", scales=(96, 192), weights=(0.4, 0.6), retrieval="fast", k=6, bm25=0.1, timeout=4.0)
_FUSED_WEIGHTS = (0.25, 0.35, 0.40)
FUSED = Depth(
    name="fused", scales=(96, 192, 384), weights=_FUSED_WEIGHTS, retrieval="fused", k=10, bm25=0.15, timeout=8.0
)
DEPTHS = {depth.name: depth for depth in (BARE, FAST, FUSED)}


def select_depth(text: str, *, preferred: str | Depth | None = None, max_timeout: float | None = None) -> Depth:
    """Return the preferred depth, else the deepest within the time limit, else one by the query's length."""
    if isinstance(preferred, Depth):
        return preferred
    if preferred is not None:
        if preferred.lower() not in DEPTHS:
            raise ConfigError(f"unknown depth {preferred!r}; use one of {', '.join(DEPTHS)}")
        return DEPTHS[preferred.lower()]
    if max_timeout is not None:
        # Between two depths the shallower one: its limit is kept even if the tool uses all of it.
        return BARE if max_timeout <= 2.5 else FAST if max_timeout <= 5 else FUSED
    return BARE if len(text) < 50 else FAST
