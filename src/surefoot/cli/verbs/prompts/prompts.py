"""`surefoot prompts …`: text in, better text out; and the policy that learns how."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from surefoot.cli import options
from surefoot.cli.drive import attending, drive
from surefoot.cli.options import pairs, run_directory, user_object
from surefoot.cli.usage import Usage

if TYPE_CHECKING:
    from surefoot.decide.prompts.improve import Improved
    from surefoot.decide.prompts.runs import PromptTask
    from surefoot.decide.prompts.scorers import Scorer
    from surefoot.train.rundir.rundir import RunDir


@dataclass(frozen=True, kw_only=True)
class PromptsTrainArgs:
    """Train a policy that chooses mutations for prompts like yours.

    The reward is what a mutation gains in score less what its tokens cost, so stopping is learned too. The run is an
    ordinary one: `surefoot runs`, `report`, `doctor` and `telemetry` work on it, and Ctrl-C saves.

        surefoot prompts train --prompts my_prompts.txt --name mine
        surefoot prompts improve "Write a story about bees." --run mine
    """

    prompts: Path
    """A text file with a prompt a line, or .jsonl with a field "prompt"."""
    steps: Annotated[int, tyro.conf.arg(aliases=["-n"])] = 80_000
    """Mutations to learn from."""
    seed: options.Seed = 0
    scores: Path | None = None
    """People's scores to fit the scorer to first: .jsonl with "prompt" and "score" (1 to 5)."""
    scorer: Annotated[str | None, tyro.conf.arg(metavar="MODULE:FUNCTION|lm:MODEL")] = None
    """In place of the shipped scorer: a function of your own that takes a prompt and returns 0 to 1, or a language model,
    such as lm:smollm2 or a folder that `surefoot lm reward` wrote."""
    encoder: str = "hashing-1-256"
    """How texts become numbers: hashing-1-256, static, minilm or openai."""
    token_cost: float = 0.008
    """What an added token costs, in score."""
    max_steps: int = 5
    """Mutations of a prompt at most."""
    set: options.Settings = ()
    """Change a setting of PPO, as in `surefoot train`."""
    name: options.NewRunName = None
    runs: options.Runs = None
    display: options.Display = "auto"

    def run(self) -> int:
        from surefoot.decide.prompts.runs import ENV, SETTINGS, PromptTask, read_prompts
        from surefoot.decide.prompts.world import PromptConfig
        from surefoot.train.device import pin_threads
        from surefoot.train.run import create_run
        from surefoot.train.rundir.rundir import new_run_dir, runs_root
        from surefoot.train.spec import make_spec
        from surefoot.train.training import Training

        pin_threads(1)
        task = PromptTask(
            prompts=tuple(read_prompts(self.prompts)),
            encoder=self.encoder,
            config=PromptConfig(max_steps=self.max_steps, token_cost=self.token_cost),
            scorer=self._scorer(),
        )
        settings = {**SETTINGS, **pairs(self.set, "--set"), "seed": self.seed}
        action = task.world(1).action
        spec = make_spec(ENV, action, preset_name="sb3", settings=settings, total_steps=self.steps)
        training = Training(spec, make=task.make)
        directory = new_run_dir(ENV, spec.seed, root=runs_root(self.runs), name=self.name)
        if self.scorer is None:
            task.save(directory.path)
        command = ["surefoot", *sys.argv[1:]]
        run = create_run(directory, spec, training=training, command=command, doctor=attending(False, False))
        return drive(run, self.display)

    def _scorer(self) -> Scorer:
        from surefoot.decide.prompts.runs import read_scores
        from surefoot.decide.prompts.scorers import FeatureScorer, RidgeScorer

        if self.scores is not None and self.scorer is not None:
            raise Usage("--scores and --scorer were both given; scores are for the shipped scorer")
        if self.scorer is not None:
            return own_scorer(self.scorer)
        if self.scores is None:
            return FeatureScorer()
        prompts, scores = read_scores(self.scores)
        scorer = RidgeScorer()
        fit = scorer.fit(prompts, scores)
        print(
            f"the scorer learned from {fit.examples} scores; on {fit.held_out} it had not seen: off by {fit.mae:.2f} on a "
            f"scale of 1, rank correlation {fit.rank_correlation:.2f}"
        )
        return scorer


@dataclass(frozen=True, kw_only=True)
class PromptsImproveArgs:
    """Show which mutations make a prompt better, what each gains and what it costs; then the better prompt.

        surefoot prompts improve "Write a story about bees."
        surefoot prompts improve --run mine < prompt.txt

    With --run a trained policy chooses; without, the scorer is asked at every step what each mutation would gain.
    """

    prompt: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="PROMPT")] = ()
    """The prompt; none reads the standard input."""
    run_name: Annotated[str | None, tyro.conf.arg(name="run", metavar="RUN")] = None
    """A run of `surefoot prompts train` whose policy chooses."""
    token_cost: float = 0.008
    """Without --run: what an added token costs, in score."""
    as_json: options.PrintJson = False
    runs: options.Runs = None

    def run(self) -> int:
        from surefoot.decide.prompts.improve import greedy, improve
        from surefoot.decide.prompts.runs import PromptTask, load_prompt_policy
        from surefoot.decide.prompts.world import PromptConfig

        text = " ".join(self.prompt) if self.prompt else sys.stdin.read()
        if not text.strip():
            raise Usage('the prompt is empty; surefoot prompts improve "Write a story about bees."')
        if self.run_name is None:
            config = PromptConfig(token_cost=self.token_cost)
            task, choose = PromptTask(prompts=(text,), encoder="hashing-1-16", config=config), greedy
        else:
            task, choose = load_prompt_policy(run_directory(self.run_name, self.runs))
            task = replace(task, prompts=(text,))
        (found,) = improve(choose, task.world(1, in_order=True))
        if self.as_json:
            print(json.dumps(found.to_json(), ensure_ascii=False))
        else:
            print("\n".join(lines(found, "the policy" if self.run_name else "the scorer")))
        return 0


@dataclass(frozen=True, kw_only=True)
class PromptsEvalArgs:
    """Tell what a trained policy makes of prompts it has not seen, beside a random choice and one after the other.

    surefoot prompts eval mine --prompts unseen.txt
    """

    run_name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="RUN")]
    """A run of `surefoot prompts train`."""
    prompts: Path | None = None
    """The prompts; those it was trained on if none are given."""
    as_json: options.PrintJson = False
    runs: options.Runs = None

    def run(self) -> int:
        import numpy as np

        task, ways = _compared(run_directory(self.run_name, self.runs), self.prompts)
        rows = {
            name: {
                "reward": float(np.mean([e.reward for e in found])),
                "gain": float(np.mean([e.gain for e in found])),
                "tokens": float(np.mean([float(e.tokens_added) for e in found])),
                "mutations": float(np.mean([len(e.changes) for e in found])),
            }
            for name, found in ways.items()
        }
        if self.as_json:
            print(json.dumps({"prompts": len(task.prompts), "rows": rows}))
            return 0
        print(f"{len(task.prompts)} prompts   reward = gain - {task.config.token_cost:g} a token")
        for name, row in rows.items():
            told = "   ".join(f"{what} {x:.3f}" for what, x in row.items())
            print(f"  {name:<20} {told}")
        return 0


@dataclass(frozen=True, kw_only=True)
class PromptsReportArgs:
    """Write a run on prompts as one page that needs nothing but a browser: how it learned, what it chooses for which prompts,
    what that is worth beside a random choice and one after the other, and what became of the prompts.

        surefoot prompts report mine
        surefoot prompts report mine --prompts held_out.txt -o held_out.html
    """

    run_name: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="RUN")]
    """A run of `surefoot prompts train` or `rlaif`."""
    prompts: Path | None = None
    """The prompts; those it was trained on if none are given."""
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """Where the page goes (default: prompts.html in the run's directory)."""
    runs: options.Runs = None

    def run(self) -> int:
        from surefoot.decide.prompts.page import headline, prompts_page
        from surefoot.decide.prompts.runs import reward_curve

        directory = run_directory(self.run_name, self.runs)
        task, ways = _compared(directory, self.prompts)
        title = f"{directory.name}: which mutations prompts need"
        page = prompts_page(title, ways, reward_curve(directory.path), token_cost=task.config.token_cost)
        out = self.out or directory.path / "prompts.html"
        out.write_text(page, encoding="utf-8")
        print(f"{headline(ways)} → {out}")
        return 0


def _compared(directory: RunDir, prompts: Path | None) -> tuple[PromptTask, dict[str, list[Improved]]]:
    """Return the task of a run, and its prompts improved by the policy and by two simple rules."""
    from surefoot.decide.prompts.improve import at_random, improve, round_robin
    from surefoot.decide.prompts.runs import load_prompt_policy, read_prompts

    task, choose = load_prompt_policy(directory)
    if prompts is not None:
        task = replace(task, prompts=tuple(read_prompts(prompts)))
    choosers = {"the policy": choose, "at random": at_random(0), "one after the other": round_robin}
    count = min(64, len(task.prompts))
    return task, {name: improve(way, task.world(count, in_order=True)) for name, way in choosers.items()}


def lines(found: Improved, who: str) -> list[str]:
    """A prompt's way, step by step."""
    told = [f"score {found.score_before:.2f}"]
    told += [f"  {c.mutation:<20} {c.gain:+.2f} for {c.tokens:+d} tokens" for c in found.changes]
    if not found.changes:
        told.append(f"  {who} would leave it as it is")
    told.append(f"score {found.score:.2f}, {found.tokens_added:+d} tokens")
    return [*told, "", found.text]


def own_scorer(name: str) -> Scorer:
    """Return the scorer that MODULE:FUNCTION or lm:MODEL names."""
    from surefoot.decide.prompts.scorers import CallableScorer

    if name == "lm" or name.startswith("lm:"):
        from surefoot.lm.rewards.scoring import scorer

        return CallableScorer(scorer(name.removeprefix("lm").removeprefix(":") or "smollm2"))
    wrong = f"--scorer {name} is neither MODULE:FUNCTION, such as judges:politeness, nor lm:MODEL"
    return CallableScorer(user_object(name, "--scorer", wrong))
