"""Tools in a graph: questions, choices, answers, rewards and exams."""

import time
from dataclasses import replace

import numpy as np
import pytest

from surefoot.decide.core.agent import Agent
from surefoot.decide.promotion import Versions
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
    ToolTrainerNode,
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
    _, agent = ToolPolicyNode()(vectors[:1], ToolBoxNode(into=tmp_path)(encoder), encoder)
    exam = ToolExamNode(every=2, into=tmp_path)
    assert exam("complete", asked, encoder, agent) == (None, None)
    right, nearest = exam("complete", asked, encoder, agent)
    assert right == nearest
    assert 0.3 < right < 0.9
    with pytest.raises(ConfigError, match="set held_out of QuerySource"):
        exam.examine([], encoder, agent)


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


def test_after_none_of_these_no_tool_runs_and_nothing_is_learned(tmp_path) -> None:
    questions = QuerySourceNode(seed=3).questions[:2]
    vectors, encoder = QueryEncoderNode()(questions)
    toolbox = ToolBoxNode(into=tmp_path)(encoder)
    choices, agent = ToolPolicyNode()(vectors, toolbox, encoder)
    choices[0] = replace(choices[0], name=None)
    outputs = ToolRunnerNode()(questions, choices, toolbox)
    assert outputs[0].error == "none of the tools was chosen"
    rewards, right = ToolRewardNode()(questions, choices, outputs)
    assert (rewards[0], right[0]) == (0.0, False)
    ToolTrainerNode()(choices, rewards, agent)
    assert agent.chooser.outcomes == 1


def test_a_policy_continues_from_its_snapshot_and_its_checkpoint_is_a_version_of_an_agent(tmp_path) -> None:
    questions = QuerySourceNode(seed=3).questions[:40]
    vectors, encoder = QueryEncoderNode()(questions)
    toolbox = ToolBoxNode(into=tmp_path)(encoder)

    def nodes() -> tuple[ToolPolicyNode, ToolTrainerNode]:
        return ToolPolicyNode(seed=5), ToolTrainerNode(every=8)

    def play(policy: ToolPolicyNode, trainer: ToolTrainerNode, rows: range) -> list[str | None]:
        names = list[str | None]()
        for row in rows:
            choices, agent = policy(vectors[[row]], toolbox, encoder)
            names += [each.name for each in choices]
            trainer(choices, np.array([float(choices[0].name == "calc")]), agent)
        return names

    first = nodes()
    play(*first, range(20))
    second = nodes()
    play(*second, range(1))  # the first tick builds the agent
    for old, new in zip(first, second, strict=True):
        new.restore(old.snapshot())
    assert play(*first, range(20, 40)) == play(*second, range(20, 40))
    assert second[1].updates == 5
    versions = Versions(tmp_path / "versions")
    versions.save(1, first[1].state())
    loaded = Agent(encoder)
    loaded.load(versions)
    assert loaded.version == first[0].agent.version > 0
