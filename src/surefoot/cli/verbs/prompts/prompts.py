"""`surefoot prompts …`: improve prompts by mutations, and train the policy that chooses them."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import tyro

from surefoot.cli import options
from surefoot.cli.drive import drive, live_doctor
from surefoot.cli.options import run_directory, user_object
from surefoot.cli.usage import Usage

if TYPE_CHECKING:
    from surefoot.decide.prompts.improve import Improved
    from surefoot.decide.prompts.runs import PromptTask
    from surefoot.decide.prompts.scorers import Scorer
    from surefoot.train.rundir.rundir import RunDir


PromptRun = Annotated[
    tyro.conf.Positional[str],
    tyro.conf.arg(metavar="RUN", help="A run of `surefoot prompts train` or `surefoot prompts rlaif`."),
]
PromptFile = Annotated[Path | None, tyro.conf.arg(help="File of prompts (default: those the policy was trained on).")]
TokenCost = Annotated[float, tyro.conf.arg(help="Cost of each added token, in units of the score.")]


@dataclass(frozen=True, kw_only=True)
class _PromptOptions:
    encoder: str = "hashing-1-256"
    # Four times the library's default of 0.002: prefers short prompts; a lower cost allows longer ones.
    token_cost: float = 0.008
    max_steps: int = 5


@dataclass(frozen=True, kw_only=True)
class PromptsTrainArgs:
    """Train a policy that chooses mutations for prompts like yours.

    The reward of a mutation is its gain in score minus the cost of its tokens, so the policy also learns when to stop. The
    run is an ordinary one: `surefoot runs`, `report`, `doctor` and `telemetry` work on it, and Ctrl-C saves it.

        surefoot prompts train --prompts my_prompts.txt --name mine
        surefoot prompts improve "Write a story about bees." --run mine
    """

    prompts: Path
    """Text file with one prompt per line, or .jsonl with a field "prompt"."""
    steps: Annotated[int, tyro.conf.arg(aliases=["-n"])] = 80_000
    """Number of mutations to train on."""
    seed: options.Seed = 0
    scores: Path | None = None
    """Human scores to fit the scorer to first: .jsonl with "prompt" and "score" (1 to 5)."""
    scorer: Annotated[str | None, tyro.conf.arg(metavar="MODULE:FUNCTION|lm:MODEL")] = None
    """Scorer to use instead of the shipped one: your function of a prompt that returns 0 to 1, or a language model such as
    lm:smollm2 or a directory written by `surefoot lm reward`."""
    set: options.Settings = ()
    """Change a setting of PPO as in `surefoot train`, or one of: encoder=hashing-1-256 (or static, minilm, openai),
    token_cost=0.008 per added token in units of the score, max_steps=5 mutations per prompt; repeatable."""
    name: options.NewRunName = None
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
        prompt_options, ppo = options.split_settings(_PromptOptions, self.set)
        task = PromptTask(
            prompts=tuple(read_prompts(self.prompts)),
            encoder=prompt_options.encoder,
            config=PromptConfig(max_steps=prompt_options.max_steps, token_cost=prompt_options.token_cost),
            scorer=self._scorer(),
        )
        settings = {**SETTINGS, **ppo, "seed": self.seed}
        action = task.world(1).action
        spec = make_spec(ENV, action, preset_name="sb3", settings=settings, total_steps=self.steps)
        training = Training(spec, make=task.make)
        directory = new_run_dir(ENV, spec.seed, root=runs_root(), name=self.name)
        if self.scorer is None:
            task.save(directory.path)
        command = ["surefoot", *sys.argv[1:]]
        run = create_run(directory, spec, training=training, command=command, doctor=live_doctor("on"))
        return drive(run, self.display)

    def _scorer(self) -> Scorer:
        from surefoot.decide.prompts.runs import read_scores
        from surefoot.decide.prompts.scorers import FeatureScorer, RidgeScorer

        if self.scores is not None and self.scorer is not None:
            raise Usage("--scores and --scorer were both given; --scores fits the shipped scorer")
        if self.scorer is not None:
            return named_scorer(self.scorer)
        if self.scores is None:
            return FeatureScorer()
        prompts, scores = read_scores(self.scores)
        scorer = RidgeScorer()
        fit = scorer.fit(prompts, scores)
        print(
            f"scorer fitted to {fit.examples} scores; on {fit.held_out} held-out ones: mean error {fit.mae:.2f} (scale 0 to 1), "
            f"rank correlation {fit.rank_correlation:.2f}"
        )
        return scorer


@dataclass(frozen=True, kw_only=True)
class PromptsImproveArgs:
    """Improve a prompt: print the chosen mutations with their gain and cost, then the new prompt.

        surefoot prompts improve "Write a story about bees."
        surefoot prompts improve --run mine < prompt.txt

    With --run a trained policy chooses; without, the scorer evaluates every mutation at every step. No mutation removes a
    word of the prompt unless you pass --allow-cut. The new prompt is shown as a diff: lines with + were added.
    """

    prompt: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="PROMPT")] = ()
    """The prompt (default: read from standard input)."""
    run_name: Annotated[str | None, tyro.conf.arg(name="run", metavar="RUN")] = None
    """A run of `surefoot prompts train` whose policy chooses."""
    token_cost: TokenCost = 0.008
    allow_cut: bool = False
    """Allow mutations that remove words of the prompt; what they remove is shown as a diff."""
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        from surefoot.decide.prompts.improve import greedy, improve
        from surefoot.decide.prompts.runs import PromptTask, load_prompt_policy
        from surefoot.decide.prompts.world import PromptConfig

        text = " ".join(self.prompt) if self.prompt else sys.stdin.read()
        if not text.strip():
            raise Usage('the prompt is empty; pass one, as in surefoot prompts improve "Write a story about bees."')
        if self.run_name is None:
            config = PromptConfig(token_cost=self.token_cost, allow_cut=self.allow_cut)
            task, choose = PromptTask(prompts=(text,), encoder="hashing-1-16", config=config), greedy
        else:
            task, choose = load_prompt_policy(run_directory(self.run_name))
            task = replace(task, prompts=(text,), config=replace(task.config, allow_cut=self.allow_cut))
        (result,) = improve(choose, task.world(1, in_order=True))
        if self.as_json:
            print(json.dumps(result.to_json(), ensure_ascii=False))
        else:
            print("\n".join(lines(result, "the policy" if self.run_name else "the scorer")))
        return 0


@dataclass(frozen=True, kw_only=True)
class PromptsEvalArgs:
    """Evaluate a trained policy on prompts, compared with a random choice and with mutations in a fixed order.

    surefoot prompts eval mine --prompts unseen.txt
    """

    run_name: PromptRun
    prompts: PromptFile = None
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        import numpy as np

        task, choosers = _compared(run_directory(self.run_name), self.prompts)
        rows = {
            name: {
                "reward": float(np.mean([e.reward for e in results])),
                "gain": float(np.mean([e.gain for e in results])),
                "tokens": float(np.mean([float(e.tokens_added) for e in results])),
                "mutations": float(np.mean([len(e.changes) for e in results])),
            }
            for name, results in choosers.items()
        }
        if self.as_json:
            print(json.dumps({"prompts": len(task.prompts), "rows": rows}))
            return 0
        print(f"{len(task.prompts)} prompts   reward = gain - {task.config.token_cost:g} per token")
        for name, row in rows.items():
            print(f"  {name:<20} " + "   ".join(f"{metric} {x:.3f}" for metric, x in row.items()))
        return 0


@dataclass(frozen=True, kw_only=True)
class PromptsReportArgs:
    """Write a report of a prompt run as one HTML page.

        surefoot prompts report mine
        surefoot prompts report mine --prompts held_out.txt -o held_out.html

    The page shows the learning curve, which mutations the policy chooses for which prompts, its reward compared with a
    random choice and with mutations in a fixed order, and the improved prompts.
    """

    run_name: PromptRun
    prompts: PromptFile = None
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """File of the page (default: prompts.html in the run's directory)."""

    def run(self) -> int:
        from surefoot.decide.prompts.page import headline, prompts_page
        from surefoot.decide.prompts.runs import reward_curve

        directory = run_directory(self.run_name)
        task, choosers = _compared(directory, self.prompts)
        title = f"{directory.name}: which mutations prompts need"
        page = prompts_page(title, choosers, reward_curve(directory.path), token_cost=task.config.token_cost)
        out = self.out or directory.path / "prompts.html"
        out.write_text(page, encoding="utf-8")
        print(f"{headline(choosers)} → {out}")
        return 0


def _compared(directory: RunDir, prompts: Path | None) -> tuple[PromptTask, dict[str, list[Improved]]]:
    """Return the task of a run, and its prompts improved by the policy and by two simple choosers."""
    from surefoot.decide.prompts.improve import at_random, improve, round_robin
    from surefoot.decide.prompts.runs import load_prompt_policy, read_prompts

    task, choose = load_prompt_policy(directory)
    if prompts is not None:
        task = replace(task, prompts=tuple(read_prompts(prompts)))
    choosers = {"the policy": choose, "at random": at_random(0), "one after the other": round_robin}
    count = min(64, len(task.prompts))
    return task, {name: improve(chooser, task.world(count, in_order=True)) for name, chooser in choosers.items()}


def lines(result: Improved, chooser: str) -> list[str]:
    """Return the mutations of a prompt with their gain and cost, and the new prompt."""
    changes = [f"  {c.mutation:<20} {c.gain:+.2f} for {c.tokens:+d} tokens" for c in result.changes]
    changes = changes or [f"  {chooser} would not change it"]
    end = f"score {result.score:.2f}, {result.tokens_added:+d} tokens"
    return [f"score {result.score_before:.2f}", *changes, end, "", *diff(result.original, result.text)]


def diff(before: str, after: str) -> list[str]:
    """Return the lines of the new prompt, marked with + if they were added; removed lines follow with -."""
    from difflib import ndiff

    marked = ndiff(before.splitlines(), after.splitlines())
    return [line for line in marked if not line.startswith("?")]


def named_scorer(name: str) -> Scorer:
    """Return the scorer that MODULE:FUNCTION or lm:MODEL names."""
    from surefoot.decide.prompts.scorers import CallableScorer

    if name == "lm" or name.startswith("lm:"):
        from surefoot.lm.rewards.scoring import scorer

        return CallableScorer(scorer(name.removeprefix("lm").removeprefix(":") or "smollm2"))
    message = f"--scorer {name} must be MODULE:FUNCTION, such as judges:politeness, or lm:MODEL"
    return CallableScorer(user_object(name, "--scorer", message))
