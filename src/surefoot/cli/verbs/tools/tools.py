"""`surefoot tools …`: train, evaluate and try policies that choose tools."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import tyro

from surefoot.cli.options import Seed, at_least_one
from surefoot.cli.usage import Usage

if TYPE_CHECKING:
    from surefoot.decide.core.agent import Agent
    from surefoot.decide.tools.agent import ToolAgent

EncoderName = Annotated[
    Literal["auto", "static", "minilm", "hashing", "openai"],
    tyro.conf.arg(
        help="Encoder that turns texts into vectors. auto: static, the table of `surefoot tools encoder`, if it was built, "
        "else hashing, which compares words, not meanings."
    ),
]
RunDirectory = Annotated[
    tyro.conf.Positional[Path], tyro.conf.arg(metavar="DIR", help="Directory of `surefoot tools train`.")
]
Format = Annotated[
    Literal["auto", "labels", "candidates"],
    tyro.conf.arg(help="Format of the data: labels (csv files) or candidates (queries.jsonl)."),
]


def _log(text: str) -> None:
    print(text, file=sys.stderr)


@dataclass(frozen=True, kw_only=True)
class DemoArgs:
    """Chat with an assistant that has five tools: it shows which tool it chose and why, and learns from your ratings.

        surefoot tools demo
        surefoot tools demo --rounds 5          without a user: it answers the shipped questions

    Documents, a small database and notes are included; --docs and --db replace them. Questions, answers, ratings and the
    policy are stored in --dir, and the next start continues with them.
    """

    docs: Path | None = None
    """Directory of .md, .txt or .rst files to search."""
    db: Path | None = None
    """SQLite file to query; it is opened read-only."""
    dir: Path = Path("runs/tools-demo")
    """Directory of episodes, notes and versions of the policy."""
    encoder: EncoderName = "auto"
    rounds: int = 0
    """Answer the shipped questions this many times and rate by their known tools, instead of a chat."""
    seed: Seed = 0
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        if self.rounds < 0:
            raise Usage(f"--rounds is {self.rounds}; it must be at least 0")
        if self.as_json and not self.rounds:
            raise Usage("--json needs --rounds, since a chat has no result")
        if self.rounds and (self.docs or self.db):
            raise Usage("--rounds answers the shipped questions about the shipped documents; leave --docs and --db out")
        from surefoot.decide.tools.schedule import TrainingSchedule
        from surefoot.decide.tools.toolbox.assistant import assistant

        plan = TrainingSchedule(warmup=5, interval=1, min_samples=1, save_every=50)
        options: dict[str, Any] = {"seed": self.seed, "learning": None if self.rounds else plan}
        with assistant(self.dir, encoder=self.encoder, docs=self.docs, db=self.db, say=_log, **options) as agent:
            if self.rounds:
                return self._unattended(agent)
            from surefoot.cli.verbs.tools.chat import Talk

            return Talk(agent, _questions(), self.seed).run()

    def _unattended(self, agent: ToolAgent) -> int:
        import numpy as np

        pairs = _questions()
        generator, shares = np.random.default_rng(self.seed), list[float]()
        for number in range(self.rounds):
            right = 0
            for i in generator.permutation(len(pairs)):
                tool, question = pairs[int(i)]
                run = agent.answer(question, bypass_cache=True)
                right += run.tool == tool
                agent.feedback(run, {"helpful": run.tool == tool, "right": tool})
                agent.learn()
            shares.append(right / len(pairs))
            if not self.as_json:
                print(f"round {number + 1}: {right} of {len(pairs)} questions to the right tool ({shares[-1]:.0%})")
        if self.as_json:
            print(json.dumps({"questions": len(pairs), "rounds": shares, "encoder": agent.agent.encoder.name}))
        return 0


@dataclass(frozen=True, kw_only=True)
class TrainToolsArgs:
    """Train a tool policy in one pass over queries with known tools: choose, receive the reward 1 or 0, learn.

        surefoot tools train data/banking77 -o runs/banking

    Every decision is logged to the output directory, for `surefoot tools replay` and `report`.
    """

    data: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DATA")]
    """Directory with *.csv files (text, category) or queries.jsonl (text, tools, correct)."""
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """Directory to write to."""
    format: Format = "auto"
    topics: Path | None = None
    """JSON file that groups labels into broader tools: {name: {description, labels}}."""
    chooser: Literal["replay", "ppo", "residual", "linucb", "lints", "egreedy", "nearest"] = "replay"
    """Algorithm that chooses: replay and ppo learn with PPO; residual, linucb, lints and egreedy are linear bandits; nearest
    takes the closest description and does not learn. `surefoot tools replay` needs the log of replay, ppo or egreedy."""
    encoder: EncoderName = "auto"
    count: int | None = None
    """Largest number of decisions (default: all queries)."""
    seed: Seed = 0

    def run(self) -> int:
        from surefoot.decide.evaluation.datasets import read
        from surefoot.decide.evaluation.trial import LOG, run_trial

        at_least_one(count=self.count)
        if (self.out / LOG).exists():
            raise Usage(f"{self.out} already has a log; choose another directory")
        agent = _agent(self.encoder, self.chooser, self.seed)
        data = read(self.data, self.format, self.topics)
        for point in run_trial(agent, data, self.out, count=self.count, seed=self.seed):
            progress = f"{point.decisions:7,} decisions  success {point.success:.3f}  last 500 {point.recent:.3f}"
            print(progress, flush=True)
        print(f"{self.out}: `surefoot tools report {self.out}` shows the details")
        return 0


@dataclass(frozen=True, kw_only=True)
class EvalToolsArgs:
    """Measure how often a policy picks the right tool, without exploration and without learning.

    surefoot tools eval runs/banking --data data/banking77-test
    """

    directory: RunDirectory
    data: Path
    """Directory of queries, as for `surefoot tools train`."""
    format: Format = "auto"
    topics: Path | None = None
    """JSON file of grouped labels, if the policy was trained with one."""
    count: int | None = None
    """Largest number of queries (default: all)."""
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        from surefoot.decide.evaluation.datasets import read
        from surefoot.decide.evaluation.trial import encoder_and_chooser, load_agent

        agent = _agent(*encoder_and_chooser(self.directory), 0)
        data = read(self.data, self.format, self.topics)
        for name, description in zip(data.names, data.descriptions, strict=True):
            agent.options.add(name, description)
        load_agent(agent, self.directory)
        at_least_one(count=self.count)
        indices = list(range(len(data.texts)))[: self.count]
        right = nearest = 0
        for i in indices:
            allowed = None if data.candidates is None else [data.names[k] for k in data.candidates[i]]
            record = agent.choose(data.texts[i], allowed=allowed, greedy=True)
            right += record.name == data.names[data.right[i]]
            nearest += record.names[int(record.scene.cosine.argmax())] == data.names[data.right[i]]
        count = len(indices)
        result = {"queries": count, "success": right / count, "nearest": nearest / count}
        text = f"{count:,} queries: {right / count:.1%} right; nearest description {nearest / count:.1%}"
        print(json.dumps(result) if self.as_json else text)
        return 0


@dataclass(frozen=True, kw_only=True)
class ReplayArgs:
    """Estimate from a log what the current policy would have earned, compared with the nearest description.

        surefoot tools replay runs/banking --last 2000

    Prints the off-policy estimates IPS, SNIPS, DM and DR with 95 % intervals; there is no verdict below an effective
    sample size of 500. Exit codes: 0 the policy is better, 1 not enough evidence, 2 it is worse.
    """

    directory: RunDirectory
    last: int = 5000
    """Number of decisions at the end of the log to use."""
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        from dataclasses import asdict

        from surefoot.decide.evaluation.trial import encoder_and_chooser, replay

        at_least_one(last=self.last)
        agent = _agent(*encoder_and_chooser(self.directory), 0)
        result = replay(agent, self.directory, last=self.last)
        if self.as_json:
            policies = {name: asdict(estimate) for name, estimate in result.policies.items()}
            print(json.dumps({"judgement": asdict(result.judgement), **policies}))
        else:
            print(result.as_text())
        return {"promote": 0, "hold": 1, "fail": 2}[result.judgement.verdict]


@dataclass(frozen=True, kw_only=True)
class ReportToolsArgs:
    """Report success per tool, learning curve, regret, confusion and calibration of a log.

        surefoot tools report runs/tools-demo

    Prints a summary and writes report-tools.html beside the log, one page that works offline.
    """

    directory: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DIR")]
    """Directory of `surefoot tools train`, of `surefoot tools demo`, or of a ToolAgent."""
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """File of the page (default: report-tools.html beside the log; with --json, none)."""
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        from surefoot.decide.evaluation.summary import as_text, page_of, summary_of
        from surefoot.decide.tools.telemetry import rows_in

        summary = summary_of(rows_in(self.directory))
        target = self.out or (None if self.as_json else self.directory / "report-tools.html")
        if target is not None:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(page_of(summary, f"{self.directory.resolve().name} · tools"), encoding="utf-8")
        print(json.dumps(summary) if self.as_json else f"{as_text(summary)}\n\n{target}")
        return 0


@dataclass(frozen=True, kw_only=True)
class EncoderArgs:
    """Build the table of word vectors from the sentence encoder (about a minute, once). Needs "surefoot[embed]".

    surefoot tools encoder
    """

    again: bool = False
    """Rebuild an existing table."""

    def run(self) -> int:
        import shutil

        from surefoot.decide.encoders.static import StaticEncoder, table_path

        if self.again:
            shutil.rmtree(table_path(), ignore_errors=True)
        encoder = StaticEncoder.open(say=print)
        print(f"{encoder.name}: {encoder.dim} numbers per text, in {table_path()}")
        return 0


def _questions() -> list[tuple[str, str]]:
    from surefoot.decide.tools.toolbox.assistant import questions

    return [(tool, question) for tool, rows in questions().items() for question, _ in rows]


def _agent(encoder: str, chooser: str, seed: int) -> Agent:
    from surefoot.decide.core.agent import Agent, AgentConfig
    from surefoot.decide.encoders.encoder import make_encoder
    from surefoot.train.device import pin_threads

    pin_threads()
    return Agent(make_encoder(encoder, say=_log), config=AgentConfig(chooser=chooser, seed=seed))
