"""One step of a language run: sample responses to prompts, score them, learn from them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.data.seeds import seed_for
from surefoot.errors import ConfigError, RewardError
from surefoot.learn.checkpoint.typed_state import restoring
from surefoot.learn.config import PPOConfig
from surefoot.learn.learner import Learner
from surefoot.learn.report import UpdateReport
from surefoot.learn.torch_update import TorchUpdate
from surefoot.lm.config import LMConfig
from surefoot.lm.data import Cursor as Cursor
from surefoot.lm.held_out import HeldOut, reward_inputs, room_for_prompts
from surefoot.lm.piecewise_update import PiecewiseUpdate
from surefoot.lm.policy.backbone import Backbone
from surefoot.lm.policy.loading import Prompt, Speech
from surefoot.lm.policy.policy import Critic, LMPolicy, NoCritic, ValueOf
from surefoot.lm.rewards.guards import Guards
from surefoot.lm.rewards.kl_penalty import AdaptiveBeta, FixedBeta
from surefoot.lm.rewards.rewards import ResponseDrift, Rewards, ScoreScale, as_rewards
from surefoot.lm.sampling.rollout import (
    ResponseBatch,
    consult,
    group_advantages,
    lay_out,
    response_stats,
    to_rollout,
    token_rewards,
)
from surefoot.lm.sampling.sampler import Response, generate
from surefoot.nets.policy import load_weights


@dataclass(frozen=True, slots=True)
class Sample:
    """One response, for people to read."""

    prompt: str
    response: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LMStep:
    """The result of one step."""

    number: int
    report: UpdateReport
    stats: dict[str, float]
    samples: tuple[Sample, ...]
    seconds: dict[str, float]
    stopped: str | None = None
    """Why the run ends with this step; None if it continues."""
    notes: tuple[str, ...] = ()


class LMTraining:
    """A language run: a policy, its learner, its prompts and its reward. Call `step` until `finished`.

    Args:
        backbone: The language model that learns; without `reference` it is also the reference.
        tokenizer: Its Hugging Face tokenizer.
        prompts: Texts, conversations as lists of {"role", "content"}, or rows with the key "prompt" and others for rewards.
        reward: A function of (prompt, response), a torch module, a list of them, or {name: (reward, weight)}. A function
            receives what its parameters are called: prompt, response, conversation, row, or the plurals for the batch.
        config: The settings of the run.
        ppo: The settings of the learner; None: `config.ppo()`.
        critic: The source of the values; None: a linear head on the policy's hidden states.
        reference: A separate reference model for the KL; None: the backbone with its adapters off.
        judge: Like `reward`, but never learned from; the best weights by it are kept.
        judge_prompts: Held-out prompts, for the judge and for the limits of fluency.
    """

    def __init__(
        self,
        backbone: Backbone,
        tokenizer: Any,
        prompts: Sequence[Prompt],
        reward: Any,
        config: LMConfig,
        *,
        ppo: PPOConfig | None = None,
        critic: Critic | None = None,
        reference: Backbone | None = None,
        judge: Any = None,
        judge_prompts: Sequence[Prompt] = (),
    ) -> None:
        self.config, self.ppo = config, config.ppo() if ppo is None else config.follow(ppo)
        self.speech = Speech(tokenizer, backbone.model, chat=config.chat)
        self.policy = LMPolicy(
            backbone,
            critic=NoCritic() if config.algorithm != "ppo" else critic,
            temperature=config.temperature,
            kl_in_loss=config.kl if config.kl_in == "loss" else None,
            entropy_gradient=self.ppo.ent_coef != 0.0,
            packed=config.packed,
            reference=reference,
        )
        rows = config.learn_rows
        self.learner = Learner(
            self.policy,
            self.ppo,
            total_updates=config.steps,
            device=backbone.device,
            make_update=TorchUpdate if rows is None else partial(PiecewiseUpdate, columns_at_once=rows),
        )
        self.prompts, self.skipped = self.speech.usable(prompts, room_for_prompts(backbone, config))
        # Reward modules mask the padding; the end token stands in where there is no pad token.
        pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else self.speech.eos[0]
        self.reward: Rewards = as_rewards(reward, timeout=config.reward_timeout, device=backbone.device, pad=pad)
        self.scale = ScoreScale(normalize=config.normalize_score, clip=config.score_clip)
        target, horizon = config.kl_target, config.kl_horizon
        self.beta = FixedBeta(config.beta) if target is None else AdaptiveBeta(config.beta, target, horizon)
        self.drift = ResponseDrift()
        self.generator = torch.Generator().manual_seed(seed_for("sample", config.seed))
        """Samples the responses, nothing else."""
        self.cursor = Cursor(len(self.prompts), torch.Generator().manual_seed(seed_for("prompts", config.seed)))
        self.steps, self.tokens = 0, 0
        self.held_out = HeldOut(self.policy, self.speech, config, judge_prompts)
        self.guards = Guards(config, self.policy, judge, len(self.held_out.prompts))
        self.stopped: str | None = None

    @property
    def path(self) -> str:
        """Return the implementation of the learner."""
        return self.learner.path

    @property
    def path_reason(self) -> str:
        """Return why it is used."""
        return self.learner.path_reason

    @property
    def finished(self) -> bool:
        """Return True when all steps are done or a guard ended the run."""
        return self.stopped is not None or self.steps >= self.config.steps

    def step(self) -> LMStep:
        """Sample, score and learn. If the reward raises, nothing has changed."""
        begin = time.perf_counter()
        draws = self.generator.get_state(), self.cursor.generator.get_state()
        cursor = replace(self.cursor, order=list(self.cursor.order))
        chosen = [i for i in self.cursor.take(self.config.prompts) for _ in range(self.config.group)]
        try:
            prompts = [self.prompts[i] for i in chosen]
            responses = self.respond([prompt.ids for prompt in prompts])
            generated = time.perf_counter()
            inputs = reward_inputs(self.speech, prompts, responses)
            raw, each = self.reward(inputs)
            if not np.isfinite(raw).any():
                raise RewardError(f"none of {len(raw)} scores is a finite number; nothing of this step was learned")
        except BaseException:
            # Undo the draws, so that a checkpoint saved now resumes with the same prompts.
            self.cursor = cursor
            self.generator.set_state(draws[0])
            self.cursor.generator.set_state(draws[1])
            raise
        scored = time.perf_counter()
        batch = lay_out(responses)
        config = self.config
        consult(
            self.policy,
            batch,
            exact_in_reward=config.kl_in == "reward" and config.kl == "exact",
            exact_in_loss=config.kl_in == "loss" and config.kl == "exact",
            rescore=config.recompute_logprobs,
            values=isinstance(self.policy.critic, ValueOf),
        )
        # Before bad responses become invalid: rewards use the lengths, which `valid` defines.
        bad = ~np.isfinite(raw)
        reward = self._reward(batch, raw)
        batch.valid[:, bad] = False
        stats = {"beta": self.beta.beta, **response_stats(batch, responses, inputs.responses, raw, each, self.drift)}
        stopped, notes = self.guards.before_update(stats["kl"], self.beta)
        consulted = time.perf_counter()
        if self.guards.held_back:
            # An empty rollout: the learner counts the update, so that schedules and checkpoints stay in step.
            batch.valid[:] = False
            empty = to_rollout(batch, np.zeros_like(reward), version=0, kl_in_loss=False, stats={})
            report = replace(self.learner.update(empty), skipped_reason="beyond kl_budget")
        else:
            version, in_loss = self.learner.policy_version, config.kl_in == "loss"
            reward = np.where(batch.valid, reward, 0.0).astype(np.float32)
            rollout = to_rollout(batch, reward, version=version, kl_in_loss=in_loss, stats=stats)
            report = self.learner.update(rollout)
            if config.kl_in == "reward":
                self.beta.see(stats["kl"], len(responses))
        self.steps += 1
        self.tokens += int(stats["tokens"])
        learned = time.perf_counter()
        judged, more = self.guards.after_update(self.steps, stats["score"], self.held_out, self.beta)
        self.stopped = stopped or judged
        notes += more
        if bad.any():
            notes.append(f"{int(bad.sum())} of {len(raw)} scores were not numbers; these responses were left out")
        clock = (begin, generated, scored, consulted, learned, time.perf_counter())
        parts = ("generate", "reward", "reference", "learn", "judge")
        seconds = {part: end - start for part, (start, end) in zip(parts, pairwise(clock), strict=True)}
        return LMStep(
            number=self.steps,
            report=report,
            stats={**stats, **self.guards.stats(), "nonfinite_scores": float(bad.sum())},
            samples=tuple(map(Sample, inputs.prompts[:4], inputs.responses[:4], raw[:4].tolist())),
            seconds=seconds,
            stopped=self.stopped,
            notes=tuple(notes),
        )

    def respond(self, prompts: Sequence[np.ndarray]) -> list[Response]:
        """Sample one response per prompt with the current policy."""
        return generate(
            self.policy,
            prompts,
            self.config.sampling,
            eos=self.speech.eos,
            generator=self.generator,
            keep_trunk=not self.config.packed,
        )

    def _reward(self, batch: ResponseBatch, raw: np.ndarray) -> np.ndarray:
        """Return the rewards per token, [T, N]."""
        config = self.config
        score = self.scale(raw) - config.length_penalty * batch.length
        score = score - config.missing_eos_penalty * ~batch.ended
        if config.fluency_weight:
            total = np.where(batch.valid, batch.ref_log_prob, 0.0).sum(0)
            score = score + config.fluency_weight * total / np.maximum(1, batch.length)
        beta = self.beta.beta if config.kl_in == "reward" else 0.0
        if config.algorithm == "ppo":
            decay = self.ppo.gamma * self.ppo.lam
            return token_rewards(batch, score, beta=beta, decay=decay, whiten=config.whiten_rewards)
        # Without a critic the KL belongs to the score of the response, before scores are compared.
        advantage = group_advantages(score - beta * batch.kl(), config.group, scale=config.algorithm == "grpo")
        return token_rewards(batch, advantage, beta=0.0, decay=1.0)

    def state(self) -> dict[str, Any]:
        """Return the parts of a checkpoint."""
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

    @restoring("state")
    def set_state(self, parts: dict[str, Any]) -> None:
        """Restore the parts that `state` returned."""
        load_weights(self.policy, parts["weights"])
        self.learner.set_state(parts)
        saved = parts["lm"]
        self.steps, self.tokens, self.beta.beta = saved["steps"], saved["tokens"], saved["beta"]
        self.scale.set_state(saved["scale"])
        self.drift.first = dict(saved["drift"])
        self.generator.set_state(generator_state(saved["generator"]))
        self.cursor.generator.set_state(generator_state(saved["cursor"]))
        self.cursor.order, self.cursor.passes = [int(i) for i in saved["order"]], saved["passes"]
        if any(i >= len(self.prompts) for i in self.cursor.order):
            raise ConfigError(
                f"the checkpoint was saved with more prompts than these {len(self.prompts)}; pass the same prompts"
            )
        self.stopped = saved["stopped"]
        self.guards.set_state(saved["guards"])


def generator_state(state: Any) -> Tensor:
    """Return the saved state of a generator as torch takes it."""
    # Loaded arrays may be read-only views, which torch's generators refuse.
    return torch.as_tensor(np.array(state) if isinstance(state, np.ndarray) else state)
