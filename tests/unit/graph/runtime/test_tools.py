"""Tools in a graph: questions, choices, answers, rewards and exams."""

import time

import pytest

from surefoot.decide.tools.protocol import ToolResult
from surefoot.errors import ConfigError
from surefoot.graph.runtime.tools import (
    QueryEncoderNode,
    QuerySourceNode,
    ToolBoxNode,
    ToolExamNode,
    ToolOutput,
    ToolPolicyNode,
    ToolQuestion,
    ToolRewardNode,
    ToolRunnerNode,
    is_right,
)
from surefoot.graph.spec.check import check
from surefoot.graph.templates import template


def test_every_question_is_asked_once_before_any_is_asked_twice() -> None:
    source = QuerySourceNode(batch=8, held_out=0.25, seed=3)
    assert len(source.held_out) == 14
    seen = [asked.text for _ in range(21) for asked in source()[0]]
    assert len(set(seen[:42])) == 42
    assert not set(seen) & {asked.text for asked in source.held_out}


def test_an_exam_of_what_learned_nothing_is_what_the_nearest_description_gets(tmp_path) -> None:
    asked = QuerySourceNode(held_out=0.25, seed=3).held_out
    vectors, encoder = QueryEncoderNode()(asked)
    _, chooser = ToolPolicyNode()(vectors[:1], ToolBoxNode(into=tmp_path)(encoder), encoder)
    exam = ToolExamNode(every=2, into=tmp_path)
    assert exam("complete", asked, encoder, chooser) == (None, None)
    right, nearest = exam("complete", asked, encoder, chooser)
    assert right == nearest
    assert 0.3 < right < 0.9
    with pytest.raises(ConfigError, match="set held_out of QuerySource"):
        exam.examine([], encoder, chooser)


def test_an_answer_is_right_if_it_has_what_was_asked_for() -> None:
    asked = ToolQuestion(text="Add 19 and 23", expected="= 42$")
    assert is_right(asked, ToolOutput(result=ToolResult(text="19 + 23 = 42"), milliseconds=1.0))
    assert not is_right(asked, ToolOutput(result=ToolResult(text="19 + 23 = 421"), milliseconds=1.0))
    assert not is_right(asked, ToolOutput(result=ToolResult(text="= 42"), error="it broke", milliseconds=1.0))


def test_rewards_of_tools_are_one_or_nothing_by_answer_and_in_between_by_formula() -> None:
    class Said:
        class choice:
            probability = 0.5

    asked = [ToolQuestion(text="?", expected="yes"), ToolQuestion(text="?", expected="yes")]
    ran = [
        ToolOutput(result=ToolResult(text="yes"), milliseconds=0.0),
        ToolOutput(result=ToolResult(text="no"), milliseconds=0.0),
    ]
    rewards, right = ToolRewardNode()(asked, [Said, Said], ran)  # type: ignore[list-item]
    assert right.tolist() == [True, False]
    assert rewards.tolist() == [1.0, 0.0]
    rewards, _ = ToolRewardNode(by="formula")(asked, [Said, Said], ran)  # type: ignore[list-item]
    # 0.6 · 0.5 for the confidence, 0.1 for being at once: 0.4 on [-1, 1]
    assert rewards.tolist() == pytest.approx([0.7, 0.7])


def test_a_toolbox_goes_where_a_toolbox_is_taken() -> None:
    graph = template("tools")
    graph.disconnect("policy.toolbox")
    graph.connect("encoder.encoder", "policy.toolbox")
    (result,) = check(graph).errors
    assert result.message.endswith("it takes tools (a handle) but gets a text encoder (a handle)")


def test_a_tool_takes_no_longer_than_its_call(tmp_path) -> None:
    asked = QuerySourceNode(held_out=0.25, seed=3).held_out[:1]
    _, encoder = QueryEncoderNode()(asked)
    toolbox = ToolBoxNode(into=tmp_path)(encoder)
    begin = time.perf_counter()
    (output,) = ToolRunnerNode().run(asked, [next(iter(toolbox.box)).name], toolbox)
    assert 0.0 < output.milliseconds <= 1000.0 * (time.perf_counter() - begin)
