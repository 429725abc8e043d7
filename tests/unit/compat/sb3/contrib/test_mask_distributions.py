import math

import pytest
import torch
from gymnasium import spaces

from surefoot.compat.sb3.contrib.mask_distributions import make_masked_proba_distribution


def test_forbidden_choices_have_no_probability_and_no_entropy():
    dist = make_masked_proba_distribution(spaces.Discrete(4)).proba_distribution(torch.zeros(1, 4))
    dist.apply_masking([[True, False, True, False]])
    assert dist.distribution.probs.tolist() == [[0.5, 0.0, 0.5, 0.0]]
    assert float(dist.entropy()) == pytest.approx(math.log(2))
    dist.apply_masking(None)
    assert float(dist.entropy()) == pytest.approx(math.log(4))


def test_a_mask_of_several_choices_is_cut_at_their_sizes():
    dist = make_masked_proba_distribution(spaces.MultiDiscrete([2, 3])).proba_distribution(torch.zeros(1, 5))
    dist.apply_masking([[False, True, True, False, False]])
    assert dist.mode().tolist() == [[1, 0]]
    assert float(dist.log_prob(torch.tensor([[1, 0]]))) == pytest.approx(0.0)


def test_a_box_cannot_be_masked():
    with pytest.raises(NotImplementedError, match="cannot be masked"):
        make_masked_proba_distribution(spaces.Box(-1, 1, (1,)))
