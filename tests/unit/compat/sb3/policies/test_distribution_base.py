import torch

from surefoot.compat.sb3.policies.distribution_base import sum_independent_dims


def test_columns_are_summed_and_rows_are_not():
    assert sum_independent_dims(torch.ones(3, 2)).tolist() == [2, 2, 2]
    assert float(sum_independent_dims(torch.ones(2))) == 2
