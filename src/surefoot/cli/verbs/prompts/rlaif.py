"""`surefoot prompts rlaif`: a judge says which version is better, a person corrects it now and then, the policy learns."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from surefoot.cli.options import NewRunName, Runs, Seed, user_object
from surefoot.cli.usage import Usage

if TYPE_CHECKING:
    from surefoot.decide.prompts.improve import Improved
    from surefoot.decide.prompts.rlaif import Judge, Rlaif
    from surefoot.decide.prompts.runs import PromptTask
    from surefoot.train.run import Run

BATCH = 20
"""Prompts that are judged in a round."""


@dataclass(frozen=True, kw_only=True)
class PromptsRlaifArgs:
    """Train on preferences: each round the policy mutates prompts, a judge says which version is better, and the scorer that
    the policy learns from is fitted to what was said. Every few rounds you are asked about some of the same pairs; where
    you disagree, your word replaces the judge's and counts five times.

        surefoot prompts rlaif --prompts my_prompts.txt --human-every 3 --name judged
        surefoot prompts rlaif --prompts my_prompts.txt --judge judges:politeness --human-every 0
        surefoot prompts improve "Write a story about bees." --run judged
    """

    prompts: Path
    """A text file with a prompt a line, or .jsonl with a field "prompt"."""
    judge: Annotated[str, tyro.conf.arg(metavar="scorer|lm:MODEL|MODULE:FUNCTION")] = "scorer"
    """Who prefers: the shipped scorer, a language model (lm:smollm2, or a folder that `surefoot lm reward` wrote), or a
    function of (one, other) that returns how likely the first is better."""
    human_every: int = 3
    """Rounds from one look of yours to the next; 0 never asks."""
    human_pairs: int = 5
    """Pairs you are asked about at a time; those the judge is most sure of."""
    rounds: int = 9
    """Rounds of judging."""
    steps: Annotated[int, tyro.conf.arg(aliases=["-n"])] = 60_000
    """Mutations to learn from, all rounds together."""
    seed: Seed = 0
    token_cost: float = 0.008
    """What an added token costs, in score."""
    name: NewRunName = None
    runs: Runs = None

    def run(self) -> int:
        """Train, and tell what it brought."""
        from surefoot.decide.prompts.rlaif import Rlaif
        from surefoot.train.device import pin_threads

        if self.rounds < 1:
            raise Usage(f"--rounds {self.rounds} leaves nothing to judge")
        pin_threads(1)
        person = None if self.human_every == 0 else ask_person
        loop = Rlaif(judge=self._judge(), person=person, human_every=self.human_every, human_pairs=self.human_pairs)
        task, run = self._begin(loop)
        try:
            before = judged(loop, self._improved(task, run))
            told = self._train(loop, task, run)
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
        print(f"{told['pairs']} pairs; surefoot prompts improve --run {run.directory.name}")
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
        directory = new_run_dir(ENV, spec.seed, root=runs_root(self.runs), name=self.name)
        training = Training(spec, make=task.make)
        return task, create_run(directory, spec, training=training, command=["surefoot", *sys.argv[1:]])

    def _train(self, loop: Rlaif, task: PromptTask, run: Run) -> dict[str, Any]:
        from surefoot.decide.prompts.world import PromptWorld

        told: dict[str, Any] = {}
        for moment in run.moments():
            if moment.env_steps < (loop.rounds + 1) * self.steps / self.rounds:
                continue
            told = loop.round(self._improved(task, run)[:BATCH])
            world = run.training.world
            assert isinstance(world, PromptWorld)
            world.score_by(loop.scorer)
            agrees = "" if told["judge_agrees"] is None else f", agrees with you in {told['judge_agrees']:.0%}"
            print(
                f"round {told['round']} of {self.rounds}: {moment.env_steps:,} mutations; the judge prefers the new "
                f"version {told['preferred']:.2f}{agrees}",
                flush=True,
            )
        return told

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
            from surefoot.cli.verbs.prompts.prompts import own_scorer

            return judge_by(own_scorer(self.judge))
        return user_object(
            self.judge,
            "--judge",
            f"--judge {self.judge} is neither scorer nor lm:MODEL nor MODULE:FUNCTION, such as judges:politeness",
        )


def judged(loop: Rlaif, improved: list[Improved]) -> float:
    """How likely the policy's version is better, by the judge; one that was left as it is counts as a draw."""
    said = [
        0.5 * (loop.judge(e.text, e.original) + 1.0 - loop.judge(e.original, e.text)) for e in improved if e.changes
    ]
    return (sum(said) + 0.5 * (len(improved) - len(said))) / len(improved)


def ask_person(one: str, other: str) -> float:
    """Which version a person at the terminal prefers; the end of the input says "cannot tell" from then on."""
    print(f"\n--- A ---\n{one}\n--- B ---\n{other}\n")
    while True:
        print("which is better, A or B? (= cannot tell) ", end="", flush=True)
        line = sys.stdin.readline()
        said = {"a": 1.0, "b": 0.0, "=": 0.5}.get(line.strip().lower())
        if said is not None:
            return said
        if not line:
            return 0.5
