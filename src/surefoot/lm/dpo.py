"""DPO and IPO: learn from preference pairs without a reward model, with the reference as the adapters switched off."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.data.seeds import seed_for
from surefoot.errors import ConfigError, DataError
from surefoot.learn.checkpoint.typed_state import restoring
from surefoot.learn.config import PPOConfig
from surefoot.learn.optimizer import Optimizer
from surefoot.learn.report import UpdateReport
from surefoot.learn.schedule import value_at
from surefoot.lm.config import LMConfig
from surefoot.lm.data import Cursor, PreferencePair, as_text
from surefoot.lm.held_out import HeldOut
from surefoot.lm.policy.backbone import Backbone
from surefoot.lm.policy.loading import Prompt, Speech
from surefoot.lm.policy.policy import LMPolicy, NoCritic
from surefoot.lm.policy.vocabulary_head import score
from surefoot.lm.rewards.guards import Guards
from surefoot.lm.sampling.layout import predicting, response_states
from surefoot.lm.sft import sequences
from surefoot.lm.training import LMStep, Sample, generator_state
from surefoot.nets.policy import load_weights

# Share of the pairs that is held out, at most this many: their margins are measured at every evaluation.
HELD_OUT_SHARE, HELD_OUT_MOST = 0.1, 64


def preference_loss(kind: str, margin: Tensor, beta: float, smoothing: float = 0.0) -> Tensor:
    """Return the loss per pair for margins h = log(π/π_ref)(chosen) - log(π/π_ref)(rejected).

    dpo: -(1 - ε) log σ(βh) - ε log σ(-βh)         Rafailov et al. 2023, eq. 7; ε: Mitchell 2023
    ipo: (h - 1/(2β))²                              Azar et al. 2023, eq. 17; h per token, as in TRL
    """
    if kind == "ipo":
        return (margin - 1.0 / (2.0 * beta)).square()
    log_sigmoid = torch.nn.functional.logsigmoid
    return -(1.0 - smoothing) * log_sigmoid(beta * margin) - smoothing * log_sigmoid(-beta * margin)


class DPOTraining:
    """A run of DPO or IPO; `LMRun` records and resumes it like a run of PPO. Call `step` until `finished`.

    Args:
        backbone: The language model that learns; with its adapters off it is the reference.
        tokenizer: Its Hugging Face tokenizer.
        pairs: The preferences.
        config: The settings; `algorithm` is dpo or ipo, and `prompts` is the number of pairs per step.
        ppo: The settings of the optimiser (lr, max_grad_norm, optimizer); None: `config.ppo()`.
        judge: As in `LMTraining`.
        judge_prompts: As in `LMTraining`.
    """

    path = "torch"
    path_reason = "preference loss"

    def __init__(
        self,
        backbone: Backbone,
        tokenizer: Any,
        pairs: Sequence[PreferencePair],
        config: LMConfig,
        *,
        ppo: PPOConfig | None = None,
        judge: Any = None,
        judge_prompts: Sequence[Prompt] = (),
    ) -> None:
        if config.algorithm not in ("dpo", "ipo"):
            raise ConfigError(f"algorithm is {config.algorithm!r}; preference pairs are learned by dpo or ipo")
        self.config, self.ppo = config, ppo or config.ppo()
        self.speech = Speech(tokenizer, backbone.model, chat=config.chat)
        self.policy = LMPolicy(backbone, critic=NoCritic(), temperature=config.temperature)
        self.optimizer = Optimizer(backbone.trained().values(), self.ppo)
        self.pairs, self.skipped = self._usable(pairs)
        order = torch.randperm(len(self.pairs), generator=_generator("held-out pairs", config.seed)).tolist()
        held = min(HELD_OUT_MOST, round(HELD_OUT_SHARE * len(order)))
        self.held_pairs, self.train_pairs = order[:held], order[held:]
        self.cursor = Cursor(len(self.train_pairs), _generator("prompts", config.seed))
        self.held_out = HeldOut(self.policy, self.speech, config, judge_prompts)
        self.guards = Guards(config, self.policy, judge, len(self.held_out.prompts))
        self.steps, self.tokens = 0, 0
        self.stopped: str | None = None

    def _usable(
        self, pairs: Sequence[PreferencePair]
    ) -> tuple[list[tuple[PreferencePair, list[tuple[np.ndarray, np.ndarray]]]], list[str]]:
        limit = self.policy.backbone.context_length
        usable: list[tuple[PreferencePair, list[tuple[np.ndarray, np.ndarray]]]] = []
        skipped: list[str] = []
        for number, pair in enumerate(pairs, 1):
            prompt = self.speech.prompt(pair.prompt)
            sides = [(prompt, self.speech.continuation(text)) for text in (pair.chosen, pair.rejected)]
            longest = max(len(p) + len(r) for p, r in sides)
            if len(prompt) == 0:
                skipped.append(f"pair {number} has an empty prompt")
            elif limit is not None and longest > limit:
                skipped.append(f"pair {number} has {longest} tokens; the model has {limit} positions")
            else:
                usable.append((pair, sides))
        if len(usable) < 2:
            raise DataError(f"{len(usable)} of {len(pairs)} pairs can be used{'; ' + skipped[0] if skipped else ''}")
        return usable, skipped

    @property
    def finished(self) -> bool:
        """Return True when all steps are done or a guard ended the run."""
        return self.stopped is not None or self.steps >= self.config.steps

    def margins(self, numbers: Sequence[int]) -> tuple[Tensor, dict[str, Tensor]]:
        """Return ([B] margins with gradients, {chosen, rejected: log π/π_ref [B], nll: of the chosen under π})."""
        rows = [self.pairs[i][1][side] for side in (0, 1) for i in numbers]
        batch = sequences(rows, self.policy.backbone.device)
        row, position = predicting(batch)
        tokens = batch.ids[row, position + 1]
        # The frozen layers below `top` are computed once, for the policy and the reference.
        states, trunk = response_states(self.policy.backbone, batch)
        log_prob = score(states, self.policy.backbone.head, tokens).log_prob
        with self.policy.reference() as reference:
            states, _ = response_states(reference, batch, trunk=trunk)
            ref_log_prob = score(states, self.policy.reference_head, tokens).log_prob
        zeros = torch.zeros(len(rows), dtype=log_prob.dtype, device=log_prob.device)
        ratio = zeros.index_add(0, row, log_prob - ref_log_prob)
        if self.config.algorithm == "ipo":
            ratio = ratio / batch.response_length
        nll = -zeros.index_add(0, row, log_prob.detach()) / batch.response_length
        chosen, rejected = ratio[: len(numbers)], ratio[len(numbers) :]
        about = {"chosen": chosen.detach(), "rejected": rejected.detach(), "nll": nll[: len(numbers)]}
        self.tokens += len(tokens) if log_prob.requires_grad else 0
        return chosen - rejected, about

    def step(self) -> LMStep:
        """Learn from the next pairs."""
        begin, config = time.perf_counter(), self.config
        numbers = [self.train_pairs[i] for i in self.cursor.take(config.prompts)]
        tokens = self.tokens
        margin, about = self.margins(numbers)
        wanted = torch.tensor([self.pairs[i][0].margin for i in numbers], device=margin.device)
        loss = preference_loss(config.algorithm, margin - wanted, config.beta, config.label_smoothing).mean()
        self.optimizer.zero_grad()
        loss.backward()
        norm = float(self.optimizer.clip(self.ppo.max_grad_norm or float("inf")))
        # Warm-up over the first tenth: Adam's second moments are wrong at the start, and the reference is the best policy so far.
        warm = min(1.0, (self.steps + 1) / max(1.0, 0.1 * config.steps))
        lr = value_at(self.ppo.lr, progress=self.steps / config.steps, updates=self.steps) * warm
        self.optimizer.step(lr)
        learned = time.perf_counter()
        self.steps += 1
        h = margin.detach()
        stats = {
            "beta": config.beta,
            "loss": float(loss.detach()),
            "score": config.beta * float(h.mean()),
            "preference_accuracy": float((h > 0).float().mean()),
            "chosen_log_ratio": float(about["chosen"].mean()),
            "rejected_log_ratio": float(about["rejected"].mean()),
            "chosen_nll": float(about["nll"].mean()),
            "tokens": float(self.tokens - tokens),
            "response_length": (self.tokens - tokens) / (2 * len(numbers)),
            **self._held_out_pairs(),
        }
        stopped, notes = self.guards.after_update(self.steps, stats["score"], self.held_out)
        self.stopped = stopped
        report = UpdateReport(
            update=self.steps,
            policy_version=self.steps,
            samples=self.tokens - tokens,
            path=self.path,
            path_reason=self.path_reason,
            loss=stats["loss"],
            policy_loss=stats["loss"],
            grad_norm=norm,
            grad_norm_max=norm,
            lr=lr,
            minibatches=1,
        )
        return LMStep(
            number=self.steps,
            report=report,
            stats={**stats, **self.guards.stats()},
            samples=tuple(self._sample(i, float(x)) for i, x in zip(numbers[:2], h, strict=False)),
            seconds={"learn": learned - begin, "judge": time.perf_counter() - learned},
            stopped=stopped,
            notes=tuple(notes),
        )

    def _held_out_pairs(self) -> dict[str, float]:
        """Return the accuracy on held-out pairs, at the steps where guards evaluate."""
        due = self.steps % self.config.judge_every == 0 or self.steps in (1, self.config.steps)
        if not self.held_pairs or not due:
            return {}
        with torch.no_grad():
            size = self.config.prompts
            parts = [self.margins(self.held_pairs[i : i + size])[0] for i in range(0, len(self.held_pairs), size)]
        h = torch.cat(parts)
        loss = preference_loss(self.config.algorithm, h, self.config.beta, self.config.label_smoothing)
        return {"held_out_accuracy": float((h > 0).float().mean()), "held_out_loss": float(loss.mean())}

    def _sample(self, number: int, margin: float) -> Sample:
        pair = self.pairs[number][0]
        return Sample(as_text(pair.prompt), f"chosen: {pair.chosen} | rejected: {pair.rejected}", margin)

    def state(self) -> dict[str, Any]:
        """Return the parts of a checkpoint."""
        return {
            "weights": {name: x.clone() for name, x in self.policy.state_dict().items()},
            "optimizer": {name: x.clone() for name, x in self.optimizer.tensors().items()},
            "lm": {
                "steps": self.steps,
                "tokens": self.tokens,
                "cursor": self.cursor.generator.get_state(),
                "order": np.asarray(self.cursor.order, np.int64),
                "passes": self.cursor.passes,
                "stopped": self.stopped,
                "guards": self.guards.state(),
            },
        }

    @restoring("state")
    def set_state(self, parts: dict[str, Any]) -> None:
        """Restore the parts that `state` returned."""
        load_weights(self.policy, parts["weights"])
        self.optimizer.load({name: torch.as_tensor(x) for name, x in parts["optimizer"].items()})
        saved = parts["lm"]
        self.steps, self.tokens, self.stopped = saved["steps"], saved["tokens"], saved["stopped"]
        order = [int(i) for i in saved["order"]]
        if any(i >= len(self.train_pairs) for i in order):
            raise ConfigError(f"the checkpoint was saved with more pairs than these {len(self.pairs)}; pass the same")
        self.cursor = replace(self.cursor, order=order, passes=saved["passes"])
        self.cursor.generator.set_state(generator_state(saved["cursor"]))
        self.guards.set_state(saved["guards"])


def _generator(purpose: str, seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed_for(purpose, seed))
