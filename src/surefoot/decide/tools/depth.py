"""How much work a query is worth: scales of the embedding, retrieved context and time."""

from __future__ import annotations

from dataclasses import dataclass

from surefoot.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """Scales of the embedding and their weights, how context is retrieved, and how long all of it may take."""

    name: str
    scales: tuple[int, ...]
    weights: tuple[float, ...]
    retrieval: str
    """fast: the smallest scale alone; fused: all scales, weighted, and BM25."""
    k: int
    """Largest number of retrieved passages."""
    bm25: float
    """Share of BM25 in the score."""
    timeout: float
    """Seconds for everything; the tool gets what is left of it."""

    def __post_init__(self) -> None:
        if len(self.scales) != len(self.weights):
            raise ConfigError(f"depth {self.name!r} has {len(self.scales)} scales and {len(self.weights)} weights")


BARE = Depth(name="bare", scales=(96,), weights=(1.0,), retrieval="fast", k=3, bm25=0.0, timeout=2.0)
FAST = Depth(name="fast", scales=(96, 192), weights=(0.4, 0.6), retrieval="fast", k=6, bm25=0.1, timeout=4.0)
FUSED = Depth(
    name="fused",
    scales=(96, 192, 384),
    weights=(0.25, 0.35, 0.40),
    retrieval="fused",
    k=10,
    bm25=0.15,
    timeout=8.0,
)
DEPTHS = {depth.name: depth for depth in (BARE, FAST, FUSED)}


def select_depth(text: str, *, preferred: str | Depth | None = None, max_timeout: float | None = None) -> Depth:
    """Return the preferred depth; else the one that fits the time limit; else one by the query's length."""
    if isinstance(preferred, Depth):
        return preferred
    if preferred is not None:
        if preferred.lower() not in DEPTHS:
            raise ConfigError(f"no depth {preferred!r}; there are {', '.join(DEPTHS)}")
        return DEPTHS[preferred.lower()]
    if max_timeout is not None:
        return BARE if max_timeout <= 2.5 else FAST if max_timeout <= 5 else FUSED
    return BARE if len(text) < 50 else FAST
