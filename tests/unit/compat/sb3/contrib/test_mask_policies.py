import numpy as np
import torch
from gymnasium import spaces

from surefoot.compat.sb3.contrib.mask_policies import MaskableActorCriticPolicy
from surefoot.compat.sb3.engine.policies import standard


def policy():
    return MaskableActorCriticPolicy(spaces.Box(-1, 1, (2,)), spaces.Discrete(3), lambda _: 1e-3)


def test_only_allowed_actions_are_predicted():
    masks = np.array([[False, True, False]] * 50)
    actions, _ = policy().predict(np.zeros((50, 2), np.float32), action_masks=masks)
    assert set(actions.tolist()) == {1}


def test_masks_end_with_the_call():
    one = policy()
    obs = torch.zeros(1, 2)
    one.evaluate_actions(obs, torch.tensor([1]), [[False, True, False]])
    assert one.get_distribution(obs).distribution.probs.min() > 0.3


def test_the_unchanged_policy_runs_in_the_kernel():
    assert standard(policy()) is not None
