"""`surefoot lm chat`, `report`, `export` and `constitution`: use and inspect language model runs."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import tyro

from surefoot.cli.options import CheckpointName, Run, Settings, options_from, pairs, run_directory
from surefoot.cli.usage import Usage

if TYPE_CHECKING:
    from surefoot.lm.policy.loading import Speech
    from surefoot.lm.policy.policy import LMPolicy


@dataclass(frozen=True, kw_only=True)
class _ChatOptions:
    """Keys of --set of `lm chat`."""

    tokens: int = 80
    temperature: float = 0.7
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class ChatArgs:
    """Chat with a trained model; the base model answers too, for comparison.

    surefoot lm chat polite
    surefoot lm chat polite --prompt "Where is my parcel?" --set temperature=0
    """

    run_name: Run
    prompt: Annotated[list[str], tyro.conf.UseAppendAction] = field(default_factory=list[str])
    """Prompt to answer instead of reading standard input; repeatable."""
    set: Settings = ()
    """Change the sampling; repeatable: tokens=80 (at most), temperature=0.7 (0 takes the most likely token), seed=0."""
    checkpoint: CheckpointName = "latest"
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        from surefoot.lm.load_run import load_policy

        policy, speech, step = load_policy(run_directory(self.run_name), checkpoint=self.checkpoint)
        if not self.prompt and not self.as_json:
            print(f"checkpoint {step}; an empty line ends the chat")
        lines = self.prompt or sys.stdin
        for line in lines:
            text = line.rstrip("\n")
            if not text.strip():
                break
            before, after = self._answers(policy, speech, text)
            if self.as_json:
                print(json.dumps({"prompt": text, "base": before, "trained": after}, ensure_ascii=False))
            else:
                print(f"> {text}\n  base     {before}\n  trained  {after}", flush=True)
        return 0

    def _answers(self, policy: LMPolicy, speech: Speech, text: str) -> tuple[str, str]:
        import torch

        from surefoot.lm.sampling.sampler import Sampling, generate

        chosen = options_from(_ChatOptions, pairs(self.set, "--set"), "--set")
        sampling = Sampling(max_new_tokens=chosen.tokens, temperature=chosen.temperature)
        prompt = speech.prompt(text)

        def answer() -> str:
            generator = torch.Generator().manual_seed(chosen.seed)
            samples = generate(policy, [prompt], sampling, eos=speech.eos, generator=generator)
            return speech.text(samples[0].tokens).strip()

        with policy.reference():
            before = answer()
        return before, answer()


@dataclass(frozen=True, kw_only=True)
class LMReportArgs:
    """Summarize a language model run: score, KL, fluency, judge, guards, findings, samples first and last, cost per step.

    surefoot lm report polite

    Also writes report.html, with curves and the samples side by side. Exit code 1 if there are findings more serious than advice.
    """

    run_name: Run
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        from surefoot.lm.report import LanguageReport

        directory = run_directory(self.run_name)
        if "lm" not in directory.read_header()["spec"]:
            raise Usage(f"{self.run_name} is not a language run; `surefoot report {self.run_name}` summarizes it")
        report = LanguageReport(directory)
        if self.as_json:
            findings = [finding.to_json() for finding in report.findings]
            print(json.dumps({"updates": report.rows, "findings": findings, "samples": report.samples}))
        else:
            print("\n".join(report.lines()))
            print(f"  {report.write()}")
        return 1 if report.findings else 0


@dataclass(frozen=True, kw_only=True)
class LMExportArgs:
    """Export a run's policy as a Hugging Face directory; from_pretrained loads it with the same logits.

    surefoot lm export polite -o polite-model --merge
    """

    run_name: Run
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """Directory to write."""
    merge: bool = False
    """Merge the adapters into the weights; otherwise they are written separately, for peft."""
    checkpoint: CheckpointName = "latest"

    def run(self) -> int:
        from surefoot.lm.export import export
        from surefoot.lm.load_run import load_policy
        from surefoot.lm.report import updates_of

        directory = run_directory(self.run_name)
        policy, speech, step = load_policy(directory, checkpoint=self.checkpoint)
        rows = [row for row in updates_of(directory.telemetry) if row["update"] <= step]
        last = rows[-1] if rows else {}
        names = ("score", "kl", "response_length", "distinct_2", "reference_nll", "judge")
        numbers = {"steps": step, **{name: last[name] for name in names if last.get(name) is not None}}
        base = directory.read_header()["spec"]["model"]
        export(policy.backbone, speech.tokenizer, self.out, merged=self.merge, base=base, numbers=numbers)
        full = policy.backbone.train == "full"
        kind = "all weights" if full else "merged" if self.merge else "separate adapters"
        print(f"{self.out}: checkpoint {step}, {kind}")
        return 0


@dataclass(frozen=True, kw_only=True)
class ConstitutionArgs:
    """Run Constitutional AI (critique and revise, fine-tune, preferences, reward model, PPO, evaluation), or check a text.

        surefoot lm constitution run harmless.yaml
        surefoot lm constitution check "Nobody needs to know that you took it."
        surefoot lm constitution show

    `run CONFIG.yaml` runs the stages that are not finished, in a directory beside the config; after an interruption it
    continues where it stopped. CONFIG contains model, prompts and held_out. `check TEXT` prints the principles that a text
    violates (exit code 1 if any), judged by a classifier for the shipped principles (`surefoot lm get minilm` and `surefoot lm
    get smollm2`) and by signs for your own; `show` prints the shipped principles.
    """

    action: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="run|check|show")]
    """What to do."""
    argument: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="CONFIG|TEXT")] = None
    """Config file to run, or text to check."""
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """Directory of the pipeline (default: the config file without .yaml)."""
    only: Annotated[list[str], tyro.conf.UseAppendAction] = field(default_factory=list[str])
    """Run only this stage, such as revise; repeatable."""
    principles: Path | None = None
    """YAML file of principles for check and show (default: the shipped ones); `rules` checks by the signs of the shipped
    ones, without a sentence encoder."""
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        from surefoot.lm.constitution.classifier import PrincipleClassifier
        from surefoot.lm.constitution.principles import Constitution

        if self.action != "show" and (self.action not in ("run", "check") or self.argument is None):
            raise Usage("the action must be `run CONFIG.yaml`, `check TEXT` or `show`")
        if self.action == "run":
            return self._pipeline(Path(self.argument or ""))
        shipped = self.principles is None or self.principles == Path("rules")
        constitution = Constitution.shipped() if shipped else Constitution.read(self.principles or Path())
        if self.action == "show":
            for principle in constitution.active:
                print(f"{principle.name} ({principle.weight:g}): {principle.description}")
            return 0
        by = None if self.principles is not None else PrincipleClassifier()
        result = constitution.evaluate(self.argument or "", by=by)
        text = ", ".join(result["flagged_principles"]) or "no violations"
        print(json.dumps(result, indent=2) if self.as_json else text)
        return 1 if result["any_flagged"] else 0

    def _pipeline(self, config: Path) -> int:
        from surefoot.lm.constitution.pipeline import Pipeline, PipelineConfig

        directory = self.out or config.with_suffix("")
        pipeline = Pipeline(PipelineConfig.read(config), directory, say=(lambda line: None) if self.as_json else print)
        results = pipeline.run(only=self.only)
        if self.as_json:
            print(json.dumps(results))
        elif "evaluate" in results:
            r = results["evaluate"]
            print(
                f"violations {r['violation_rate_before']:.1%} → {r['violation_rate_after']:.1%} of {r['prompts']} "
                f"held-out prompts, win rate {r['win_rate']:.2f} {tuple(round(x, 2) for x in r['win_rate_interval'])}"
            )
        return 0
