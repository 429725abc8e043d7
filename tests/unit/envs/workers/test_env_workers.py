"""How streams are shared out to processes."""

from __future__ import annotations

import pytest

from surefoot.envs.workers.env_workers import shares


@pytest.mark.parametrize(("streams", "count", "sizes"), [(8, 2, [4, 4]), (5, 3, [1, 2, 2]), (3, 3, [1, 1, 1])])
def test_shares_are_even_and_cover_all_streams_in_order(streams: int, count: int, sizes: list[int]) -> None:
    found = shares(streams, count)
    assert [rows.stop - rows.start for rows in found] == sizes
    assert [i for rows in found for i in range(streams)[rows]] == list(range(streams))
