"""Prompts in, responses out, scored, learned from: one step of a language run, and all that moves from step to step."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from surefoot.data.seeds import seed_for
from surefoot.errors import ConfigError, DataError
from surefoot.learn.config import PPOConfig
from surefoot.learn.learner import Learner
from surefoot.learn.report import UpdateReport
from surefoot.learn.torch_update import TorchUpdate
from surefoot.lm.config import LMConfig
from surefoot.lm.piecewise_update import PiecewiseUpdate
from surefoot.lm.policy.backbone import Backbone
from surefoot.lm.policy.loading import Speech
from surefoot.lm.policy.policy import LMPolicy, NoCritic, ValueOf
from surefoot.lm.rewards.guards import Guards
from surefoot.lm.rewards.kl_penalty import AdaptiveBeta, FixedBeta
from surefoot.lm.rewards.rewards import (
    ResponseDrift,
    RewardInputs,
    Rewards,
    ScoreScale,
    as_rewards,
    distinct,
    repetition,
)
from surefoot.lm.sampling.rollout import ResponseBatch, consult, group_advantages, lay_out, to_rollout, token_rewards
from surefoot.lm.sampling.sampler import Response, generate
from surefoot.nets.policy import load_weights

Talk = str | Sequence[dict[str, str]]
"""A plain prompt, or the messages of a conversation."""
Judge = Callable[[list[str], list[str]], Sequence[float]]
"""(prompts, responses) → a score each; never learned from."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One response to look at."""

    prompt: str
    response: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LMStep:
    """What one step came to."""

    number: int
    report: UpdateReport
    stats: dict[str, float]
    samples: tuple[Sample, ...]
    seconds: dict[str, float]
    stopped: str | None = None
    """Why the run ends here, if it does."""
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class Cursor:
    """Where in the prompts a run is: shuffled anew in every pass, nothing skipped, nothing twice."""

    count: int
    generator: torch.Generator
    order: list[int] = field(default_factory=list[int])
    passes: int = 0

    def take(self, number: int) -> list[int]:
        """The next prompts."""
        while len(self.order) < number:
            self.order += torch.randperm(self.count, generator=self.generator).tolist()
            self.passes += 1
        taken, self.order = self.order[:number], self.order[number:]
        return taken


class LMTraining:
    """One run: a policy, its learner, its prompts and its reward. `step` is all it does."""

    def __init__(
        self,
        backbone: Backbone,
        tokenizer: Any,
        prompts: Sequence[Talk],
        reward: Any,
        config: LMConfig,
        *,
        ppo: PPOConfig | None = None,
        critic: nn.Module | None = None,
        reference: Backbone | None = None,
        judge: Judge | None = None,
        judge_prompts: Sequence[Talk] = (),
    ) -> None:
        self.config, self.ppo = config, config.ppo() if ppo is None else config.follow(ppo)
        self.speech = Speech(tokenizer, backbone.model)
        self.policy = LMPolicy(
            backbone,
            critic=NoCritic() if config.algorithm != "ppo" else critic,
            temperature=config.temperature,
            kl_in_loss=config.kl if config.kl_in == "loss" else None,
            entropy_gradient=self.ppo.ent_coef != 0.0,
            packed=config.packed,
            reference=reference,
        )
        length: dict[str, Any] = {"total_updates": config.steps, "device": backbone.device}
        make_update = (
            TorchUpdate if config.learn_rows is None else partial(PiecewiseUpdate, columns_at_once=config.learn_rows)
        )
        self.learner = Learner(self.policy, self.ppo, make_update=make_update, **length)
        self.skipped: list[str] = []
        """A sentence for each prompt that cannot be used."""
        self.prompts, self.prompt_ids = self._readable(prompts)
        pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else self.speech.eos[0]
        self.reward: Rewards = as_rewards(reward, timeout=config.reward_timeout, device=backbone.device, pad=pad)
        self.scale = ScoreScale(normalize=config.normalize_score, clip=config.score_clip)
        self.beta = (
            FixedBeta(config.beta)
            if config.kl_target is None
            else AdaptiveBeta(config.beta, config.kl_target, config.kl_horizon)
        )
        self.drift = ResponseDrift()
        self.generator = torch.Generator().manual_seed(seed_for("sample", config.seed))
        """Draws the responses, nothing else."""
        self.cursor = Cursor(len(self.prompts), torch.Generator().manual_seed(seed_for("prompts", config.seed)))
        self.steps, self.tokens = 0, 0
        self.guards = Guards(config, self.policy, judge, self._readable(judge_prompts)[1] if judge_prompts else [])
        self.stopped: str | None = None

    def _readable(self, prompts: Sequence[Talk]) -> tuple[list[Talk], list[np.ndarray]]:
        """Prompts with their tokens; those the model cannot answer are left out and said."""
        kept: list[Talk] = []
        ids: list[np.ndarray] = []
        limit = self.policy.backbone.context_length
        for number, talk in enumerate(prompts, 1):
            tokens = self.speech.prompt(talk)
            if len(tokens) == 0 or (isinstance(talk, str) and not talk.strip()):
                self.skipped.append(f"prompt {number} is empty")
            elif limit is not None and len(tokens) + self.config.max_new_tokens > limit:
                self.skipped.append(
                    f"prompt {number} has {len(tokens)} tokens; {limit} - max_new_tokens={self.config.max_new_tokens} fit"
                )
            else:
                kept.append(talk)
                ids.append(tokens)
        if not kept:
            why = f"; {self.skipped[0]}" if self.skipped else ""
            raise DataError(f"none of {len(prompts)} prompts can be used{why}")
        return kept, ids

    @property
    def finished(self) -> bool:
        """True when all steps are done, or a guard ended the run."""
        return self.stopped is not None or self.steps >= self.config.steps

    def step(self) -> LMStep:
        """Sample, score, learn. Raises before anything moved if the reward fails."""
        begin = time.perf_counter()
        before = (
            self.generator.get_state(),
            self.cursor.generator.get_state(),
            list(self.cursor.order),
            self.cursor.passes,
        )
        chosen = [i for i in self.cursor.take(self.config.prompts) for _ in range(self.config.group)]
        try:
            responses = self.respond([self.prompt_ids[i] for i in chosen])
            generated = time.perf_counter()
            said = self.said(chosen, responses)
            raw, each = self.reward(said)
        except BaseException:
            # As if the step had not begun, so that a checkpoint made now goes on with these very prompts.
            self.generator.set_state(before[0])
            self.cursor.generator.set_state(before[1])
            self.cursor.order, self.cursor.passes = before[2], before[3]
            raise
        scored = time.perf_counter()
        laid = lay_out(responses)
        self._consult(laid)
        bad = ~np.isfinite(raw)
        reward = self._reward(laid, raw)
        laid.valid[:, bad] = False
        stats = self._stats(laid, responses, raw, each, bad)
        stopped, notes = self.guards.before_update(stats["kl"], self.beta)
        consulted = time.perf_counter()
        if self.guards.held_back:
            report = self._not_learned(laid, "beyond kl_budget")
        else:
            # Nothing is left of a rollout whose scores are all NaN: the learner skips it and says so.
            report = self.learner.update(
                to_rollout(
                    laid,
                    np.where(laid.valid, reward, 0.0).astype(np.float32),
                    version=self.learner.policy_version,
                    kl_in_loss=self.config.kl_in == "loss",
                    stats=stats,
                )
            )
            if self.config.kl_in == "reward":
                self.beta.see(stats["kl"], len(responses))
        self.steps += 1
        self.tokens += int(stats["tokens"])
        learned = time.perf_counter()
        judged, more = self.guards.after_update(self.steps, stats.get("score", 0.0), self._judge_responses)
        self.stopped = stopped or judged
        notes += more
        if bad.any():
            notes.append(f"{int(bad.sum())} of {len(raw)} scores were not numbers; those responses were left out")
        seconds = {
            "generate": generated - begin,
            "reward": scored - generated,
            "reference": consulted - scored,
            "learn": learned - consulted,
            "judge": time.perf_counter() - learned,
        }
        return LMStep(
            number=self.steps,
            report=report,
            stats={**stats, **self.guards.stats(), "nonfinite_scores": float(bad.sum())},
            samples=tuple(
                Sample(p, r, float(x)) for p, r, x in zip(said.prompts[:4], said.responses[:4], raw[:4], strict=True)
            ),
            seconds=seconds,
            stopped=self.stopped,
            notes=tuple(notes),
        )

    def respond(self, prompts: Sequence[np.ndarray]) -> list[Response]:
        """Sample a response to each prompt with the policy of now."""
        return generate(
            self.policy,
            prompts,
            self.config.sampling,
            eos=self.speech.eos,
            generator=self.generator,
            keep_trunk=not self.config.packed,
        )

    def said(self, chosen: Sequence[int], responses: Sequence[Response]) -> RewardInputs:
        """Prompts and responses as a reward sees them."""
        return RewardInputs(
            prompts=[as_text(self.prompts[i]) for i in chosen],
            responses=[self.speech.text(r.tokens) for r in responses],
            prompt_ids=[self.prompt_ids[i] for i in chosen],
            response_ids=[self.speech.without_end(r.tokens) for r in responses],
        )

    def _consult(self, laid: ResponseBatch) -> None:
        config = self.config
        consult(
            self.policy,
            laid,
            exact_in_reward=config.kl_in == "reward" and config.kl == "exact",
            exact_in_loss=config.kl_in == "loss" and config.kl == "exact",
            rescore=config.recompute_logprobs,
            values=isinstance(self.policy.critic, ValueOf),
        )

    def _reward(self, laid: ResponseBatch, raw: np.ndarray) -> np.ndarray:
        """[T, N] as learned from."""
        config = self.config
        score = self.scale(raw) - config.length_penalty * laid.length
        score = score - config.missing_eos_penalty * ~laid.ended
        beta = self.beta.beta if config.kl_in == "reward" else 0.0
        if config.algorithm == "ppo":
            decay = self.ppo.gamma * self.ppo.lam
            return token_rewards(laid, score, beta=beta, decay=decay, whiten=config.whiten_rewards)
        whole = score - beta * laid.kl()
        advantage = group_advantages(whole, config.group, scale=config.algorithm == "grpo")
        return token_rewards(laid, advantage, beta=0.0, decay=1.0)

    def _stats(
        self,
        laid: ResponseBatch,
        responses: Sequence[Response],
        raw: np.ndarray,
        each: dict[str, np.ndarray],
        bad: np.ndarray,
    ) -> dict[str, float]:
        """Numbers people look at, over the responses that count."""
        good = ~bad
        if not good.any():
            return {"kl": 0.0, "tokens": float(sum(len(r.tokens) for r in responses)), "beta": self.beta.beta}
        log_ratio = (laid.ref_log_prob - laid.log_prob)[laid.valid]
        length = float(laid.length[good].mean())
        repeats = float(np.mean([repetition(r.tokens) for r, ok in zip(responses, good, strict=True) if ok]))
        stats = {
            "score": float(raw[good].mean()),
            "score_std": float(raw[good].std()),
            "kl": float(laid.kl()[good].mean()),
            "kl_k3": float(np.mean(np.expm1(np.clip(log_ratio, -20, 20)) - log_ratio)),
            "kl_token": float(laid.kl()[good].sum() / max(1, int(laid.length[good].sum()))),
            "reference_nll": float(-laid.ref_log_prob[laid.valid].mean()),
            "beta": self.beta.beta,
            "response_length": length,
            "ended": float(laid.ended[good].mean()),
            "distinct_2": distinct([r.tokens for r in responses]),
            "repetition": repeats,
            "tokens": float(sum(len(r.tokens) for r in responses)),
            **self.drift.see(length=length, repetition=repeats),
        }
        if laid.mismatch is not None:
            stats["sampler_mismatch"] = laid.mismatch
        if len(each) > 1:
            stats |= {f"reward_{name}": float(np.nanmean(x)) for name, x in each.items()}
        return stats

    def _not_learned(self, laid: ResponseBatch, reason: str) -> UpdateReport:
        laid.valid[:] = False
        empty = to_rollout(laid, np.zeros(laid.action.shape, np.float32), version=0, kl_in_loss=False, stats={})
        report = self.learner.update(empty)
        return report if report.skipped_reason is None else _with_reason(report, reason)

    def _judge_responses(self, prompts: Sequence[np.ndarray]) -> tuple[list[str], list[str]]:
        """The same random numbers at every look, so that two looks differ by the policy alone."""
        generator = torch.Generator().manual_seed(seed_for("judge", self.config.seed))
        made = generate(self.policy, prompts, self.config.sampling, eos=self.speech.eos, generator=generator)
        return [self.speech.text(p) for p in prompts], [self.speech.text(r.tokens) for r in made]

    def state(self) -> dict[str, Any]:
        """The parts of a checkpoint."""
        return {
            "weights": {name: x.clone() for name, x in self.policy.state_dict().items()},
            **self.learner.state(),
            "lm": {
                "steps": self.steps,
                "tokens": self.tokens,
                "beta": self.beta.beta,
                "scale": self.scale.state(),
                "drift": dict(self.drift.first),
                "generator": self.generator.get_state(),
                "cursor": self.cursor.generator.get_state(),
                "order": np.asarray(self.cursor.order, np.int64),
                "passes": self.cursor.passes,
                "stopped": self.stopped,
                "guards": self.guards.state(),
            },
        }

    def set_state(self, parts: dict[str, Any]) -> None:
        """Go on from a checkpoint's parts."""
        load_weights(self.policy, parts["weights"])
        self.learner.set_state(parts)
        mine = parts["lm"]
        self.steps, self.tokens, self.beta.beta = mine["steps"], mine["tokens"], mine["beta"]
        self.scale.set_state(mine["scale"])
        self.drift.first = dict(mine["drift"])
        self.generator.set_state(_bytes(mine["generator"]))
        self.cursor.generator.set_state(_bytes(mine["cursor"]))
        self.cursor.order, self.cursor.passes = [int(i) for i in mine["order"]], mine["passes"]
        if any(i >= len(self.prompts) for i in self.cursor.order):
            raise ConfigError(f"the checkpoint goes on with other prompts than these {len(self.prompts)}")
        self.stopped = mine["stopped"]
        self.guards.set_state(mine["guards"])


def as_text(talk: Talk) -> str:
    """A prompt for people: plain text, or the last thing that was said."""
    return talk if isinstance(talk, str) else talk[-1]["content"]


def _bytes(state: Any) -> Tensor:
    return torch.as_tensor(np.array(state) if isinstance(state, np.ndarray) else state)


def _with_reason(report: UpdateReport, reason: str) -> UpdateReport:
    from dataclasses import replace

    return replace(report, skipped_reason=reason)
