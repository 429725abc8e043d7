"""`surefoot prompts …`: improve prompts by mutations, and train the policy that chooses them."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import tyro

from surefoot.cli import options
from surefoot.cli.options import at_least_one, command_line, run_directory, user_object
from surefoot.cli.usage import Usage

if TYPE_CHECKING:
    from surefoot.decide.prompts.examples import Examples
    from surefoot.decide.prompts.improve import Improved
    from surefoot.decide.prompts.scorers import Scorer
    from surefoot.decide.prompts.tasks import AnswersPrompts


TaskFile = Annotated[
    Path | None,
    tyro.conf.arg(
        metavar="FILE",
        help='Rows that are measured with a language model: .jsonl with "prompt", "answer" and, if the reply is to be '
        'checked, "check" (exact, contains, regex, json or number) per line.',
    ),
]
TaskModel = Annotated[
    str,
    tyro.conf.arg(
        metavar="lm:MODEL|[NAME@]URL",
        help="Model that answers the rows of a task: lm:smollm2 after `surefoot lm get smollm2`, lm:FOLDER, or an "
        "OpenAI-compatible server such as qwen@http://127.0.0.1:8000/v1.",
    ),
]
PromptSettings = Annotated[
    options.Settings,
    tyro.conf.arg(
        help="Change a detail; repeatable: token_cost=0.002 (cost of each added token, in units of the score), max_tokens=200 "
        "(most tokens that the mutations of a prompt may add in all), max_steps=4 (most mutations per prompt), and for rlaif "
        "human_pairs=5 (pairs per review: those the judge is most certain about)."
    ),
]


@dataclass(frozen=True, kw_only=True)
class PromptsTrainArgs:
    """Train a policy that chooses mutations for prompts like yours.

    With --task the reward of a mutation is what it changes in the model's answers: the log-likelihood of the right answer
    per token, or the result of a check. The price of the added tokens is subtracted, so the policy also learns when to stop.
    The rows of the task are also what examples are taken from: never the row itself.

        surefoot lm get smollm2
        surefoot prompts train --task rows.jsonl --name mine
        surefoot prompts improve "Which topic is this: refund, card, fee? I was charged twice." --run mine
    """

    task: TaskFile = None
    model: TaskModel = "lm:smollm2"
    prompts: Path | None = None
    """Without a task: text file with one prompt per line, or .jsonl with a field "prompt"."""
    evaluations: Annotated[int, tyro.conf.arg(aliases=["-n"])] = 2_000
    """Number of texts to score in all."""
    seed: options.Seed = 0
    scores: Path | None = None
    """Without a task: human scores to fit the scorer to, .jsonl with "prompt" and "score" (1 to 5)."""
    scorer: Annotated[str | None, tyro.conf.arg(metavar="MODULE:FUNCTION|lm:MODEL")] = None
    """Without a task: your function of a prompt that returns 0 to 1, or a language model that judges the prompt itself, such
    as lm:smollm2 or a directory written by `surefoot lm reward`."""
    set: PromptSettings = ()
    name: options.NewRunName = None

    def run(self) -> int:
        from surefoot.decide.prompts.policy import PromptConfig, PromptPolicy, train
        from surefoot.decide.prompts.runs import ENV, PromptRun
        from surefoot.train.device import pin_threads
        from surefoot.train.rundir.rundir import new_run_dir

        at_least_one(evaluations=self.evaluations)
        if (self.task is None) == (self.prompts is None):
            raise Usage(
                "pass --task FILE or --prompts FILE: a task measures answers, prompts alone are judged as texts"
            )
        pin_threads(1)
        config = options.options_from(PromptConfig, options.pairs(self.set, "--set"), "--set")
        scorer, prompts, measured = self._scorer()
        policy = PromptPolicy(config, seed=self.seed, examples=examples_of(scorer))
        directory = new_run_dir(ENV, self.seed, name=self.name)
        curve = train(policy, scorer, prompts, self.evaluations)
        run = PromptRun(
            policy=policy,
            prompts=tuple(prompts),
            curve=curve,
            evaluations=curve[-1][0] if curve else 0,
            scorer=scorer,
            measured=measured,
        )
        run.save(directory, command_line())
        gain = f"; mean gain in the last pass {curve[-1][1]:+.3f}" if curve else ""
        print(f"{len(prompts)} prompts, {run.evaluations} scores by {measured}{gain}")
        print(f"surefoot prompts improve --run {directory.name}")
        return 0

    def _scorer(self) -> tuple[Scorer, list[str], str]:
        """Return the scorer, the prompts, and a description of the scorer."""
        from surefoot.decide.prompts.runs import read_prompts, read_scores
        from surefoot.decide.prompts.scorers import LintScorer, RidgeScorer

        if self.task is not None:
            if self.scores is not None or self.scorer is not None:
                raise Usage("--task was given with --scores or --scorer; a task is scored by its answers")
            return task_scorer(self.task, self.model)
        assert self.prompts is not None
        if self.scores is not None and self.scorer is not None:
            raise Usage("--scores and --scorer were both given; --scores fits the shipped scorer")
        prompts = read_prompts(self.prompts)
        if self.scorer is not None:
            return named_scorer(self.scorer), prompts, self.scorer
        if self.scores is None:
            return LintScorer(), prompts, "the lint"
        scorer = RidgeScorer()
        fit = scorer.fit(*read_scores(self.scores))
        print(
            f"scorer fitted to {fit.examples} scores; on {fit.held_out} held-out ones: mean error {fit.mae:.2f} (scale 0 to 1), "
            f"rank correlation {fit.rank_correlation:.2f}"
        )
        return scorer, prompts, f"a scorer fitted to {self.scores}"


@dataclass(frozen=True, kw_only=True)
class PromptsImproveArgs:
    """Improve a prompt: print the chosen mutations, and the new prompt as a diff.

        surefoot prompts improve "Which topic is this: refund, card, fee? I was charged twice." --run mine
        surefoot prompts improve --task rows.jsonl < prompt.txt

    With --run a trained policy chooses, without evaluating anything; rows of --task then serve as examples of your task. With
    --task alone the mutations are chosen that gain most over its rows. With neither, only the lint decides, which mostly
    reports what is missing. No mutation removes a word of the prompt unless you pass --allow-cut. In the diff, lines with +
    were added.
    """

    prompt: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="PROMPT")] = ()
    """The prompt (default: read from standard input)."""
    run_name: Annotated[str | None, tyro.conf.arg(name="run", metavar="RUN")] = None
    """A run of `surefoot prompts train` whose policy chooses."""
    task: TaskFile = None
    model: TaskModel = "lm:smollm2"
    evaluations: Annotated[int, tyro.conf.arg(aliases=["-n"])] = 400
    """With --task: number of texts to score in all."""
    set: PromptSettings = ()
    allow_cut: bool = False
    """Allow mutations that remove words of the prompt; what they remove is shown as a diff."""
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        from surefoot.decide.prompts.examples import Examples
        from surefoot.decide.prompts.improve import best_sequence, fixed, improve
        from surefoot.decide.prompts.policy import PromptConfig
        from surefoot.decide.prompts.runs import PromptRun
        from surefoot.decide.prompts.scorers import LintScorer
        from surefoot.decide.prompts.tasks import read_task

        at_least_one(evaluations=self.evaluations)
        text = " ".join(self.prompt) if self.prompt else sys.stdin.read()
        if not text.strip():
            raise Usage('the prompt is empty; pass one, as in surefoot prompts improve "Write a story about bees."')
        config = options.options_from(PromptConfig, options.pairs(self.set, "--set"), "--set")
        config = config.replace(allow_cut=self.allow_cut)
        source = "the lint"
        if self.run_name is not None:
            policy = PromptRun.load(run_directory(self.run_name)).policy
            if self.task is not None:
                known = [] if policy.examples is None else policy.examples.rows
                policy.examples = Examples([*read_task(self.task), *known])
            policy.config = replace(policy.config, max_tokens=config.max_tokens, allow_cut=self.allow_cut)
            choose, source = policy.steps, "the policy"
        elif self.task is not None:
            scorer, prompts, source = task_scorer(self.task, self.model)
            examples = examples_of(scorer)
            choose = fixed(best_sequence(scorer, prompts, config, self.evaluations, examples), config, examples)
        else:
            choose = fixed(best_sequence(LintScorer(), [text], config, self.evaluations), config)
        (result,) = improve(choose, [text], LintScorer(), token_cost=config.token_cost)
        if self.as_json:
            print(json.dumps(result.to_json(), ensure_ascii=False))
        else:
            print("\n".join(lines(result, source)))
        return 0


def lines(result: Improved, chooser: str) -> list[str]:
    """Return the mutations of a prompt, the new prompt as a diff, and the findings of the lint."""
    from surefoot.decide.prompts.lint import lint
    from surefoot.decide.prompts.mutations import ABOUT

    changes = [f"  {c.mutation:<20} {ABOUT[c.mutation]}, {c.tokens:+d} tokens" for c in result.changes]
    changes = changes or [f"  {chooser} would not change it"]
    linted = lint(result.original)
    reasons = [f"  {reason}" for reason in linted.reasons]
    return [
        f"lint {linted.score:.2f}",
        *reasons,
        f"{result.tokens_added:+d} tokens",
        *changes,
        "",
        *diff(result.original, result.text),
    ]


def diff(before: str, after: str) -> list[str]:
    """Return the lines of the new prompt, marked with + if they were added; removed lines follow with -."""
    from difflib import ndiff

    marked = ndiff(before.splitlines(), after.splitlines())
    return [line for line in marked if not line.startswith("?")]


def task_scorer(path: Path, model: str) -> tuple[Scorer, list[str], str]:
    """Return the scorer of a task file, its prompts, and a description."""
    from surefoot.decide.prompts.tasks import TaskScorer, read_task

    rows = read_task(path)
    scorer = TaskScorer(rows, answering_model(model))
    return scorer, scorer.prompts, f"task {path} with {scorer.model.name}"


def examples_of(scorer: Scorer) -> Examples | None:
    """Return the rows of a task as examples; None for other scorers."""
    from surefoot.decide.prompts.examples import Examples
    from surefoot.decide.prompts.tasks import TaskScorer

    return Examples(scorer.rows) if isinstance(scorer, TaskScorer) else None


def language_model(name: str) -> str | None:
    """Return MODEL of lm:MODEL, smollm2 by default; None for another kind of name."""
    kind, _, model = name.partition(":")
    return (model or "smollm2") if kind == "lm" else None


def answering_model(name: str) -> AnswersPrompts:
    """Return the model that lm:MODEL or [NAME@]URL names."""
    if (model := language_model(name)) is not None:
        from surefoot.lm.rewards.answer_model import AnswerModel

        return AnswerModel(model)
    served, at, url = name.rpartition("@")
    if "://" in url:
        from surefoot.decide.prompts.chat_model import ChatModel

        return ChatModel(url, served if at else "default")
    raise Usage(f"--model {name} must be lm:MODEL, such as lm:smollm2, or a URL, such as http://127.0.0.1:8000/v1")


def named_scorer(name: str) -> Scorer:
    """Return the scorer that MODULE:FUNCTION or lm:MODEL names."""
    from surefoot.decide.prompts.scorers import CallableScorer

    if (model := language_model(name)) is not None:
        from surefoot.lm.rewards.scoring import scorer

        return CallableScorer(scorer(model))
    message = f"--scorer {name} must be MODULE:FUNCTION, such as judges:politeness, or lm:MODEL"
    return CallableScorer(user_object(name, "--scorer", message))
