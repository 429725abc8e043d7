"""The chat of `surefoot tools demo`: ask, see which tool answered and why, rate the answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

if TYPE_CHECKING:
    from surefoot.decide.tools.agent import ToolAgent
    from surefoot.decide.tools.run import ToolRun

WELCOME = """[bold]An assistant with five tools.[/] It uses the tool whose description fits your
question best, and learns from your ratings. Ask it something:

  [cyan]What is 17 percent of 250?[/]      [cyan]How many envs where kind is continuous?[/]
  [cyan]What does the clip do in PPO?[/]   [cyan]Remember that the demo is on Friday[/]
  [cyan]Find pages about checkpoints[/]

[bold]0[/] … [bold]5[/] rates the answer   [bold]why[/] explains the choice   [bold]tools[/]  [bold]help[/]  [bold]quit[/]
[bold]teach[/] trains it on 56 questions with known tools"""
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?")


class Talk:
    """A chat with one user."""

    def __init__(self, agent: ToolAgent, questions: list[tuple[str, str]], seed: int) -> None:
        self.agent, self.questions = agent, questions
        self.console = Console(highlight=False)
        self.last: ToolRun | None = None
        self._seed = seed

    def run(self) -> int:
        self.console.print(WELCOME)
        past = len(self.agent.runs)
        if past:
            self.console.print(f"[dim]It continues after {past} earlier questions.[/]")
        while True:
            try:
                line = self.console.input("\n[bold]>[/] ").strip()
            except (EOFError, KeyboardInterrupt):
                self.console.print()
                return 0
            if line in ("quit", "exit", "q"):
                return 0
            if line:
                self._take(line)

    def _take(self, line: str) -> None:
        match line.lower():
            case "help" | "?":
                self.console.print(WELCOME)
            case "tools":
                for tool in self.agent.toolbox:
                    self.console.print(f"  [bold]{tool.name:<14}[/]{escape(tool.description)}")
            case "teach":
                self._teach()
            case "why":
                text = "ask something first" if self.last is None else str(self.agent.explain(self.last))
                self.console.print(escape(text))
            case number if _NUMBER.fullmatch(number):
                self._rate(number)
            case _:
                self._ask(line)

    def _ask(self, line: str) -> None:
        run = self.last = self.agent.answer(line, bypass_cache=True)
        others = sorted(run.trace.probabilities.items(), key=lambda item: -item[1])
        beside = next((f"; else {name} ({p:.0%})" for name, p in others if name != run.tool and p > 0.005), "")
        self.console.print(f"[bold green]{run.tool}[/] [dim]confidence {run.trace.tool_confidence:.0%}{beside}[/]")
        self.console.print(escape(run.response), style="yellow" if run.trace.errors else None)

    def _rate(self, number: str) -> None:
        """Learn from the rating, and print how the probabilities for the same question changed."""
        if self.last is None:
            self.console.print("there is no answer to rate; ask something first")
            return
        if number not in ("0", "1", "2", "3", "4", "5"):
            self.console.print(f"{number} is not a rating; type 0 (useless) to 5 (perfect)")
            return
        last, agent = self.last, self.agent
        agent.feedback(last, {"rating": int(number)})
        agent.wait()
        agent.learn()
        again = agent.preview(last.query)
        before = last.trace.probabilities
        for name, p in sorted(again.items(), key=lambda item: -item[1]):
            if max(p, before.get(name, 0.0)) > 0.005:
                bar = "█" * round(20 * p)
                self.console.print(f"  {name:<14}{before.get(name, 0.0):>5.0%} → {p:>4.0%}  [cyan]{bar}[/]")
        self.console.print("[dim]  learned: these are its new probabilities for the same question[/]")

    def _teach(self) -> None:
        """Train one pass over the questions with known tools."""
        import numpy as np

        self._seed += 1
        right, row = 0, ""
        for i in np.random.default_rng(self._seed).permutation(len(self.questions)):
            tool, question = self.questions[int(i)]
            run = self.agent.answer(question, bypass_cache=True)
            good = run.tool == tool
            self.agent.feedback(run, {"helpful": good, "right": tool})
            self.agent.wait()
            self.agent.learn()
            right += good
            row += "[green]●[/]" if good else "[red]○[/]"
        self.last = None
        summary = f"{right} of {len(self.questions)} with the right tool; `teach` again, or ask a similar question"
        self.console.print(f"  {row}\n  {summary}")
