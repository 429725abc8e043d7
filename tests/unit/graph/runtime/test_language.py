"""A language model in a graph: prompts, scores, and the loop as a whole."""

import pytest

from surefoot.errors import ConfigError
from surefoot.graph.nodes import REGISTRY
from surefoot.graph.runtime.language import KLPenaltyNode, PromptSourceNode, Responses, RewardModelNode
from surefoot.graph.schedule import schedule
from surefoot.graph.spec.check import check
from surefoot.graph.spec.declare import Registry
from surefoot.graph.templates import template


def test_the_loop_of_a_language_model_holds_together() -> None:
    graph = template("language")
    for node in graph.nodes.values():
        node.params = {}
    graph.nodes["prompts"].params, graph.run.total_steps = {"batch": 4}, 12
    assert check(graph).errors == []
    plan = schedule(graph)
    assert (plan.streams, plan.ticks) == (4, 3)
    assert isinstance(REGISTRY, Registry)


def test_prompts_come_once_each_before_any_comes_again() -> None:
    source = PromptSourceNode(prompts="a\n\nb\nc\n", batch=3, seed=1)
    assert sorted(source()) == ["a", "b", "c"]
    saved = source.snapshot()
    first = source()
    source.restore(saved)
    assert source() == first


def test_prompts_without_words_are_refused() -> None:
    with pytest.raises(ConfigError, match="one prompt per line"):
        PromptSourceNode(prompts=" \n\n")


def test_characters_are_paid_by_their_share() -> None:
    responses = Responses(prompts=["?", "?"], texts=["banana", ""], each=[])
    assert RewardModelNode(paid="a")(responses).tolist() == [0.5, 0.0]


def test_a_reward_model_must_be_named() -> None:
    with pytest.raises(ConfigError, match="surefoot lm reward"):
        RewardModelNode(by="model")


def test_a_price_without_a_target_stays_and_is_restored() -> None:
    node = KLPenaltyNode(beta=0.2)
    node.beta.see(100.0, 8)
    assert node.snapshot() == {"beta": 0.2}
    node.restore({"beta": 0.3})
    assert node.beta.beta == 0.3
