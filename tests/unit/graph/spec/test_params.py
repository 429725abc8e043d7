"""Parameters by their names and aliases."""

import pytest

from surefoot.errors import GraphError, RenamedWarning
from surefoot.graph import PPOAgentNode, PPOTrainerNode


def test_other_names_of_parameters_are_accepted_and_two_names_for_one_thing_are_not() -> None:
    assert PPOTrainerNode(num_epochs=4, gae_lambda=0.9).params == {"epochs": 4, "lam": 0.9}
    assert PPOAgentNode(input_size=4, action_dim=1, hidden="64,64").params["output_size"] == 1
    with pytest.raises(GraphError, match="epochs and num_epochs both set"):
        PPOTrainerNode(epochs=4, num_epochs=5)


def test_the_former_name_of_a_setting_is_accepted_with_a_notice() -> None:
    with pytest.warns(RenamedWarning, match="the setting steps is now rollout_steps"):
        assert PPOTrainerNode(steps=16).params == {"rollout_steps": 16}
    assert PPOTrainerNode(rollout_steps=16).params == {"rollout_steps": 16}
