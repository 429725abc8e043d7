"""Types of environments, steps and towns."""

import pytest

from surefoot.data.spaces import Box, Discrete, MultiDiscrete
from surefoot.graph.nodes.worlds import NODES, spaces_of, world_types
from surefoot.graph.spec.declare import Misfit
from surefoot.graph.spec.params import complete_params
from surefoot.graph.spec.types import Type, tensor


def outputs(name: str, inputs: dict[str, Type], **params: object) -> dict[str, Type]:
    return NODES[name].outputs_of(complete_params(NODES[name], params), inputs)


@pytest.mark.parametrize(
    ("action", "dtype", "shape"),
    [(Discrete(3), "int64", (8,)), (MultiDiscrete((3, 2)), "int64", (8, 2)), (Box((2,)), "float32", (8, 2))],
)
def test_the_handle_of_an_environment_has_the_type_of_its_actions(action, dtype: str, shape: tuple[int, ...]) -> None:
    types = world_types({"obs": Box((4,))}, action, 8)
    assert (types["sim_handle"].dtype, types["sim_handle"].shape) == (dtype, shape)
    assert types["observations"].parts == (("obs", "float32", (8, 4)),)


def test_an_environment_that_does_not_exist_is_a_sentence() -> None:
    assert "CartPole-v1" in str(spaces_of("CartPool-v1", "auto"))
    assert "pip install isaaclab" in str(spaces_of("Isaac-Ant-v0", "isaaclab"))


def test_a_step_compares_actions_with_the_environment() -> None:
    world = outputs("Environment", {}, env_id="Pendulum-v1", num_envs=8)["sim_handle"]
    result = outputs("Step", {"sim_handle": world, "actions": tensor("float32", 8, 1)})
    assert result["rewards"] == tensor("float64", 8)
    with pytest.raises(Misfit, match='set action_space="continuous"'):
        outputs("Step", {"sim_handle": world, "actions": tensor("int64", 8)})
    with pytest.raises(Misfit, match="set output_size"):
        outputs("Step", {"sim_handle": world, "actions": tensor("float32", 8, 2)})


def test_observations_are_normalised_once() -> None:
    raw = Type("obs", tags=frozenset({"raw"}))
    normalised = outputs("ObservationNormalizer", {"observations": raw})["observations"]
    assert normalised.tags == {"normalised"}
    with pytest.raises(Misfit, match="already normalised"):
        outputs("Normalize", {"observations": normalised})


def test_the_streams_of_a_scenario_are_its_agents() -> None:
    declared = NODES["Scenario"]
    params = complete_params(declared, {"scenario": "queue_conflict", "towns": 4})
    assert declared.streams is not None
    assert declared.streams(params) == ("towns", 3)
    assert declared.outputs_of(params, {})["sim_handle"].shape == (12,)
