"""The trainer with inputs left out."""

import pytest

from surefoot.errors import FiringError
from surefoot.graph.run.compiled import Compiled
from surefoot.graph.run.interpreter import Interpreter
from surefoot.graph.spec.model import Graph
from surefoot.graph.templates import template


def small(**changes) -> Graph:
    graph = template("cartpole")
    graph.nodes["trainer"].params |= {"rollout_steps": 8, "epochs": 1, "minibatch_size": 64}
    graph.nodes["print"].params["enabled"] = False
    graph.run.total_steps, graph.run.path = 8 * 8 * 3, "torch"
    graph.nodes["trainer"].params |= changes
    return graph


def test_what_dones_alone_and_no_next_states_cost_is_steps_left_out() -> None:
    graph = small()
    for port in ("terminated", "truncated", "next_states"):
        graph.disconnect(f"trainer.{port}")
    graph.connect("step.dones", "trainer.dones")
    with Interpreter(graph) as run:
        assert run.run_to_update()
        assert run.nodes["trainer"].report.samples == 8 * 7
    with Interpreter(small()) as run:
        assert run.run_to_update()
        assert run.nodes["trainer"].report.samples == 8 * 8


def test_memory_and_curiosity_and_a_schedule_can_be_drawn() -> None:
    graph = small()
    graph.nodes["agent"].params |= {"network": "gru", "memory_size": 8}
    graph.connect("step.dones", "agent.starts", True)
    graph.add("new", "RNDCuriosity", curiosity_hidden=[8])
    graph.connect("new.curiosity", "trainer.curiosity")
    graph.add("rate", "Schedule", start=1e-3)
    graph.connect("rate.schedule", "trainer.schedule")
    with Interpreter(graph) as run:
        infos = list(run)
        assert infos[-1]["bonus_mean"] >= 0.0
        assert infos[0]["lr"] == pytest.approx(1e-3)
        assert infos[-1]["lr"] < infos[0]["lr"]
        assert infos[0]["first_ratio_error"] < 1e-5
        digits = run.sha256()
    compiled = Compiled(graph)
    compiled.run()
    assert compiled.sha256() == digits


def test_rewards_that_are_not_one_per_copy_are_refused_in_the_first_tick() -> None:
    graph = small()
    graph.disconnect("trainer.rewards")
    graph.add("cut", "Code", source="out = rewards[:3]", inputs=["rewards"], outputs=["out"])
    graph.connect("step.rewards", "cut.rewards")
    graph.connect("cut.out", "trainer.rewards")
    message = r"rewards has the shape \[3\]; the policy acted in 8 copies"
    with Interpreter(graph, trust=True) as run, pytest.raises(FiringError, match=message):
        run.tick()


def test_states_that_the_policy_did_not_act_on_are_refused_in_the_first_tick() -> None:
    """Code hides where the values come from, so only the run can tell."""
    graph = small()
    graph.disconnect("trainer.states")
    graph.add("other", "Code", source="out = {'obs': seen['obs'] + 1}", inputs=["seen"], outputs=["out"])
    graph.connect("either.output", "other.seen")
    graph.connect("other.out", "trainer.states")
    with (
        Interpreter(graph, trust=True) as run,
        pytest.raises(FiringError, match="differs from what the policy acted on"),
    ):
        run.run_to_update()
    graph.nodes["other"].params["source"] = "out = {'obs': seen['obs'].copy()}"
    with Interpreter(graph, trust=True) as run:
        assert run.run_to_update()
