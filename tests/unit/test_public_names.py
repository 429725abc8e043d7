"""The names at the root: documented, lazy, and light where a room is light."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Sequence

import pytest

import surefoot

PROMISED = [
    "PPO",
    "evaluate_policy",
    "make_vec_env",
    "check_env",
    "check_store",
    "PPOConfig",
    "NetConfig",
    "CollectConfig",
    "RunSpec",
    "Training",
    "Learner",
    "Collector",
    "Rollout",
    "UpdateReport",
    "ActorCritic",
    "training_loop",
    "live",
    "make_world",
    "SurefootError",
    "VecNormalize",
    "__version__",
]

LIGHT = [
    "surefoot.errors",
    "surefoot.client",
    "surefoot.data.spaces",
    "surefoot.data.rollout",
    "surefoot.data.experience",
    "surefoot.data.check",
    "surefoot.data.journal",
    "surefoot.data.replay",
    "surefoot.data.replayset",
    "surefoot.data.trajectory",
    "surefoot.data.knobs",
    "surefoot.data.kinds",
    "surefoot.envs.api",
    "surefoot.envs.make",
    "surefoot.envs.check",
    "surefoot.envs.builtin.multi_agent_toys",
    "surefoot.envs.builtin.classic",
    "surefoot.envs.builtin.connect_four",
    "surefoot.envs.builtin.native",
    "surefoot.envs.agents.pettingzoo",
    "surefoot.envs.agents.two_player",
    "surefoot.envs.builtin.maze",
    "surefoot.envs.goals",
    "surefoot.envs.builtin.toys",
    "surefoot.envs.register",
    "surefoot.nets.config",
    "surefoot.learn.config",
    "surefoot.learn.presets",
    "surefoot.decide.encoders.encoder",
    "surefoot.decide.rewards",
    "surefoot.decide.policy.outcome_model",
    "surefoot.decide.evaluation.offpolicy",
    "surefoot.decide.promotion",
    "surefoot.decide.core.record",
    "surefoot.decide.core.store",
    "surefoot.decide.tools.run",
    "surefoot.decide.tools.run_log",
    "surefoot.cli.verbs.tools.tools",
    "surefoot.learn.schedule",
    "surefoot.learn.report",
    "surefoot.learn.checkpoint.checkpoint",
    "surefoot.town.scenarios.scenario",
    "surefoot.town.sim.world",
    "surefoot.town.sim.parallel_env",
    "surefoot.town.sim.town_loop",
    "surefoot.town.view.story",
    "surefoot.town.training.promote",
    "surefoot.telemetry.schema",
    "surefoot.telemetry.reader",
    "surefoot.telemetry.writer",
    "surefoot.telemetry.export.formats",
    "surefoot.telemetry.export.page",
    "surefoot.graph",
    "surefoot.graph.nodes",
    "surefoot.graph.spec.check",
    "surefoot.graph.spec.ops",
    "surefoot.graph.spec.text",
    "surefoot.graph.schedule",
    "surefoot.graph.templates",
    "surefoot.graph.custom_node",
    "surefoot.train.config",
    "surefoot.train.algorithms.ratings",
    "surefoot.train.spec",
    "surefoot.train.rundir.rundir",
    "surefoot.train.progress_event",
]


def loaded_after(code: str, watched: Sequence[str]) -> str:
    """What a fresh interpreter prints that runs `code` and then says which of `watched` it has loaded."""
    tail = f"\nimport sys\nprint([name for name in {list(watched)!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code + tail], capture_output=True, text=True, check=True)
    return found.stdout.strip()


def test_the_promised_names_are_the_public_ones() -> None:
    assert sorted(surefoot.__all__) == sorted(PROMISED) == dir(surefoot)


@pytest.mark.parametrize("name", [name for name in PROMISED if name != "__version__"])
def test_a_public_name_is_documented(name: str) -> None:
    value = getattr(surefoot, name)
    assert len(inspect.getdoc(value) or "") > 20
    for member, thing in inspect.getmembers(value, inspect.isfunction):
        public = not member.startswith("_") and thing.__module__.startswith("surefoot")
        assert not public or thing.__doc__ or member in ("to_json", "from_json"), f"{name}.{member} says nothing"


def test_the_version_is_the_distributions() -> None:
    assert surefoot.__version__[0].isdigit()


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'DQN'"):
        _ = surefoot.DQN


def test_calling_the_train_package_still_works_and_names_the_loop_function() -> None:
    import surefoot.train.rundir.rundir
    from surefoot import train

    assert surefoot.train.rundir.rundir.RunDir
    with pytest.warns(DeprecationWarning, match=r"surefoot\.training_loop"):
        assert list(train([], None)) == []


def test_importing_surefoot_loads_neither_torch_nor_numpy_nor_gymnasium() -> None:
    assert loaded_after("import surefoot", ("torch", "numpy", "gymnasium")) == "[]"


def test_the_light_rooms_load_without_torch() -> None:
    # One interpreter for all: what none of them loads together, none loads alone. The first offender is named.
    code = f"""
import importlib, sys
for room in {LIGHT!r}:
    importlib.import_module(room)
    assert "torch" not in sys.modules, room
"""
    assert loaded_after(code, ("torch",)) == "[]"


def _described(function: object, owner: object = None) -> list[str]:
    """Return the parameters that neither the docstring of the function nor that of its class describes."""
    text = (inspect.getdoc(function) or "") + "\n" + (inspect.getdoc(owner) or "" if owner else "")
    _, _, arguments = text.partition("Args:")
    names = [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]
    return [name for name in names if not re.search(rf"^\s+{name}: \S", arguments, re.MULTILINE)]


@pytest.mark.parametrize("method", ["__init__", "learn", "save", "load", "predict", "set_env"])
def test_every_parameter_of_ppo_is_described(method: str):
    assert _described(getattr(surefoot.PPO, method)) == []


FUNCTIONS = (
    "check_env",
    "check_store",
    "evaluate_policy",
    "live",
    "make_vec_env",
    "make_world",
    "training_loop",
)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_of_a_public_function_is_described(name: str):
    assert _described(getattr(surefoot, name)) == []


CLASSES = ("PPOConfig", "NetConfig", "CollectConfig", "Collector", "Training", "VecNormalize")


@pytest.mark.parametrize("name", CLASSES)
def test_every_parameter_of_a_public_class_is_described(name: str):
    cls = getattr(surefoot, name)
    assert _described(cls.__init__, cls) == []
