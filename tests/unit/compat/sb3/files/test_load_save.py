import numpy as np
import pytest
import torch
from tests.unit.compat.sb3.small_env import CountingEnv

from surefoot.compat.sb3.files.model_files import from_json
from surefoot.compat.sb3.policies.actor_critic import ActorCriticPolicy
from surefoot.compat.sb3.policies.layers import FlattenExtractor
from surefoot.compat.sb3.ppo import PPO

SMALL = {"n_steps": 16, "batch_size": 16, "n_epochs": 1}


def test_a_function_is_saved_as_a_table_of_its_values(tmp_path):
    schedule = lambda left: 1e-3 * left**2  # noqa: E731  # scripts pass lambdas
    PPO("MlpPolicy", CountingEnv(), learning_rate=schedule, **SMALL).save(tmp_path / "m")
    loaded = PPO.load(tmp_path / "m")
    for left in (1.0, 0.7505, 0.1234, 0.0):
        assert loaded.lr_schedule(left) == pytest.approx(schedule(left), abs=1e-9)
    assert loaded.learning_rate.__name__ == "<lambda>"
    assert PPO.load(tmp_path / "m", custom_objects={"learning_rate": 0.5}).lr_schedule(1.0) == 0.5


def test_a_loaded_model_goes_on_where_it_was_unless_it_must_reset(tmp_path):
    model = PPO("MlpPolicy", CountingEnv(), **SMALL).learn(16)
    model.save(tmp_path / "model")
    again = PPO.load(tmp_path / "model", env=model.get_env(), force_reset=False)
    np.testing.assert_array_equal(again._last_obs, model._last_obs)
    assert PPO.load(tmp_path / "model", env=CountingEnv())._last_obs is None


def test_a_policy_of_torch_compile_is_saved_under_its_usual_names(tmp_path):
    model = PPO("MlpPolicy", CountingEnv(), **SMALL)
    model.policy = torch.compile(model.policy)
    model.save(tmp_path / "model")
    assert "value_net.bias" in PPO.load(tmp_path / "model").get_parameters()["policy"]


class OwnExtractor(FlattenExtractor):
    pass


class OwnPolicy(ActorCriticPolicy):
    pass


def test_classes_of_the_script_are_found_again_where_they_were_defined(tmp_path):
    PPO(OwnPolicy, CountingEnv(), policy_kwargs={"features_extractor_class": OwnExtractor}, **SMALL).save(
        tmp_path / "m"
    )
    policy = PPO.load(tmp_path / "m").policy
    assert (type(policy), type(policy.features_extractor)) == (OwnPolicy, OwnExtractor)


@pytest.mark.parametrize("name", ["subprocess:Popen", "not_imported_anywhere:X", f"{__name__}:SMALL", "os:system"])
def test_a_file_can_name_only_networks_and_optimizers_of_imported_modules(name):
    with pytest.raises(ValueError, match="custom_objects"):
        from_json("policy_kwargs", {"class": name})
