"""Sizes of the minibatches that a rollout is split into."""

from __future__ import annotations

from surefoot.errors import ConfigError


def split_sizes(samples: int, minibatch_size: int) -> list[int]:
    """Return the minibatch sizes of one epoch; they add up to `samples` and differ by at most 1.

    The number of minibatches is the one nearest to samples / minibatch_size, at least one: 2050 steps by 64 are 32
    minibatches, two of them of 65. A separate minibatch for the remainder would be small and noisy.
    """
    if samples < 1:
        return []
    count = max(1, (2 * samples + minibatch_size) // (2 * minibatch_size))
    size, over = divmod(samples, count)
    return [size + 1] * over + [size] * (count - over)


def minibatch_size_for(samples: int, size: int | None, count: int | None) -> tuple[int, str | None]:
    """Return the size to split `samples` steps by, and a sentence to print if both settings are set.

    `size` and `count` are `minibatch_size` and `minibatches` of the config; with both set, the smaller minibatch counts.
    """
    if samples < 1:
        raise ConfigError(f"samples is {samples}; it must be at least 1")
    if count is None:
        assert size is not None
        return size, None
    by_count = samples // min(count, samples)
    if size is None:
        return by_count, None
    smaller = min(size, by_count)
    return smaller, (
        f"minibatch_size is {size} and minibatches is {count}: "
        f"the smaller minibatch counts, {smaller} of {samples} samples."
    )
