"""Matrix products against numpy's."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.native import kernel


@pytest.mark.parametrize("seed", range(4))
def test_a_product_is_numpys_for_any_shape(isa, seed):
    rng = np.random.default_rng(seed)
    for _ in range(12):
        m, n, k = (int(x) for x in rng.choice([1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 100], 3))
        a, b = rng.normal(size=(m, k)).astype(np.float32), rng.normal(size=(k, n)).astype(np.float32)
        c = np.full((m, n), np.nan, np.float32)
        kernel.multiply(isa, m, n, k, a, b, c)
        np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-5, atol=2e-5, err_msg=f"{m}×{k} · {k}×{n}")


def test_a_product_deeper_than_a_panel_is_summed_over_all_of_it(isa):
    rng = np.random.default_rng(0)
    for k in (383, 384, 385, 1000):
        a, b = rng.normal(size=(9, k)).astype(np.float32), rng.normal(size=(k, 37)).astype(np.float32)
        c = np.empty((9, 37), np.float32)
        kernel.multiply(isa, 9, 37, k, a, b, c)
        np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-4)
