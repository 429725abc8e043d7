"""The agent: shapes, masks, and what it restores."""

import numpy as np
import pytest
import torch

from surefoot.graph.run.live_values import summary
from surefoot.graph.runtime.agent import PPOAgentNode

OBS = {"obs": np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(3, 4)}


@pytest.mark.parametrize("path", ["torch", "auto"])
def test_actions_values_and_log_probabilities_have_one_row_per_copy(path: str) -> None:
    agent = PPOAgentNode(input_size=4, output_size=2, action_space="discrete", hidden=[8], path=path)
    chosen, policy = agent(OBS)
    assert [tuple(x.shape) for x in (chosen.action, chosen.value, chosen.log_prob)] == [(3,), (3,), (3,)]
    assert policy is agent.policy
    assert np.all(np.asarray(chosen.log_prob) < 0.0)


def test_an_action_that_the_mask_forbids_is_never_chosen() -> None:
    agent = PPOAgentNode(input_size=4, output_size=2, action_space="discrete", hidden=[8], path="torch")
    mask = np.array([[False, True]] * 3)
    for _ in range(20):
        chosen, _ = agent({**OBS, "action_mask": mask})
        assert chosen.action.tolist() == [1, 1, 1]
        assert "action_mask" not in chosen.obs


def test_a_deterministic_agent_repeats_itself() -> None:
    agent = PPOAgentNode(input_size=4, output_size=1, hidden=[8], deterministic=True, path="torch")
    assert torch.equal(agent(OBS)[0].action, agent(OBS)[0].action)


def test_images_may_be_flattened_by_the_agent() -> None:
    agent = PPOAgentNode(input_size=4, output_size=2, action_space="discrete", hidden=[8], path="torch")
    chosen, _ = agent({"obs": OBS["obs"].reshape(3, 2, 2)})
    assert chosen.obs["obs"].shape == (3, 4)


@pytest.mark.parametrize("path", ["torch", "auto"])
def test_a_restored_agent_continues_with_the_same_actions(path: str) -> None:
    first = PPOAgentNode(input_size=4, output_size=1, hidden=[8], seed=1, path=path)
    first(OBS)
    saved = first.snapshot()
    expected = np.asarray(first(OBS)[0].action)
    second = PPOAgentNode(input_size=4, output_size=1, hidden=[8], seed=2, path=path)
    second(OBS)
    second.restore(saved)
    assert np.array_equal(np.asarray(second(OBS)[0].action), expected)


def test_the_kernel_path_has_the_parameters_of_the_distribution_too() -> None:
    """The same weights on both paths, so the parameters must agree."""
    for space, names in (("discrete", ["probs"]), ("continuous", ["mean", "std"])):
        params = {"input_size": 4, "output_size": 2, "action_space": space, "hidden": [8]}
        expected = PPOAgentNode(**params, path="torch")(OBS)[0].action_params
        chosen = PPOAgentNode(**params, path="auto")(OBS)[0]
        assert list(chosen.action_params) == names
        for name in names:
            assert torch.allclose(chosen.action_params[name], expected[name])
        assert set(summary(chosen)["parts"]) == {"action", "value", "log_prob", *names}
