"""`surefoot lm eval`: compare two models on a file of prompts."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import tyro

from surefoot.cli.usage import Usage
from surefoot.cli.verbs.lm.progress import find_scorer


@dataclass(frozen=True, kw_only=True)
class LMEvalArgs:
    """Compare two models on a file of prompts: win rate with its 95 % interval, fluency, and a page side by side.

        surefoot lm eval smollm2 polite --prompts held_out.txt --judge my_rewards:judge
        surefoot lm eval first second --prompts held_out.txt

    A model is a run, a directory, a Hugging Face name or smollm2; prompts go through the chat template if the
    run was trained with it. Without --judge you are the judge: the answers are shown in random order, without names.
    """

    first: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="A")]
    """Run or model."""
    second: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="B")]
    """Run or model to compare with it."""
    prompts: Path
    """File of prompts: .txt, .jsonl, .csv or .parquet."""
    judge: Annotated[str | None, tyro.conf.arg(metavar="MODULE:FUNCTION|DIR|URL")] = None
    """Scores answers, as in `surefoot lm ppo`: a function, a directory of `surefoot lm reward`, or [MODEL@]URL of an
    OpenAI-compatible server."""
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """Also write the answers side by side to this HTML file."""
    tokens: int = 64
    """Maximum number of tokens of an answer."""
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        from surefoot.errors import RunNotFound
        from surefoot.lm.data import read_rows
        from surefoot.lm.evaluation import answers, by_judge, by_person, win_rate, write_page
        from surefoot.lm.rewards.rewards import as_rewards
        from surefoot.lm.rewards.text_reward import TextReward
        from surefoot.train.rundir.rundir import RunDir, find_run

        if self.as_json and self.judge is None:
            raise Usage("--json needs --judge; without a judge the answers are shown for you to choose")
        rows = read_rows(self.prompts)
        scorer = None
        if self.judge is not None:
            scorer = find_scorer(self.judge, "--judge")
            if Path(self.judge).is_dir() and not isinstance(scorer, TextReward):
                raise Usage(
                    f"{self.judge} reads the tokens of its own model; make one that reads text with --model minilm"
                )
        judge = None if scorer is None else as_rewards(scorer, kind="judge")
        names, sides, numbers = (self.first, self.second), [], []
        for name in names:
            run: RunDir | None = None
            # Not a run, then a model; `load_backbone` reports names that are neither.
            with suppress(RunNotFound):
                run = find_run(name)
            side, measured = answers(name, run, rows, tokens=self.tokens)
            sides.append(side)
            numbers.append(measured)
        wins = by_judge(judge, *sides) if judge is not None else by_person(_ask, *sides)
        result = win_rate(wins) | {"models": names, "measured": numbers}
        if self.out is not None:
            write_page(self.out, names, sides, wins, result)
        if self.as_json:
            print(json.dumps(result))
            return 0
        low, high = result["interval"]
        print(
            f"{self.second} wins {result['second']}, {self.first} wins {result['first']}, {result['ties']} ties: "
            f"win rate {result['win_rate']:.2f} [{low:.2f}, {high:.2f}]"
        )
        for name, measured in zip(names, numbers, strict=True):
            print(f"  {name}: " + ", ".join(f"{key} {value:.3g}" for key, value in measured.items()))
        return 0


def _ask(prompt: str, one: str, other: str) -> int | None:
    """Ask a person in the terminal for the better answer."""
    print(f"\n> {prompt}\n  1  {' '.join(one.split())}\n  2  {' '.join(other.split())}")
    try:
        reply = input("better (1, 2, Enter for a tie): ").strip()
    except EOFError:
        raise Usage(
            "no more replies on standard input; pass --judge MODULE:FUNCTION to let a function choose"
        ) from None
    return int(reply) - 1 if reply in ("1", "2") else None
