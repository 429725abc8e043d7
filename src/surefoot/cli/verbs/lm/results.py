"""`surefoot lm chat`, `report`, `export`, `constitution`: what came of a language run."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from surefoot.cli.options import CheckpointName, Run, run_directory

if TYPE_CHECKING:
    from surefoot.lm.policy.loading import Speech
    from surefoot.lm.policy.policy import LMPolicy


@dataclass(frozen=True, kw_only=True)
class ChatArgs:
    """Talk to a run's policy, with the model it came from side by side.

    surefoot lm chat polite
    surefoot lm chat polite --prompt "Where is my parcel?" --temperature 0
    """

    run_name: Run
    prompt: Annotated[list[str], tyro.conf.UseAppendAction] = field(default_factory=list[str])
    """Ask this instead of reading lines; may be given several times."""
    tokens: int = 80
    """The longest answer."""
    temperature: float = 0.7
    """0 takes the likeliest token."""
    checkpoint: CheckpointName = "latest"
    seed: int = 0
    """Seed of the answers."""
    runs: Path | None = None
    """Where runs are kept."""
    json: bool = False
    """One line of JSON an answer."""

    def run(self) -> int:
        from surefoot.lm.load_run import load_policy

        policy, speech, step = load_policy(run_directory(self.run_name, self.runs), checkpoint=self.checkpoint)
        if not self.prompt and not self.json:
            print(f"checkpoint {step}; an empty line ends")
        lines = self.prompt or sys.stdin
        for line in lines:
            text = line.rstrip("\n")
            if not text.strip():
                break
            before, after = self._answers(policy, speech, text)
            if self.json:
                print(json.dumps({"prompt": text, "base": before, "trained": after}, ensure_ascii=False))
            else:
                print(f"> {text}\n  base     {before}\n  trained  {after}", flush=True)
        return 0

    def _answers(self, policy: LMPolicy, speech: Speech, text: str) -> tuple[str, str]:
        import torch

        from surefoot.lm.sampling.sampler import Sampling, generate

        sampling = Sampling(max_new_tokens=self.tokens, temperature=self.temperature)
        prompt = speech.ask(text)

        def answer() -> str:
            generator = torch.Generator().manual_seed(self.seed)
            made = generate(policy, [prompt], sampling, eos=speech.eos, generator=generator)
            return speech.text(made[0].tokens).strip()

        with policy.reference():
            before = answer()
        return before, answer()


@dataclass(frozen=True, kw_only=True)
class LMReportArgs:
    """Tell a language run in a page: score, KL, length, judge, findings, first and last samples.

    surefoot lm report polite
    """

    run_name: Run
    runs: Path | None = None
    """Where runs are kept."""
    json: bool = False
    """As JSON."""

    def run(self) -> int:
        from surefoot.lm.run import RULES
        from surefoot.telemetry.doctor.doctor import examine
        from surefoot.telemetry.doctor.findings import sentence
        from surefoot.telemetry.doctor.rules import read_rules
        from surefoot.telemetry.export.page import write_report

        directory = run_directory(self.run_name, self.runs)
        rows = updates(directory.telemetry)
        found = [f for f in examine(directory.telemetry, read_rules(RULES)).findings if f.severity != "info"]
        samples = _samples(directory.path / "samples.ndjson")
        if self.json:
            print(json.dumps({"updates": rows, "findings": [f.to_json() for f in found], "samples": samples}))
            return 1 if found else 0
        print(f"{directory.name}: {len(rows)} steps")
        for name in ("score", "kl", "kl_k3", "response_length", "ended", "distinct_2", "entropy", "beta", "judge"):
            values = [row[name] for row in rows if row.get(name) is not None]
            if values:
                print(
                    f"  {name:<16} {values[0]:10.4g} → {values[-1]:10.4g}   (lowest {min(values):.4g}, highest {max(values):.4g})"
                )
        for sample in (samples[0], samples[-1]) if samples else ():
            for each in sample["samples"][:2]:
                print(f"  step {sample['step']}: {each['prompt']!r} → {each['response']!r} ({each['score']:.3g})")
        for finding in found:
            print(f"  {sentence(finding)}")
        print(f"  {write_report(directory.path)}")
        return 1 if found else 0


def updates(path: Path) -> list[dict[str, Any]]:
    """The metrics of every update in a record."""
    from surefoot.telemetry.reader import scan
    from surefoot.telemetry.schema import UpdateRecord

    return [{"update": record.updates, **record.m} for record in scan(path) if isinstance(record, UpdateRecord)]


def _samples(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        return []
    found: list[dict[str, Any]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            break
    return found


@dataclass(frozen=True, kw_only=True)
class LMExportArgs:
    """Write a run's policy as a Hugging Face folder that from_pretrained loads with the same logits.

    surefoot lm export polite -o polite-model --merge
    """

    run_name: Run
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """The folder."""
    merge: bool = False
    """Add the adapters to the weights; without it they are written apart, for peft."""
    checkpoint: CheckpointName = "latest"
    runs: Path | None = None
    """Where runs are kept."""

    def run(self) -> int:
        from surefoot.lm.export import export
        from surefoot.lm.load_run import load_policy

        directory = run_directory(self.run_name, self.runs)
        policy, speech, step = load_policy(directory, checkpoint=self.checkpoint)
        rows = [row for row in updates(directory.telemetry) if row["update"] <= step]
        last = rows[-1] if rows else {}
        wanted = ("score", "kl", "response_length", "distinct_2", "reference_nll", "judge")
        numbers = {"steps": step, **{name: last[name] for name in wanted if last.get(name) is not None}}
        base = directory.read_header()["spec"]["model"]
        export(policy.backbone, speech.tokenizer, self.out, merged=self.merge, base=base, numbers=numbers)
        print(f"{self.out}: checkpoint {step}, {'merged' if self.merge else 'adapters apart'}")
        return 0


@dataclass(frozen=True, kw_only=True)
class ConstitutionArgs:
    """Constitutional AI: critique and revise, fine-tune, preferences, reward model, PPO, evaluation.

        surefoot lm constitution run harmless.yaml
        surefoot lm constitution check "Nobody needs to know that you took it."
        surefoot lm constitution show

    `run CONFIG.yaml` does the stages that are not done yet, in a directory beside the config; killed, it goes on where it
    was. `--only revise` stops after one. `check TEXT` tells which of the shipped principles a text breaks, `show` prints
    them. CONFIG names model, prompts and held_out; `surefoot lm constitution show` has the principles to begin with.
    """

    what: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="run|check|show")]
    """run, check or show."""
    given: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="CONFIG|TEXT")] = None
    """The config to run, or the text to check."""
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """The pipeline's directory (default: the config's name without .yaml)."""
    only: Annotated[list[str], tyro.conf.UseAppendAction] = field(default_factory=list[str])
    """Do only this stage; may be given several times."""
    principles: Path | None = None
    """For check and show: principles of your own."""
    json: bool = False
    """As JSON."""

    def run(self) -> int:
        from surefoot.cli.usage import Usage
        from surefoot.lm.constitution.principles import Constitution

        if self.what == "show":
            told = Constitution.shipped() if self.principles is None else Constitution.read(self.principles)
            for principle in told.active:
                print(f"{principle.name} ({principle.weight:g}): {principle.description}")
            return 0
        if self.what not in ("run", "check") or self.given is None:
            raise Usage("surefoot lm constitution run CONFIG.yaml, check TEXT, or show")
        if self.what == "check":
            told = Constitution.shipped() if self.principles is None else Constitution.read(self.principles)
            made = told.evaluate(self.given)
            print(json.dumps(made, indent=2) if self.json else ", ".join(made["flagged_principles"]) or "nothing found")
            return 1 if made["any_flagged"] else 0
        from surefoot.lm.constitution.pipeline import STAGES, Pipeline, PipelineConfig

        config = Path(self.given)
        into = self.out or config.with_suffix("")
        pipeline = Pipeline(PipelineConfig.read(config), into, say=(lambda line: None) if self.json else print)
        found = pipeline.run(only=self.only or STAGES)
        if self.json:
            print(json.dumps(found))
        elif "evaluate" in found:
            made = found["evaluate"]
            print(
                f"violations {made['violation_rate_before']:.1%} → {made['violation_rate_after']:.1%} of {made['prompts']} "
                f"held-out prompts, win rate {made['win_rate']:.2f} {tuple(round(x, 2) for x in made['win_rate_interval'])}"
            )
        return 0
