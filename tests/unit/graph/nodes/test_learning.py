"""Types, clocks and warnings of agent, trainer and hierarchy."""

import pytest

from surefoot.graph.nodes.learning import NODES
from surefoot.graph.spec.declare import Misfit
from surefoot.graph.spec.params import complete_params
from surefoot.graph.spec.types import CONST, TICK, Type, every

OBS = Type("obs", parts=(("obs", "float32", (8, 4)),), tags=frozenset({"raw"}))


def outputs(name: str, inputs: dict[str, Type], **params: object) -> dict[str, Type]:
    declared = NODES[name]
    return declared.outputs_of(complete_params(declared, params), inputs)


def test_the_output_of_an_agent_has_one_row_per_copy() -> None:
    discrete = outputs("PPOAgentNode", {"observations": OBS}, input_size=4, output_size=2, action_space="discrete")
    assert discrete["policy_output"] == Type("policy_output", "int64", (8,), OBS.parts, OBS.tags, (2,))
    continuous = outputs("PPOAgentNode", {"observations": OBS}, input_size=4, output_size=3)
    assert continuous["policy_output"].shape == (8, 3)
    assert continuous["policy_output"].dtype == "float32"


def test_the_right_input_size_is_named() -> None:
    with pytest.raises(Misfit, match="input_size is 5 but the observations are 4; set it to 4"):
        outputs("PPOAgentNode", {"observations": OBS}, input_size=5, output_size=2)
    image = Type("obs", parts=(("obs", "uint8", (8, 96, 96, 3)),))
    with pytest.raises(Misfit, match=r"set it to \[96, 96, 3\]"):
        outputs("PPOAgentNode", {"observations": image}, input_size=5, output_size=2)
    both = Type("obs", parts=(("goal", "float32", (8, 2)), ("obs", "float32", (8, 4))))
    with pytest.raises(Misfit, match="set it to {'goal': 2, 'obs': 4}"):
        outputs("PPOAgentNode", {"observations": both}, input_size=6, output_size=2)


def test_a_recurrent_network_needs_the_starts_of_episodes() -> None:
    with pytest.raises(Misfit, match="network is 'gru'.*connect Step.dones with a delay"):
        outputs("PPOAgentNode", {"observations": OBS}, input_size=4, output_size=2, network="gru")


def test_a_trainer_has_outputs_every_rollout_and_needs_a_step_per_tick() -> None:
    trainer = NODES["PPOTrainerNode"]
    params = complete_params(trainer, {"rollout_steps": 32})
    fires, clocks = trainer.clocks_of(params, {"states": TICK, "model": CONST})
    assert fires == TICK
    assert set(clocks.values()) == {every(32)}
    with pytest.raises(Misfit, match="needs a step in every tick"):
        trainer.clocks_of(params, {"states": every(2)})


def test_a_minibatch_larger_than_a_rollout_is_a_warning() -> None:
    trainer = NODES["PPOTrainerNode"]
    params = complete_params(trainer, {"rollout_steps": 4, "minibatch_size": 64})
    chosen = Type("policy_output", "int64", (8,))
    assert trainer.lint is not None
    warnings = dict(trainer.lint(params, {"policy_outputs": chosen, "terminated": Type(), "next_states": Type()}))
    assert set(warnings) == {"minibatch_size"}
    assert "a rollout has 32 steps" in warnings["minibatch_size"]


def test_a_sub_goal_adds_a_part_to_the_observations() -> None:
    world = Type("world", "int64", (8,), OBS.parts, OBS.tags)
    result = outputs("SubGoal", {"sim_handle": world}, goals="offsets", coordinates=[1, 2, 3])
    assert result["observations"].parts == (("goal", "float32", (8, 3)), ("obs", "float32", (8, 4)))
