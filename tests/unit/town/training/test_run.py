"""One policy through capture, learning, cloning and measuring."""

import numpy as np

from surefoot.town.training.run import PolicyRuntime, TownTraining

SETTINGS = {"hidden": "8", "epochs": 1}


def test_captures_differ_and_learning_changes_the_weights():
    town = TownTraining("queue_conflict", settings=SETTINGS, towns=1, rollout_ticks=8)
    first, second = town.capture(6), town.capture(6)
    assert not np.array_equal(first.samples[0].features, second.samples[0].features)
    before = {name: x.clone() for name, x in town.policy.state_dict().items()}
    assert len(town.learn(epochs=2)) == 2
    assert any(not (x == before[name]).all() for name, x in town.policy.state_dict().items())


def test_a_policy_acts_the_same_with_the_same_seed():
    town = TownTraining("queue_conflict", settings=SETTINGS, towns=1, rollout_ticks=8)
    world, view = town.training.world, town.training.world.reset(0)
    one, two = (PolicyRuntime(town.policy, seed=5) for _ in range(2))
    assert np.array_equal(one(world, view), two(world, view))  # type: ignore[arg-type]
    assert one.log_prob.shape == (3,)
