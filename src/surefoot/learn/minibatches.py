"""How the steps of a rollout are split into minibatches."""

from __future__ import annotations

from surefoot.errors import ConfigError


def split_sizes(samples: int, minibatch_size: int) -> list[int]:
    """Sizes of the minibatches of one epoch; they add up to `samples` and differ by at most 1.

    A remainder is no minibatch of its own, small and noisy: the count nearest to samples / minibatch_size is taken
    (at least one) and all share alike. 2050 by 64 are 32 minibatches, two of them of 65.
    """
    if samples < 1:
        return []
    count = max(1, (2 * samples + minibatch_size) // (2 * minibatch_size))
    size, over = divmod(samples, count)
    return [size + 1] * over + [size] * (count - over)


def minibatch_size_for(samples: int, size: int | None, count: int | None) -> tuple[int, str | None]:
    """Return the size to split `samples` steps by, and a sentence to print where two knobs had to be weighed up.

    `size` and `count` are `minibatch_size` and `minibatches` of the config; with both set, the smaller minibatch counts.
    """
    if samples < 1:
        raise ConfigError(f"samples is {samples}; there is no minibatch of less than 1")
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
