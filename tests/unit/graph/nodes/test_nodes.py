"""The kinds of nodes: ports, parameters and defaults, panels from the configs' own words, presets."""

import inspect
import json

import pytest

from surefoot.errors import GraphError
from surefoot.graph import PPOAgentNode, PPOTrainerNode, check, nodes, template, to_script, to_standalone
from surefoot.graph.nodes import REGISTRY
from surefoot.graph.schedule import runtime_of
from surefoot.graph.spec.params import complete_params
from surefoot.graph.spec.text import parse_graph
from surefoot.learn.config import PPOConfig

AGENT = {"hidden": (64, 64), "activation": "elu", "lr": 0.0003, "action_space": "continuous"}


TRAINER = {
    "rollout_steps": 2048,
    "epochs": 10,
    "minibatch_size": 64,
    "lr": 0.0003,
    "gamma": 0.99,
    "lam": 0.95,
    "clip": 0.2,
    "vf_coef": 0.5,
    "ent_coef": 0.01,
    "max_grad_norm": 0.5,
}


def test_agent_and_trainer_have_their_ports_parameters_and_defaults() -> None:
    agent, trainer = REGISTRY.get("PPOAgentNode"), REGISTRY.get("PPOTrainerNode")
    assert [port.name for port in agent.inputs if not port.optional] == ["observations"]
    assert [port.name for port in agent.outputs] == ["policy_output", "model"]
    assert [param.name for param in agent.params if param.required] == ["input_size", "output_size"]
    assert {name: agent.param(name).default for name in AGENT} == AGENT
    assert [port.name for port in trainer.inputs][:5] == ["states", "policy_outputs", "rewards", "dones", "model"]
    assert [port.name for port in trainer.outputs][:2] == ["training_complete", "loss_info"]
    assert {name: trainer.param(name).default for name in TRAINER} == TRAINER


def test_constructors_take_parameters_by_name() -> None:
    PPOAgentNode(input_size=24, output_size=8, hidden=[256, 256], activation="elu", action_space="continuous")
    PPOAgentNode(input_size=84 * 84, output_size=4, hidden=[512, 256], activation="relu", action_space="discrete")
    PPOTrainerNode(rollout_steps=2048, epochs=10, minibatch_size=64, clip=0.2)
    PPOTrainerNode(rollout_steps=512, epochs=15, clip=0.3, lr=0.0005)
    PPOTrainerNode(rollout_steps=4096, epochs=5, clip=0.1, minibatch_size=256)
    PPOTrainerNode(rollout_steps=16, epochs=4, gamma=0.99, clip=0.2)
    PPOTrainerNode(rollout_steps=128, epochs=4, ent_coef=0.01, vf_coef=1.0)


OLDER = {
    "PPOTrainerNode": {
        "horizon_length": ("rollout_steps", 16),
        "learning_rate": ("lr", 0.01),
        "clip_param": ("clip", 0.1),
        "value_coef": ("vf_coef", 0.25),
        "entropy_coef": ("ent_coef", 0.5),
        "normalize_advantages": ("normalize_advantage", "off"),
        "normalize_rewards": ("normalize_reward", True),
    },
    "PPOAgentNode": {
        "hidden_sizes": ("hidden", (8,)),
        "learning_rate": ("lr", 0.01),
        "init_log_std": ("log_std_init", -1.0),
    },
    "HighLevelPPO": {"horizon_length": ("rollout_steps", 16), "hidden_sizes": ("hidden", (8,))},
    "RNDCuriosity": {"coef": ("curiosity_coef", 0.5), "learning_rate": ("curiosity_lr", 0.01)},
    "LMTrainer": {"learning_rate": ("lr", 0.01), "clip_param": ("clip", 0.1)},
    "ToolPolicy": {"learning_rate": ("lr", 0.01)},
}
"""{node type: {name in earlier versions: (name, a value)}}"""


@pytest.mark.parametrize("type", OLDER)
def test_a_saved_graph_with_the_names_of_earlier_versions_loads(type: str) -> None:
    older = {"id": {"type": type, "params": {name: value for name, (_, value) in OLDER[type].items()}}}
    graph = parse_graph(json.dumps({"format": "surefoot.graph", "version": 1, "nodes": older}))
    assert graph.nodes["id"].params == dict(OLDER[type].values())
    for name, (new, _) in OLDER[type].items():
        param = REGISTRY.get(type).param(new)
        assert param is not None
        assert name in param.tooltip


def test_a_panels_help_is_the_configs_own() -> None:
    rows = {row["name"]: row for row in PPOConfig.describe()}
    shown = {row["name"]: row for row in REGISTRY.get("PPOTrainerNode").to_json()["params"]}
    assert shown["clip"]["help"].startswith(rows["clip"]["help"])
    assert shown["rollout_steps"]["help"].startswith(rows["rollout_steps"]["help"])


def test_presets_are_there_and_fit_their_node() -> None:
    trainer, agent = REGISTRY.get("PPOTrainerNode"), REGISTRY.get("PPOAgentNode")
    assert set(trainer.presets) == {"stable", "fast", "sample-efficient", "isaac", "atari"}
    assert trainer.presets["fast"]["epochs"] == 15
    assert trainer.presets["isaac"]["rollout_steps"] == 16
    assert set(agent.presets) == {"continuous control", "discrete control"}
    for kind in (trainer, agent):
        for values in kind.presets.values():
            complete_params(kind, {"input_size": 4, "output_size": 2, **values} if kind is agent else values)


def test_the_whole_catalogue_is_json_and_every_node_says_what_it_does() -> None:
    content = json.loads(json.dumps(REGISTRY.to_json()))
    assert len(content) >= 30
    for kind in content:
        assert len(kind["summary"]) > 15, kind["name"]
        assert all(each["help"] for each in (*kind["inputs"], *kind["outputs"], *kind["params"])), kind["name"]


@pytest.mark.parametrize(
    "name", [n for n in REGISTRY.names() if n not in ("SubGraph", "Inlet", "Outlet", "Reroute", "Batch")]
)
def test_what_a_node_declares_is_what_its_callable_takes(name: str) -> None:
    declared = REGISTRY.get(name)
    if not declared.runtime.startswith("surefoot."):
        return
    runtime = runtime_of(declared)
    assert runtime.__name__ == (name if name.endswith("Node") else f"{name}Node")
    assert set(declared.needs) <= {"seed", "total_steps", "path", "folder"}
    if name != "Code":
        fires = list(inspect.signature(runtime.__call__).parameters)[1:]
        assert [port.name for port in declared.inputs] == fires


@pytest.mark.parametrize("setting", [{"lr": 1e-2}, {"lr_schedule": "lin_1e-3"}])
def test_two_learning_rates_that_differ_are_an_error(setting: dict[str, object]) -> None:
    graph = template("pendulum")
    graph.nodes["agent"].params["lr"] = 1e-3
    graph.nodes["trainer"].params.pop("lr")
    graph.nodes["trainer"].params |= PPOTrainerNode(**setting).params
    (finding,) = check(graph).errors
    assert "agent sets lr to 0.001" in finding.message
    assert finding.message.endswith("set it on trainer only")


def test_a_learning_rate_that_only_the_agent_has_is_the_trainers_in_every_engine_and_program() -> None:
    graph = template("pendulum")
    graph.nodes["agent"].params["lr"] = 1e-3
    graph.nodes["trainer"].params.pop("lr")
    assert check(graph).params["trainer"]["lr"] == 1e-3
    assert "trainer_lr: float = 0.001" in to_script(graph)
    assert "    lr: float = 0.001" in to_standalone(graph)


def test_a_runtime_class_has_the_defaults_of_its_declaration_and_refuses_other_parameters() -> None:
    assert runtime_of(REGISTRY.get("RewardShaping"))(scale=2.0).params.limit == 1e9
    with pytest.raises(GraphError, match="has no parameter 'sacle'"):
        runtime_of(REGISTRY.get("RewardShaping"))(sacle=2.0)


def test_scripts_of_earlier_versions_find_runtime_classes_where_they_were() -> None:
    with pytest.warns(DeprecationWarning, match="surefoot.graph.runtime.PPOTrainerNode"):
        assert nodes.PPOTrainer is runtime_of(REGISTRY.get("PPOTrainerNode"))
    with pytest.raises(AttributeError):
        _ = nodes.NoSuchThing
