"""`surefoot lm sft` and `reward`: supervised fine-tuning and reward models."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import tyro

from surefoot.cli.options import Seed, Settings, options_from, pairs, split_settings
from surefoot.cli.usage import Usage
from surefoot.cli.verbs.lm.train import settings

if TYPE_CHECKING:
    from surefoot.lm.data import PreferencePair


@dataclass(frozen=True, kw_only=True)
class SFTOptions:
    """Keys of `lm sft --set` besides those of `LMConfig`."""

    epochs: int = 3
    lr: float = 2e-4  # the rate of the LoRA paper for GPT-2 and GPT-3 (Hu et al. 2021, appendix D)
    batch_size: int = 8


@dataclass(frozen=True, kw_only=True)
class SFTArgs:
    """Fine-tune a model on prompts with responses (SFT); the loss covers the tokens of the response.

        surefoot lm sft --model smollm2 --data rows.jsonl -o tuned

    The weights of the epoch with the lowest loss on held-out rows are written.
    """

    model: str
    """A directory, a Hugging Face name, or smollm2."""
    data: Path
    """File with prompt and response: .jsonl, .csv or .parquet."""
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """Directory of the new model."""
    set: Settings = ()
    """Change a setting; repeatable. epochs=3, lr=2e-4, batch_size=8 rows, seed=0, and which weights are trained: train=lora,
    rank=8, top=4, targets=all, dtype=float32."""

    def run(self) -> int:
        from surefoot.lm.config import LMConfig
        from surefoot.lm.data import read_demonstrations
        from surefoot.lm.export import export
        from surefoot.lm.policy.loading import Speech, load_backbone
        from surefoot.lm.sft import SFTFit, finetune

        options, others = split_settings(SFTOptions, self.set)
        lm, unknown = settings(others)
        if unknown:
            raise Usage(
                f"--set {next(iter(unknown))} does not apply to fine-tuning; the settings are epochs, lr, batch_size, seed, "
                "train, rank, top, targets, dtype"
            )
        config = LMConfig().replace(**lm)
        rows = read_demonstrations(self.data)
        backbone, tokenizer = load_backbone(self.model, config)

        def report(epoch: int, fit: SFTFit) -> None:
            losses = f"{fit.losses[-1]:.4f} nats per token, held out {fit.val_losses[-1]:.4f}"
            print(f"epoch {epoch + 1}: {losses}", flush=True)

        fit = finetune(
            backbone,
            rows,
            Speech(tokenizer, backbone.model),
            epochs=options.epochs,
            batch_size=options.batch_size,
            lr=options.lr,
            seed=config.seed,
            on_epoch=report,
        )
        export(backbone, tokenizer, self.out, merged=True, base=self.model, numbers=fit.to_json())
        print(f"{self.out}: {fit.rows} rows, weights of epoch {fit.best_epoch + 1}")
        return 0


@dataclass(frozen=True, kw_only=True)
class RewardOptions:
    """Keys of `lm reward --set`."""

    full: bool = False
    rank: int = 0
    pooling: str = "last"
    epochs: int = 20
    lr: float | None = None
    max_length: int = 512
    dtype: str = "auto"


@dataclass(frozen=True, kw_only=True)
class RewardArgs:
    """Train a reward model on preference pairs (Bradley–Terry): prompt, chosen, rejected.

        surefoot lm reward --model minilm --pairs pairs.jsonl -o judge --test others.jsonl
        surefoot lm reward --model smollm2 --pairs pairs.jsonl -o judge

    With an encoder such as minilm the score is linear in the encoder's states, in words and pairs of words, and in a few
    counts (length, questions, refusals); accuracy and calibration are measured over five folds. With a causal model the
    model is frozen and a head is trained, so that PPO can share the trunk of the policy; accuracy and calibration are
    measured on a tenth of the pairs. Both are printed and stored.
    """

    model: str
    """A directory, a Hugging Face name, minilm or smollm2."""
    pairs: Path
    """File with prompt, chosen, rejected (and margin): .jsonl, .csv or .parquet; also the format of hh-rlhf, and gzip."""
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """Directory of the reward model, for `surefoot lm ppo --reward DIR`."""
    test: Path | None = None
    """File of other pairs, never fitted to, on which the accuracy is measured."""
    set: Settings = ()
    """Change a setting for a causal model; repeatable. rank=8 trains LoRA adapters on the trunk too, full=true the whole model;
    pooling=last, mean or attention over the tokens; epochs=20 passes at most, lr (default: 1e-3 for a head, 2e-4 with
    adapters, 1e-5 for the whole model), max_length=512 tokens (the start of longer prompts is cut),
    dtype=auto|float32|bfloat16."""
    seed: Seed = 0
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        from surefoot.lm.data import read_pairs
        from surefoot.lm.policy.loading import is_encoder

        options = options_from(RewardOptions, pairs(self.set, "--set"), "--set")
        preferences = read_pairs(self.pairs)
        others = read_pairs(self.test) if self.test is not None else None
        if is_encoder(self.model):
            if self.set:
                raise Usage(
                    f"--set {self.set[0]} is for causal models; {self.model} is an encoder, which is not trained"
                )
            result, text = self._with_encoder(preferences, others)
        else:
            result, text = self._with_head(options, preferences, others)
        if others is not None and (test := result["test"]):
            low, high = test["interval"]
            text += f"; on {self.test}: {test['accuracy']:.3f} [{low:.3f}, {high:.3f}] of {test['pairs']} pairs"
        print(json.dumps(result) if self.as_json else f"{self.out}: {text}")
        return 0

    def _with_encoder(
        self, preferences: list[PreferencePair], others: list[PreferencePair] | None
    ) -> tuple[dict[str, Any], str]:
        from surefoot.lm.rewards.text_features import TextFeatures
        from surefoot.lm.rewards.text_reward import TextReward

        model = TextReward(TextFeatures(self.model))
        fit = model.fit(preferences, seed=self.seed)
        test = model.accuracy(others) if others is not None else None
        model.save(self.out, fit, test)
        low, high = fit.interval
        text = (
            f"{fit.pairs} pairs, accuracy {fit.accuracy:.3f} [{low:.3f}, {high:.3f}] over 5 folds, "
            f"calibration error {fit.calibration_error:.3f}"
        )
        return {**fit.to_json(), "test": test}, text

    def _with_head(
        self, options: RewardOptions, preferences: list[PreferencePair], others: list[PreferencePair] | None
    ) -> tuple[dict[str, Any], str]:
        import torch

        from surefoot.lm.load_run import save_reward
        from surefoot.lm.policy.loading import Speech, best_dtype, load_model, load_tokenizer
        from surefoot.lm.rewards.reward_fit import pair_accuracy, train_reward_model
        from surefoot.lm.rewards.reward_model import RewardModel

        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        dtype = torch.float32 if options.full else best_dtype(options.dtype, device)
        base = load_model(self.model, dtype=dtype, device=device)
        torch.manual_seed(self.seed)
        pooled: dict[str, Any] = {"rank": 0 if options.full else options.rank, "pooling": options.pooling}
        model = RewardModel(base, frozen=not options.full, **pooled).to(device)
        # 2e-4: as in `lm sft`.
        lr = options.lr if options.lr is not None else 1e-5 if options.full else 2e-4 if options.rank else 1e-3
        speech = Speech(load_tokenizer(self.model), base)
        fit = train_reward_model(
            model, preferences, speech, epochs=options.epochs, lr=lr, max_length=options.max_length, seed=self.seed
        )
        save_reward(model, self.out, base=self.model, fit=fit)
        test = None if others is None else pair_accuracy(model, others, speech, max_length=options.max_length)
        early = ", stopped early" if fit.stopped_early else ""
        text = (
            f"{fit.pairs} pairs, accuracy {fit.final_accuracy:.3f} on {fit.held_out} held-out pairs, "
            f"calibration error {fit.calibration_error:.3f}, {len(fit.losses)} epochs{early}"
        )
        return {**fit.to_json(), "test": test}, text
