import numpy as np
from gymnasium import spaces

from surefoot.compat.sb3.policies.actor_critic import ActorCriticPolicy

BOX = spaces.Box(-2, 2, (3,))


def test_one_observation_gives_one_action_and_a_batch_gives_a_batch():
    policy = ActorCriticPolicy(BOX, BOX, lambda _: 1e-3)
    assert policy.predict(np.zeros(3))[0].shape == (3,)
    assert policy.predict(np.zeros((4, 3)))[0].shape == (4, 3)


def test_scaling_an_action_and_back_changes_nothing():
    policy = ActorCriticPolicy(BOX, BOX, lambda _: 1e-3)
    assert policy.scale_action(np.array([2.0, 0.0, -2.0])).tolist() == [1.0, 0.0, -1.0]
    assert policy.unscale_action(np.array([1.0, 0.0, -1.0])).tolist() == [2.0, 0.0, -2.0]


def test_a_policy_is_saved_without_its_model(tmp_path):
    policy = ActorCriticPolicy(BOX, BOX, lambda _: 1e-3, net_arch=[5])
    policy.save(tmp_path / "p")
    loaded = ActorCriticPolicy.load(tmp_path / "p")
    x = np.ones((2, 3))
    assert np.array_equal(loaded.predict(x, deterministic=True)[0], policy.predict(x, deterministic=True)[0])
