"""`surefoot prompts rlaif`: train on the preferences of a judge, corrected by a person."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from surefoot.cli.options import NewRunName, Seed, at_least_one, user_object
from surefoot.cli.verbs.prompts.prompts import TokenCost, named_scorer

if TYPE_CHECKING:
    from surefoot.decide.prompts.improve import Improved
    from surefoot.decide.prompts.rlaif import Judge, Rlaif
    from surefoot.decide.prompts.runs import PromptTask
    from surefoot.train.run import Run

BATCH = 20
"""Prompts judged per round: few enough for a person to check a quarter of them."""


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
    """The judge: the shipped scorer, a language model (lm:smollm2, or a directory written by `surefoot lm reward`), or your
    function of two texts that returns the probability that the first is better."""
    human_every: int = 3
    """Rounds between your reviews; 0 means none."""
    human_pairs: int = 5
    """Pairs per review: those the judge is most certain about."""
    rounds: int = 9
    """Number of rounds."""
    steps: Annotated[int, tyro.conf.arg(aliases=["-n"])] = 60_000
    """Number of mutations to train on, in all rounds together."""
    seed: Seed = 0
    token_cost: TokenCost = 0.008
    name: NewRunName = None

    def run(self) -> int:
        from surefoot.decide.prompts.rlaif import Rlaif
        from surefoot.train.device import pin_threads

        at_least_one(rounds=self.rounds)
        pin_threads(1)
        person = None if self.human_every == 0 else ask_person
        loop = Rlaif(judge=self._judge(), person=person, human_every=self.human_every, human_pairs=self.human_pairs)
        task, run = self._begin(loop)
        try:
            before = judged(loop, self._improved(task, run))
            last = self._train(loop, task, run)
            after = judged(loop, self._improved(task, run))
            task.save(run.directory.path)
            run.close("finished")
        except BaseException:
            run.close("interrupted")
            raise
        print(f"the judge prefers the policy's version to the original: {before:.2f} before, {after:.2f} after")
        share = loop.agreement.share
        if share is not None:
            print(
                f"the judge agreed with you in {share:.0%} of {loop.agreement.asked} pairs; "
                f"{loop.agreement.corrections} of its verdicts were corrected"
            )
        print(f"{last['pairs']} pairs; surefoot prompts improve --run {run.directory.name}")
        return 0

    def _begin(self, loop: Rlaif) -> tuple[PromptTask, Run]:
        from surefoot.decide.prompts.runs import ENV, SETTINGS, PromptTask, read_prompts
        from surefoot.decide.prompts.world import PromptConfig
        from surefoot.train.run import create_run
        from surefoot.train.rundir.rundir import new_run_dir, runs_root
        from surefoot.train.spec import make_spec
        from surefoot.train.training import Training

        task = PromptTask(
            prompts=tuple(read_prompts(self.prompts)),
            config=PromptConfig(token_cost=self.token_cost),
            scorer=loop.scorer,
        )
        settings: dict[str, Any] = {**SETTINGS, "seed": self.seed}
        spec = make_spec(
            ENV, task.world(1).action, preset_name="sb3", settings=settings, total_steps=self.steps, eval_every=0
        )
        directory = new_run_dir(ENV, spec.seed, root=runs_root(), name=self.name)
        training = Training(spec, make=task.make)
        return task, create_run(directory, spec, training=training, command=["surefoot", *sys.argv[1:]])

    def _train(self, loop: Rlaif, task: PromptTask, run: Run) -> dict[str, Any]:
        from surefoot.decide.prompts.world import PromptWorld

        result: dict[str, Any] = {}
        for moment in run.moments():
            if moment.env_steps < (loop.rounds + 1) * self.steps / self.rounds:
                continue
            result = loop.round(self._improved(task, run)[:BATCH])
            world = run.training.world
            assert isinstance(world, PromptWorld)
            world.score_by(loop.scorer)
            agrees = "" if result["judge_agrees"] is None else f", agreement with you {result['judge_agrees']:.0%}"
            print(
                f"round {result['round']} of {self.rounds}: {moment.env_steps:,} mutations; the judge prefers the new "
                f"version {result['preferred']:.2f}{agrees}",
                flush=True,
            )
        return result

    def _improved(self, task: PromptTask, run: Run) -> list[Improved]:
        from surefoot.decide.prompts.improve import by_policy, improve

        world = task.world(min(64, len(task.prompts)), in_order=True)
        return improve(by_policy(run.training.policy, deterministic=True), world)

    def _judge(self) -> Judge:
        from surefoot.decide.prompts.rlaif import judge_by
        from surefoot.decide.prompts.scorers import FeatureScorer

        if self.judge == "scorer":
            return judge_by(FeatureScorer())
        if self.judge == "lm" or self.judge.startswith("lm:"):
            return judge_by(named_scorer(self.judge))
        return user_object(
            self.judge,
            "--judge",
            f"--judge {self.judge} must be scorer, lm:MODEL or MODULE:FUNCTION, such as judges:politeness",
        )


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
