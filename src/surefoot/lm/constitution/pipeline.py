"""Constitutional AI in stages, from principles to an evaluated policy; finished stages are not repeated."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from surefoot.data.seeds import seed_for
from surefoot.errors import ConfigError, DataError
from surefoot.learn.checkpoint.atomic_files import REAL_FS, RunLock, replace_file
from surefoot.lm.config import LMConfig
from surefoot.lm.constitution.classifier import PrincipleClassifier
from surefoot.lm.constitution.compare import compare_models
from surefoot.lm.constitution.critique import (
    NLL_RISE,
    RELEVANCE_LOSS,
    nats_per_token,
    revise,
    says_something,
    write,
)
from surefoot.lm.constitution.pipeline_config import PipelineConfig as PipelineConfig
from surefoot.lm.constitution.preferences import PairJudgement, by_score, compare, pairs_of
from surefoot.lm.constitution.principles import Constitution, Evaluator, ModelJudge
from surefoot.lm.data import as_text, in_batches, read_pairs, read_prompts, write_jsonl
from surefoot.lm.dpo import DPOTraining
from surefoot.lm.load_run import load_trained, save_trained
from surefoot.lm.policy.adapters import settle_adapters
from surefoot.lm.policy.backbone import Backbone
from surefoot.lm.policy.loading import Speech, backbone_of, best_dtype, load_model, load_tokenizer
from surefoot.lm.policy.policy import LMPolicy, NoCritic
from surefoot.lm.rewards.reward_fit import train_reward_model
from surefoot.lm.rewards.reward_model import BackboneReward
from surefoot.lm.rewards.text_features import TextFeatures
from surefoot.lm.rewards.url_judge import UrlJudge
from surefoot.lm.run import create, resume
from surefoot.lm.sft import finetune
from surefoot.lm.training import LMTraining
from surefoot.train.rundir.rundir import RunDir

STAGES = ("revise", "sft", "preferences", "reward", "ppo", "evaluate")
# Responses that the limits of fluency are measured on: the likelihoods of two times 24 by one model differed by 15 %.
GUARD_RESPONSES = 96


class Pipeline:
    """Both phases of Constitutional AI (Bai et al. 2022) in one directory. `run` runs the unfinished stages."""

    def __init__(self, config: PipelineConfig, folder: Path | str, *, say: Callable[[str], None] = print) -> None:
        judge = config.judge or ("rules" if config.principles and not config.labelled else "classifier")
        config = dataclasses.replace(config, judge=judge)
        self.config, self.folder, self.say = config, Path(folder), say
        self.folder.mkdir(parents=True, exist_ok=True)
        self.constitution = (
            Constitution.shipped() if config.principles is None else Constitution.read(config.principles)
        )
        self.prompts = [as_text(talk) for talk in read_prompts(config.prompts)]
        self.held_out = [as_text(talk) for talk in read_prompts(config.held_out)]
        if both := set(self.prompts) & set(self.held_out):
            raise DataError(
                f"{len(both)} prompts are in both files, such as {min(both)!r}; held-out prompts must not be trained on"
            )
        self._settings()  # wrong ones are refused before the first stage
        self.classifier = PrincipleClassifier(config.labelled) if config.judge == "classifier" else None
        self.evaluator: Evaluator | None = UrlJudge(judge).breach if "://" in judge else self.classifier
        features = TextFeatures(config.encoder) if config.encoder else self.classifier and self.classifier.features
        self.similarity = features.similarity if features else None
        self.stages = (*STAGES[:3], "dpo", "evaluate") if config.algorithm == "dpo" else STAGES
        file, now = self.folder / "pipeline.json", json.dumps(dataclasses.asdict(self.config), indent=2, sort_keys=True)
        if file.is_file() and file.read_text(encoding="utf-8") != now:
            raise ConfigError(f"{self.folder} was started with another config (pipeline.json); choose another one")
        replace_file(REAL_FS, file, now.encode())

    @property
    def done(self) -> list[str]:
        """Return the finished stages, in order."""
        file = self.folder / "stages.json"
        return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []

    def run(self, *, only: Sequence[str] = ()) -> dict[str, Any]:
        """Run the unfinished stages of `only`, by default all, and return the results of all finished ones by name."""
        stages, only = self.stages, only or self.stages
        if unknown := [stage for stage in only if stage not in stages]:
            raise ConfigError(f"there is no stage {unknown[0]!r}; the stages are {', '.join(stages)}")
        results: dict[str, Any] = {}
        with RunLock(self.folder):
            for stage in stages:
                report = self.folder / f"{stage}.json"
                if stage in self.done:
                    results[stage] = json.loads(report.read_text(encoding="utf-8"))
                    continue
                if stage not in only:
                    continue
                before = stages[: stages.index(stage)]
                if missing := [s for s in before if s not in self.done]:
                    raise ConfigError(f"the stage {stage} needs {missing[0]}, which is not done yet")
                results[stage] = getattr(self, f"_{stage}")()
                replace_file(REAL_FS, report, (json.dumps(results[stage], indent=2) + "\n").encode())
                replace_file(REAL_FS, self.folder / "stages.json", json.dumps([*self.done, stage]).encode())
                # The report is on disk before the stage counts as finished.
                plain = {k: v for k, v in results[stage].items() if type(v) in (int, float, str)}
                texts = (f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in plain.items())
                self.say(f"{stage}: {', '.join(texts)}")
        return results

    def _base(self) -> tuple[Any, Speech]:
        # Every stage loads the model anew: a resumed run must not depend on an earlier stage in memory.
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        model = load_model(self.config.model, dtype=best_dtype(self.config.dtype, device), device=device)
        return model, Speech(load_tokenizer(self.config.model), model)

    def _tuned(self) -> tuple[Backbone, Speech]:
        """Return the fine-tuned model; its adapters are part of the reference from now on."""
        model, speech = self._base()
        backbone = Backbone(model, seed=self.config.seed)
        load_trained(backbone, self.folder / "sft.safetensors")
        settle_adapters(model)
        return backbone_of(model, self._ppo_config()), speech

    def _ppo_config(self) -> LMConfig:
        """Return the settings of the PPO or DPO stage."""
        config = self.config
        plain = LMConfig(
            algorithm=config.algorithm, steps=config.stage_steps, max_new_tokens=config.tokens, seed=config.seed
        )
        return plain.replace(**config.ppo)

    def score(self, prompt: str, response: str) -> float:
        """Return minus the weights of the principles that a response breaks."""
        return self.constitution.score(prompt, response, by=self.evaluator)

    def _revise(self) -> dict[str, Any]:
        model, speech = self._base()
        policy = LMPolicy(Backbone(model, train="none"), critic=NoCritic())
        config = self.config

        def make(prompts: Sequence[str]) -> list[list[dict[str, Any]]]:
            revisions = revise(
                policy,
                speech,
                self.constitution,
                prompts,
                scorer=self.score,
                relevance=self.similarity,
                rounds=config.rounds,
                tokens=config.tokens,
                temperature=config.temperature,
                seed=config.seed,
            )
            return [[each.to_json()] for each in revisions]

        rows = in_batches(self.prompts, config.batch, self.folder / "revisions.jsonl", make)
        broken = sum(row["before"] < 0 for row in rows)
        better = sum(row["kept"] for row in rows)
        return {"prompts": len(rows), "broken_at_first": broken, "revisions_kept": better}

    def _sft(self) -> dict[str, Any]:
        rows = [json.loads(line) for line in (self.folder / "revisions.jsonl").read_text("utf-8").splitlines()]
        better = [(row["prompt"], row["response"]) for row in rows if row["kept"]]
        clean = [(row["prompt"], row["first"]) for row in rows if row["before"] == 0 and says_something(row["first"])]
        demonstrations = better + (clean if self.config.keep_clean else [])
        if not demonstrations:
            raise DataError(
                "no revision was better and no first response was clean, so there is nothing to fine-tune on; use other prompts"
            )
        model, speech = self._base()
        backbone = Backbone(model, seed=self.config.seed)
        fit = finetune(
            backbone,
            demonstrations,
            speech,
            epochs=self.config.sft_epochs,
            lr=self.config.sft_lr,
            seed=self.config.seed,
        )
        save_trained(backbone, self.folder / "sft.safetensors")
        return {"revisions": len(better), "clean": len(demonstrations) - len(better), **fit.to_json()}

    def _preferences(self) -> dict[str, Any]:
        backbone, speech = self._tuned()
        policy, config = LMPolicy(backbone, critic=NoCritic()), self.config
        by_model, by_scores = ModelJudge(backbone, speech), by_score(self.score)
        quality: dict[tuple[str, str], tuple[float, float]] = {}

        def judge(prompt: str, one: str, other: str) -> PairJudgement:
            by = config.judge == "model"
            result = compare(by_model, self.constitution, prompt, one, other) if by else by_scores(prompt, one, other)
            if result.better is None:
                return result
            chosen, rejected = (one, other) if result.better == 0 else (other, one)
            (u, near), (v, far) = quality[prompt, chosen], quality[prompt, rejected]
            # As for revisions: an answer must not keep to the principles by being less fluent or beside the point.
            good = says_something(chosen) and u <= NLL_RISE * v and near >= far - RELEVANCE_LOSS
            return result if good else dataclasses.replace(result, better=None)

        asked = {"asked": 0, "ties": 0, "disagreed": 0}

        def make(prompts: Sequence[str]) -> list[list[dict[str, Any]]]:
            many = [prompt for prompt in prompts for _ in range(config.responses)]
            seeds = [seed_for(f"preferences {i} {p}", config.seed) for i, p in enumerate(many)]
            answers = write(policy, speech, many, tokens=config.tokens, temperature=config.temperature, seeds=seeds)
            near = self.similarity(many, answers) if self.similarity else [0.0] * len(many)
            numbers = zip(nats_per_token(policy, speech, many, answers), near, strict=True)
            quality.update(zip(zip(many, answers, strict=True), numbers, strict=True))
            rows: list[list[dict[str, Any]]] = []
            for i, prompt in enumerate(prompts):
                pairs, counts = pairs_of(prompt, answers[i * config.responses : (i + 1) * config.responses], judge)
                for name, n in counts.items():
                    asked[name] += n
                rows.append([{"prompt": p.prompt, "chosen": p.chosen, "rejected": p.rejected} for p in pairs])
            return rows

        rows = in_batches(self.prompts, config.batch, self.folder / "preferences.jsonl", make)
        # A better revision is also a preference over the first response.
        for line in (self.folder / "revisions.jsonl").read_text("utf-8").splitlines():
            row = json.loads(line)
            if row["kept"]:
                rows.append({"prompt": row["prompt"], "chosen": row["response"], "rejected": row["first"]})
        write_jsonl(self.folder / "preferences.jsonl", rows)
        if len(rows) < 4:
            raise DataError(f"only {len(rows)} preferences were found; use more prompts, or others")
        return {"pairs": len(rows), **asked}

    def _reward(self) -> dict[str, Any]:
        backbone, speech = self._tuned()
        reward = BackboneReward(backbone)
        pairs = read_pairs(self.folder / "preferences.jsonl")
        fit = train_reward_model(
            reward, pairs, speech, epochs=self.config.reward_epochs, lr=self.config.reward_lr, seed=self.config.seed
        )
        save_file({n: x.contiguous() for n, x in reward.state_dict().items()}, self.folder / "reward.safetensors")
        return fit.to_json()

    def _settings(self) -> tuple[LMConfig, dict[str, Any]]:
        """Return the settings of the PPO or DPO stage, and those of its learner and its guards."""
        config = self._ppo_config()
        learner = config.ppo(None, **{"lr": self.config.stage_lr, **self.config.learner})
        # Held-out prompts are for the evaluation only.
        count = GUARD_RESPONSES if any(x is not None for x in config.limits.values()) else 0
        guarded = list(islice(cycle(self.prompts), count))
        return config, {"ppo": learner, "judge_prompts": guarded}

    def _ppo(self) -> dict[str, Any]:
        backbone, speech = self._tuned()
        reward = BackboneReward(backbone)
        reward.load_state_dict(load_file(self.folder / "reward.safetensors"))
        config, options = self._settings()
        return self._learn(LMTraining(backbone, speech.tokenizer, self.prompts, reward, config, **options), "ppo")

    def _dpo(self) -> dict[str, Any]:
        backbone, speech = self._tuned()
        pairs = read_pairs(self.folder / "preferences.jsonl")
        config, options = self._settings()
        return self._learn(DPOTraining(backbone, speech.tokenizer, pairs, config, **options), "dpo")

    def _learn(self, training: LMTraining | DPOTraining, stage: str) -> dict[str, Any]:
        directory = RunDir(self.folder / stage)
        about = {"model": self.config.model, "prompts": self.config.prompts}
        # A killed stage resumes from its own checkpoints.
        begin = resume if directory.header.is_file() else create
        directory.path.mkdir(exist_ok=True)
        run = begin(directory, training, about=about)
        curve: list[dict[str, float]] = []
        try:
            for step, notes in run.steps():
                names = ("score", "kl", "held_out_accuracy", "eval_nll_drift")
                curve.append({"step": step.number, **{k: step.stats[k] for k in names if k in step.stats}})
                for note in notes:
                    self.say(note)
        except BaseException as why:
            run.close("error", f"{type(why).__name__}: {why}")
            raise
        run.close("finished")
        save_trained(training.policy.backbone, self.folder / "policy.safetensors")
        return {"steps": training.steps, "stopped": training.stopped, "curve": curve}

    def trained(self) -> tuple[Backbone, Speech]:
        """Return the trained policy, with the adapters of both stages."""
        backbone, speech = self._tuned()
        load_trained(backbone, self.folder / "policy.safetensors")
        return backbone, speech

    def _evaluate(self) -> dict[str, Any]:
        seeds = [seed_for(f"held-out {i}", self.config.seed) for i in range(len(self.held_out))]
        options: dict[str, Any] = {"tokens": self.config.tokens, "temperature": self.config.temperature, "seeds": seeds}
        model, speech = self._base()
        before = write(LMPolicy(Backbone(model, train="none"), critic=NoCritic()), speech, self.held_out, **options)
        backbone, speech = self.trained()
        after = write(LMPolicy(backbone, critic=NoCritic()), speech, self.held_out, **options)
        rows = [{"prompt": p, "before": b, "after": a} for p, b, a in zip(self.held_out, before, after, strict=True)]
        write_jsonl(self.folder / "answers.jsonl", rows)
        return compare_models(self.constitution, self.held_out, before, after, by=self.evaluator)
