import pytest

from surefoot.compat.sb3.contrib.envs import (
    InvalidActionEnvDiscrete,
    InvalidActionEnvMultiBinary,
    InvalidActionEnvMultiDiscrete,
)


@pytest.mark.parametrize(
    ("env", "options", "forbidden"),
    [
        (InvalidActionEnvDiscrete(5, n_invalid_actions=4), 5, 4),
        (InvalidActionEnvMultiDiscrete([2, 3], n_invalid_actions=3), 5, 3),
        (InvalidActionEnvMultiBinary(3, n_invalid_actions=3), 6, 3),
    ],
)
def test_the_right_action_is_never_forbidden(env, options, forbidden):
    for _ in range(20):
        env.reset()
        masks = env.action_masks()
        assert (len(masks), masks.count(False)) == (options, forbidden)
        right = (env._first + env.state).ravel()
        assert all(masks[i] for i in right)


def test_too_many_forbidden_actions_are_refused():
    with pytest.raises(AssertionError, match="5 options allow 4"):
        InvalidActionEnvDiscrete(5, n_invalid_actions=5)
