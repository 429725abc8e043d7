"""The chat of `surefoot tools demo` with a scripted agent."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from surefoot.cli.verbs.tools.chat import Talk


class Agent:
    """Answers everything with its first tool, and counts ratings."""

    def __init__(self) -> None:
        self.runs: list[Any] = []
        self.ratings: list[Any] = []
        self.toolbox = [SimpleNamespace(name="calculator", description="Add numbers.")]

    def answer(self, query: str, **_: Any) -> Any:
        trace = SimpleNamespace(probabilities={"calculator": 0.75, "notes": 0.25}, tool_confidence=0.5, errors=[])
        return SimpleNamespace(query=query, tool="calculator", response="42", trace=trace)

    def feedback(self, _: Any, rating: Any) -> None:
        self.ratings.append(rating)

    def preview(self, _: str) -> dict[str, float]:
        return {"calculator": 1.0}

    def explain(self, run: Any) -> str:
        return f"because of {run.query}"

    def wait(self) -> None: ...

    def learn(self) -> None: ...


def chat(*lines: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Agent, str]:
    agent: Any = Agent()
    talk = Talk(agent, [("calculator", "1 + 1"), ("notes", "write")], 0)
    out = io.StringIO()
    talk.console = Console(file=out, width=200)
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines) + "\n"))
    assert talk.run() == 0
    return agent, out.getvalue()


def test_an_answer_names_the_tool_its_confidence_and_the_alternative(monkeypatch: pytest.MonkeyPatch) -> None:
    _, text = chat("what is 6 * 7?", "why", "quit", monkeypatch=monkeypatch)
    assert "calculator confidence 50%; else notes (25%)" in text
    assert "because of what is 6 * 7?" in text


def test_only_ratings_from_0_to_5_are_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, text = chat("3", "what?", "9", "-1", "4", "quit", monkeypatch=monkeypatch)
    assert "there is no answer to rate" in text
    assert "9 is not a rating" in text
    assert agent.ratings == [{"rating": 4}]
    assert "75% → 100%" in text


def test_teaching_reports_the_share_of_right_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, text = chat("teach", "tools", monkeypatch=monkeypatch)
    assert "1 of 2 with the right tool" in text
    assert sorted(rating["right"] for rating in agent.ratings) == ["calculator", "notes"]
    assert "Add numbers." in text
