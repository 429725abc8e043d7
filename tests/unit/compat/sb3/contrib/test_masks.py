import pytest
from tests.unit.compat.sb3.contrib.masked_env import MaskedEnv
from tests.unit.compat.sb3.small_env import CountingEnv

from surefoot.compat.sb3.contrib.masks import ActionMasker, get_action_masks, is_masking_supported, require_masks
from surefoot.compat.sb3.vec_env import DummyVecEnv


def test_masks_of_a_vec_env_are_stacked():
    vec_env = DummyVecEnv([MaskedEnv, MaskedEnv])
    assert is_masking_supported(vec_env)
    assert get_action_masks(vec_env).tolist() == [[False, True, True]] * 2


def test_a_function_or_the_name_of_a_method_gives_the_masks():
    assert get_action_masks(ActionMasker(CountingEnv(), lambda env: [True, env.count > 0])) == [True, False]
    with pytest.raises(ValueError, match="not a method"):
        ActionMasker(CountingEnv(), "length")


def test_an_env_without_masks_is_named_with_the_two_ways_out():
    with pytest.raises(ValueError, match=r"ActionMasker, or pass use_masking=False"):
        require_masks(CountingEnv())
