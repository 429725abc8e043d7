"""`surefoot prompts rlaif`: train on the preferences of a judge, corrected by a person."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from surefoot.cli.options import NewRunName, Seed, at_least_one, command_line, options_from, split_settings, user_object
from surefoot.cli.verbs.prompts.prompts import PromptSettings, language_model, named_scorer

if TYPE_CHECKING:
    from surefoot.decide.prompts.improve import Improved
    from surefoot.decide.prompts.policy import PromptPolicy
    from surefoot.decide.prompts.rlaif import Judge, Rlaif

BATCH = 20
"""Prompts judged per round: few enough for a person to check a quarter of them."""


@dataclass(frozen=True, kw_only=True)
class ReviewOptions:
    """Keys of --set besides those of `PromptConfig`."""

    human_pairs: int = 5


@dataclass(frozen=True, kw_only=True)
class PromptsRlaifArgs:
    """Train a prompt policy on preferences (RLAIF).

    In each round the policy mutates prompts, a judge compares the versions, and the scorer that rewards the policy is
    fitted to the preferences. Every few rounds you compare some of the same pairs; your answer replaces the
    judge's and counts five times.

        surefoot prompts rlaif --prompts my_prompts.txt --human-every 3 --name judged
        surefoot prompts rlaif --prompts my_prompts.txt --judge judges:politeness --human-every 0
        surefoot prompts improve "Write a story about bees." --run judged
    """

    prompts: Path
    """Text file with one prompt per line, or .jsonl with a field "prompt"."""
    judge: Annotated[str, tyro.conf.arg(metavar="scorer|lm:MODEL|MODULE:FUNCTION")] = "scorer"
    """The judge: the lint (scorer), a language model (lm:smollm2, or a directory written by `surefoot lm reward`), or your
    function of two texts that returns the probability that the first is better."""
    human_every: int = 3
    """Rounds between your reviews; 0 means none."""
    rounds: int = 9
    """Number of rounds."""
    evaluations: Annotated[int, tyro.conf.arg(aliases=["-n"])] = 3_000
    """Number of texts to score in all rounds together."""
    seed: Seed = 0
    set: PromptSettings = ()
    name: NewRunName = None

    def run(self) -> int:
        from surefoot.decide.prompts.policy import PromptConfig, PromptPolicy, train
        from surefoot.decide.prompts.rlaif import Rlaif
        from surefoot.decide.prompts.runs import ENV, PromptRun, read_prompts
        from surefoot.train.device import pin_threads
        from surefoot.train.rundir.rundir import new_run_dir

        at_least_one(rounds=self.rounds, evaluations=self.evaluations)
        pin_threads(1)
        person = None if self.human_every == 0 else ask_person
        review, others = split_settings(ReviewOptions, self.set)
        loop = Rlaif(judge=self._judge(), person=person, human_every=self.human_every, human_pairs=review.human_pairs)
        prompts = read_prompts(self.prompts)
        policy = PromptPolicy(options_from(PromptConfig, others, "--set"), seed=self.seed)
        directory = new_run_dir(ENV, self.seed, name=self.name)
        before, used, curve = judged(loop, improved(policy, prompts)), 0, list[tuple[int, float]]()
        result: dict[str, Any] = {}
        for _ in range(self.rounds):
            # Random versions: a policy that leaves every prompt alone would show the judge nothing.
            result = loop.round(improved(policy, prompts, explore=True)[:BATCH])
            passes = train(policy, loop.scorer, prompts, max(1, self.evaluations // self.rounds))
            curve += [(used + scores, gain) for scores, gain in passes]
            used = curve[-1][0] if curve else used
            agrees = "" if result["judge_agrees"] is None else f", agreement with you {result['judge_agrees']:.0%}"
            print(
                f"round {result['round']} of {self.rounds}: {used:,} scores; the judge prefers the new "
                f"version {result['preferred']:.2f}{agrees}",
                flush=True,
            )
        after = judged(loop, improved(policy, prompts))
        PromptRun(
            policy=policy,
            prompts=tuple(prompts),
            curve=curve,
            evaluations=used,
            scorer=loop.scorer,
            measured=f"the judge {self.judge}",
        ).save(directory, command_line())
        print(f"the judge prefers the policy's version to the original: {before:.2f} before, {after:.2f} after")
        share = loop.agreement.share
        if share is not None:
            print(
                f"the judge agreed with you in {share:.0%} of {loop.agreement.asked} pairs; "
                f"{loop.agreement.corrections} of its verdicts were corrected"
            )
        print(f"{result['pairs']} pairs; surefoot prompts improve --run {directory.name}")
        return 0

    def _judge(self) -> Judge:
        from surefoot.decide.prompts.rlaif import judge_by
        from surefoot.decide.prompts.scorers import LintScorer

        if self.judge == "scorer":
            return judge_by(LintScorer())
        if language_model(self.judge) is not None:
            return judge_by(named_scorer(self.judge))
        return user_object(
            self.judge,
            "--judge",
            f"--judge {self.judge} must be scorer, lm:MODEL or MODULE:FUNCTION, such as judges:politeness",
        )


def improved(policy: PromptPolicy, prompts: list[str], *, explore: bool = False) -> list[Improved]:
    """Return the policy's versions of the prompts, or random ones."""
    from surefoot.decide.prompts.improve import at_random, improve
    from surefoot.decide.prompts.scorers import LintScorer

    chooser = at_random(policy.config, policy.seed) if explore else policy.steps
    return improve(chooser, prompts, LintScorer(), token_cost=policy.config.token_cost)


def judged(loop: Rlaif, improved: list[Improved]) -> float:
    """Return the judge's mean probability that the policy's version is better; an unchanged prompt counts as a draw."""
    # Each pair is judged in both orders, because judges prefer one position.
    verdicts = [
        0.5 * (loop.judge(e.text, e.original) + 1.0 - loop.judge(e.original, e.text)) for e in improved if e.changes
    ]
    return (sum(verdicts) + 0.5 * (len(improved) - len(verdicts))) / len(improved)


def ask_person(one: str, other: str) -> float:
    """Ask at the terminal which version is better; return 0.5 ("cannot tell") after the end of the input."""
    print(f"\n--- A ---\n{one}\n--- B ---\n{other}\n")
    while True:
        print("which is better, A or B? (= cannot tell) ", end="", flush=True)
        line = sys.stdin.readline()
        answer = {"a": 1.0, "b": 0.0, "=": 0.5}.get(line.strip().lower())
        if answer is not None:
            return answer
        if not line:
            return 0.5
