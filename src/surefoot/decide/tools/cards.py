"""Pattern cards: how much a query is worth looking into, from a quick look to everything there is."""

from __future__ import annotations

from dataclasses import dataclass

from surefoot.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternCard:
    """Scales of the embedding and their weights, how context is retrieved, and how long all of it may take."""

    name: str
    title: str
    scales: tuple[int, ...]
    weights: tuple[float, ...]
    retrieval_mode: str
    """fast: the smallest scale alone; fused: all scales, weighted, and BM25."""
    k: int
    """Pieces of context at most."""
    bm25: float
    """Share of BM25 in the score."""
    timeout: float
    """Seconds for everything; the tool gets what is left of it."""
    quality_target: float

    def __post_init__(self) -> None:
        if len(self.scales) != len(self.weights):
            raise ConfigError(f"card {self.name!r} has {len(self.scales)} scales and {len(self.weights)} weights")


BARE = PatternCard(
    name="bare",
    title="Bare Threading",
    scales=(96,),
    weights=(1.0,),
    retrieval_mode="fast",
    k=3,
    bm25=0.0,
    timeout=2.0,
    quality_target=0.6,
)
FAST = PatternCard(
    name="fast",
    title="Fast Threading",
    scales=(96, 192),
    weights=(0.4, 0.6),
    retrieval_mode="fast",
    k=6,
    bm25=0.1,
    timeout=4.0,
    quality_target=0.75,
)
FUSED = PatternCard(
    name="fused",
    title="Fused Threading",
    scales=(96, 192, 384),
    weights=(0.25, 0.35, 0.40),
    retrieval_mode="fused",
    k=10,
    bm25=0.15,
    timeout=8.0,
    quality_target=0.9,
)
CARDS = {card.name: card for card in (BARE, FAST, FUSED)}


def select_card(
    text: str, *, preferred: str | PatternCard | None = None, max_timeout: float | None = None
) -> PatternCard:
    """What the user asked for; else what fits the time there is; else by the query's length."""
    if isinstance(preferred, PatternCard):
        return preferred
    if preferred is not None:
        if preferred.lower() not in CARDS:
            raise ConfigError(f"no pattern card {preferred!r}; there are {', '.join(CARDS)}")
        return CARDS[preferred.lower()]
    if max_timeout is not None:
        return BARE if max_timeout <= 2.5 else FAST if max_timeout <= 5 else FUSED
    return BARE if len(text) < 50 else FAST
