"""`surefoot prompts eval` and `surefoot prompts report`: a trained policy on prompts that it has not seen."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import tyro

from surefoot.cli.options import run_directory
from surefoot.cli.verbs.prompts.prompts import TaskFile, TaskModel, answering_model

if TYPE_CHECKING:
    from surefoot.decide.prompts.improve import Improved
    from surefoot.decide.prompts.policy import PromptConfig
    from surefoot.decide.prompts.runs import PromptRun
    from surefoot.decide.prompts.scorers import Scorer
    from surefoot.train.rundir.rundir import RunDir

RunArgument = Annotated[
    tyro.conf.Positional[str],
    tyro.conf.arg(metavar="RUN", help="A run of `surefoot prompts train` or `surefoot prompts rlaif`."),
]


@dataclass(frozen=True, kw_only=True)
class PromptsEvalArgs:
    """Evaluate a trained policy on prompts or a task that it was not trained on.

        surefoot prompts eval mine --task held_out.jsonl
        surefoot prompts eval mine --task held_out.jsonl --train-task rows.jsonl

    Compared with no change and with random mutations; with --train-task also with the best single mutation, the best of 24
    random sequences and the best sequence of a greedy search, each chosen on those rows with as many scores as the policy was
    trained with. Gains have 95 % bootstrap intervals over the prompts.
    """

    run_name: RunArgument
    task: TaskFile = None
    model: TaskModel = "lm:smollm2"
    train_task: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Task on whose rows the compared sequences are chosen."""
    prompts: Path | None = None
    """Without a task: file of prompts (default: those the policy was trained on)."""
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        import numpy as np

        from surefoot.decide.prompts.improve import interval

        run, ways = _compared(run_directory(self.run_name), self.task, self.model, self.prompts, self.train_task)
        rows = {
            name: {
                **dict(zip(("gain", "low", "high"), interval([e.gain for e in results]), strict=True)),
                "reward": float(np.mean([e.reward for e in results])),
                "tokens": float(np.mean([float(e.tokens_added) for e in results])),
                "mutations": float(np.mean([len(e.changes) for e in results])),
            }
            for name, results in ways.items()
        }
        count = len(next(iter(ways.values())))
        if self.as_json:
            print(json.dumps({"prompts": count, "evaluations": run.evaluations, "rows": rows}))
            return 0
        print(f"{count} prompts   reward = gain - {run.policy.config.token_cost:g} per token")
        for name, row in rows.items():
            gain = f"gain {row['gain']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]"
            others = "   ".join(f"{metric} {row[metric]:.3f}" for metric in ("reward", "tokens", "mutations"))
            print(f"  {name:<20} {gain}   {others}")
        return 0


@dataclass(frozen=True, kw_only=True)
class PromptsReportArgs:
    """Write a report of a prompt run as one HTML page.

        surefoot prompts report mine --task held_out.jsonl
        surefoot prompts report mine --prompts held_out.txt -o held_out.html

    The page shows the learning curve, which mutations the policy chooses for which prompts, its gain compared with a
    random choice, and the improved prompts.
    """

    run_name: RunArgument
    task: TaskFile = None
    model: TaskModel = "lm:smollm2"
    prompts: Path | None = None
    """Without a task: file of prompts (default: those the policy was trained on)."""
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """File of the page (default: prompts.html in the run's directory)."""

    def run(self) -> int:
        from surefoot.decide.prompts.page import headline, prompts_page

        directory = run_directory(self.run_name)
        run, ways = _compared(directory, self.task, self.model, self.prompts, None)
        title = f"{directory.name}: which mutations prompts need"
        curve = [(float(x), y) for x, y in run.curve]
        page = prompts_page(title, ways, curve, token_cost=run.policy.config.token_cost)
        out = self.out or directory.path / "prompts.html"
        out.write_text(page, encoding="utf-8")
        print(f"{headline(ways)} → {out}")
        return 0


def _compared(
    directory: RunDir, task: Path | None, model: str, prompts: Path | None, train_task: Path | None
) -> tuple[PromptRun, dict[str, list[Improved]]]:
    """Return a run, and prompts improved by its policy and by simple choosers."""
    from surefoot.decide.prompts.examples import Examples
    from surefoot.decide.prompts.improve import at_random, best_of_n, best_sequence, best_single, fixed, improve
    from surefoot.decide.prompts.runs import PromptRun, read_prompts
    from surefoot.decide.prompts.tasks import TaskScorer, read_task

    run = PromptRun.load(directory)
    config: PromptConfig = run.policy.config
    examples = run.policy.examples
    answering = None if task is None and train_task is None else answering_model(model)
    if task is not None:
        assert answering is not None
        scorer: Scorer = TaskScorer(read_task(task), answering)
        texts = list(dict.fromkeys(row.prompt for row in read_task(task)))
    else:
        scorer, texts = run.scorer, list(run.prompts) if prompts is None else read_prompts(prompts)
    choosers = {"the policy": run.policy.steps, "no change": fixed((), config)}
    choosers["at random"] = at_random(config, examples=examples)
    if train_task is not None:
        assert answering is not None
        rows = TaskScorer(read_task(train_task), answering)
        for name, choose in {
            "best single": best_single,
            "best of 24": best_of_n,
            "best sequence": best_sequence,
        }.items():
            names = choose(rows, rows.prompts, config, run.evaluations, Examples(rows.rows))
            choosers[name] = fixed(names, config, examples)
    cost = config.token_cost
    return run, {name: improve(choose, texts, scorer, token_cost=cost) for name, choose in choosers.items()}
