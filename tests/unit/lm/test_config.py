"""Settings of a language run: what follows from them, and what is refused."""

from __future__ import annotations

import pytest

from surefoot.errors import ConfigError
from surefoot.lm.config import LMConfig


def test_an_unknown_setting_is_named():
    with pytest.raises(ConfigError, match="no setting of a language run is called 'colour'"):
        LMConfig().replace(colour=1)


def test_text_is_read_as_a_value():
    assert LMConfig().replace(top="3", packed="true").top == 3


def test_a_rollout_has_prompts_times_group_responses():
    assert LMConfig(prompts=3, group=4).responses == 12


def test_the_sampling_settings_are_those_of_the_run():
    sampling = LMConfig(max_new_tokens=9, top_p=0.5, rows=2).sampling
    assert (sampling.max_new_tokens, sampling.top_p, sampling.rows) == (9, 0.5, 2)


def test_beta_is_the_weight_of_the_kl_in_the_loss():
    assert LMConfig(kl_in="loss", kl="k3", beta=0.2).ppo().kl_coef == 0.2
    assert LMConfig(beta=0.2).ppo().kl_coef == 0.0


def test_methods_without_a_critic_learn_no_values():
    ppo = LMConfig(algorithm="rloo", group=2).ppo()
    assert (ppo.vf_coef, ppo.value_clip, ppo.lam, ppo.normalize_advantage) == (0.0, None, 1.0, "off")
