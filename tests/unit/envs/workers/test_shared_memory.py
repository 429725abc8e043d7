"""Arrays in one piece of memory: where they lie, and that two readers see the same."""

from __future__ import annotations

import os

import numpy as np

from surefoot.data.spaces import Box
from surefoot.envs.workers.shared_memory import SharedArrays, lay_out, new_memory, open_board


def test_arrays_lie_one_after_the_other_at_cache_lines():
    layout, end = lay_out({"a": ((3,), "f8"), "b": ((0,), "?"), "c": ((65,), "?")}, begin=64)
    assert [(name, at) for name, _, _, at in layout] == [("a", 64), ("b", 128), ("c", 192)]
    assert end == 192 + 128


def test_what_one_puts_another_gets_as_copies():
    file = new_memory()
    one, other = SharedArrays(file), SharedArrays(file)
    layout, _ = one.put({"x": np.arange(5.0), "y": np.array([[True, False]])})
    copies = other.get(layout)
    one.put({"x": np.zeros(5), "y": np.array([[False, False]])})
    assert copies["x"].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert copies["y"].tolist() == [[True, False]]
    os.close(file)


def test_a_larger_array_makes_the_memory_grow():
    file = new_memory()
    arrays = SharedArrays(file)
    arrays.put({"x": np.zeros(1)})
    layout, _ = arrays.put({"x": np.arange(10_000)})
    assert SharedArrays(file).get(layout)["x"][-1] == 9_999
    os.close(file)


def test_a_share_of_a_board_is_its_rows_of_the_whole():
    file = new_memory()
    options = {"observation": {"obs": Box((2,))}, "action": np.empty((), np.int64), "choices": 3}
    whole, same = (open_board(file, 4, 2, **options) for _ in range(2))
    part = same.share(1, 2)
    part.obs["obs"][:], part.reward[:], part.mask[:], part.ended[1] = 7.0, [1.0, 2.0], True, True
    assert whole.obs["obs"][:, 0].tolist() == [0.0, 7.0, 7.0, 0.0]
    assert whole.reward.tolist() == [0.0, 1.0, 2.0, 0.0]
    assert whole.mask.any(axis=1).tolist() == [False, True, True, False]
    assert whole.ended.tolist() == [False, True]
    os.close(file)
