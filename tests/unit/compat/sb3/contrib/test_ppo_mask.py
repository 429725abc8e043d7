import pytest
from tests.unit.compat.sb3.contrib.masked_env import MaskedEnv
from tests.unit.compat.sb3.small_env import CountingEnv

from surefoot.compat.sb3.contrib.ppo_mask import MaskablePPO
from surefoot.compat.sb3.policies.actor_critic import ActorCriticPolicy


@pytest.mark.parametrize("kwargs", [{}, {"share_features_extractor": False, "normalize_images": False}])
def test_no_forbidden_action_is_taken_while_it_learns(kwargs):
    env = MaskedEnv()
    model = MaskablePPO("MlpPolicy", env, n_steps=32, batch_size=16, n_epochs=2, seed=0, policy_kwargs=kwargs).learn(64)
    assert len(env.taken) == 64
    assert 0 not in env.taken
    assert model.num_timesteps == 64


def test_without_masking_every_action_is_allowed():
    env = MaskedEnv()
    MaskablePPO("MlpPolicy", env, n_steps=32, batch_size=16, n_epochs=1, seed=0).learn(32, use_masking=False)
    assert 0 in env.taken


def test_an_env_without_masks_and_a_policy_without_masks_are_refused():
    with pytest.raises(ValueError, match="action_masks"):
        MaskablePPO("MlpPolicy", CountingEnv(), n_steps=8, batch_size=8).learn(8)
    with pytest.raises(ValueError, match="no MaskableActorCriticPolicy"):
        MaskablePPO(ActorCriticPolicy, MaskedEnv(), n_steps=8, batch_size=8)


def test_a_saved_model_predicts_the_same(tmp_path):
    model = MaskablePPO("MlpPolicy", MaskedEnv(), n_steps=8, batch_size=8, n_epochs=1).learn(8)
    model.save(tmp_path / "m")
    loaded = MaskablePPO.load(tmp_path / "m")
    masks = [False, True, True]
    assert (
        loaded.predict([3.0, 1.0], deterministic=True, action_masks=masks)[0]
        == (model.predict([3.0, 1.0], deterministic=True, action_masks=masks)[0])
    )
