"""`surefoot lm dpo`: learn from preference pairs by DPO or IPO."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import tyro

from surefoot.cli.options import NewRunName, Settings, Track, pairs, run_directory
from surefoot.cli.usage import Usage
from surefoot.cli.verbs.lm.progress import find_scorer, pick_device, train
from surefoot.cli.verbs.lm.train import settings


@dataclass(frozen=True, kw_only=True)
class DPOArgs:
    """Train a language model on preference pairs with DPO or IPO; no reward model and no sampling is needed.

        surefoot lm dpo --model smollm2 --pairs pairs.jsonl --name polite
        surefoot lm dpo --resume polite

    One model is in memory: with adapters it is the policy, without them the reference. The accuracy on held-out pairs is
    printed every judge_every steps. The guards of `surefoot lm ppo` work here too (--judge, --judge-prompts, nll_limit).
    """

    model: str | None = None
    """A directory, a Hugging Face name, or smollm2 after `surefoot lm get smollm2`."""
    pairs: Path | None = None
    """File with prompt, chosen, rejected (and margin): .jsonl, .csv or .parquet; also the format of hh-rlhf, and gzip."""
    judge: Annotated[str | None, tyro.conf.arg(metavar="MODULE:FUNCTION|DIR|URL")] = None
    """Scores answers to --judge-prompts for validation only, as in `surefoot lm ppo`."""
    judge_prompts: Path | None = None
    """File of held-out prompts, for the judge and for the limits of fluency (nll_limit, repetition_limit, …)."""
    set: Settings = ()
    """Change a setting; repeatable. algorithm=dpo|ipo, steps=100, prompts=8 (pairs per step), beta=0.1, lr=1e-4,
    label_smoothing=0, and those of `surefoot knobs --lm`."""
    name: NewRunName = None
    resume: Annotated[str | None, tyro.conf.arg(metavar="RUN")] = None
    """Continue this run."""
    track: Track = ()
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        from surefoot.lm.config import LMConfig
        from surefoot.lm.data import read_pairs, read_rows
        from surefoot.lm.dpo import DPOTraining
        from surefoot.lm.policy.loading import load_backbone
        from surefoot.lm.run import fingerprint, saved_config

        directory = run_directory(self.resume) if self.resume else None
        spec: dict[str, Any] = directory.read_header()["spec"] if directory else {}
        if spec and "pairs" not in spec:
            raise Usage(
                f"{self.resume} is no run of `surefoot lm dpo`; {directory and directory.read_header()['resume']}"
            )
        model, file = self.model or spec.get("model"), self.pairs or (Path(spec["pairs"]) if spec else None)
        if model is None or file is None:
            missing = "--model" if model is None else "--pairs"
            raise Usage(f"{missing} is missing; pass --model DIR --pairs FILE")
        if spec.get("judge") and self.judge is None:
            raise Usage(f"the run was started with --judge {spec['judge']}; pass it again, or the guard would be gone")
        prompts = self.judge_prompts or (Path(spec["judge_prompts"]) if spec.get("judge_prompts") else None)
        lm, ppo = settings(pairs(self.set, "--set"))
        # 0.1: the value of the paper's experiments; per-token rewards of PPO use less.
        config = saved_config(spec) if spec else LMConfig(algorithm="dpo", beta=0.1)
        config = config.replace(**lm)
        preferences = read_pairs(file)
        backbone, tokenizer = load_backbone(model, config, device=pick_device("auto"))
        training = DPOTraining(
            backbone,
            tokenizer,
            preferences,
            config,
            ppo=config.ppo(None, **({"lr": spec["ppo"]["lr"]} if spec else {}), **ppo),
            judge=find_scorer(self.judge, "--judge", backbone, model) if self.judge else None,
            judge_prompts=read_rows(prompts) if prompts else (),
        )
        about = {
            "model": model,
            "pairs": str(file),
            "pairs_sha256": fingerprint(file),
            "judge": self.judge,
            "judge_prompts": str(prompts) if prompts else None,
        }
        return train(training, directory, about, name=self.name, track=self.track, as_json=self.as_json)
