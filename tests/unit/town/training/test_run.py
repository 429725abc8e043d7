"""One policy through capture, learning, cloning and measuring."""

import numpy as np
import pytest

from surefoot.errors import ShapeError
from surefoot.town.scenarios.scenario import load_scenario
from surefoot.town.sim.parallel_env import TownEnv
from surefoot.town.training.run import PolicyRuntime, TownTraining
from surefoot.town.training.spec import town_spec, town_training
from surefoot.train.facade import PPO
from surefoot.train.run import create_run
from surefoot.train.rundir.rundir import RunDir

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


@pytest.mark.parametrize("options", [{}, {"central": True}, {"variant": "hybrid"}])
def test_a_loaded_run_predicts_from_what_the_env_returns(options, tmp_path):
    spec = town_spec(load_scenario("queue_conflict"), towns=2, rollout_ticks=4, steps=24, eval_every=0, **options)
    run = create_run(RunDir(tmp_path), spec, training=town_training(spec))
    list(run.moments())
    run.close("completed")
    model = PPO.load(tmp_path)
    env = TownEnv("queue_conflict", observations=options.get("variant"))
    obs, infos = env.reset(seed=1)
    action, _ = model.predict(obs["anna"], action_masks=infos["anna"]["action_mask"], deterministic=True)
    assert infos["anna"]["action_mask"][int(action)] == 1
    with pytest.raises(ShapeError, match="features"):
        model.predict({"map": np.zeros(3)})
    if "variant" not in options:
        actions, _ = model.predict(np.stack(list(obs.values())), deterministic=True)
        assert actions.shape == (3,)
        assert np.array_equal(model.predict({"features": obs["ben"]}, deterministic=True)[0], actions[1])
