"""`PPOTrainer`: four models, a tokenizer and `train`, over the same learner as `surefoot lm ppo`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from surefoot.core.advantage import gae
from surefoot.core.divergence import k1
from surefoot.core.losses import clipped_surrogate
from surefoot.core.masked import masked_mean
from surefoot.data.seeds import seed_for
from surefoot.errors import CheckpointMissing, ConfigError
from surefoot.learn.checkpoint.checkpoint import load_checkpoint, save_checkpoint
from surefoot.learn.config import PPOConfig
from surefoot.learn.learner import Learner
from surefoot.lm.policy.backbone import Backbone
from surefoot.lm.policy.loading import Speech
from surefoot.lm.policy.policy import LMPolicy, ValueHead, ValueOf
from surefoot.lm.policy.vocabulary_head import score
from surefoot.lm.rewards.kl_penalty import require_kl
from surefoot.lm.rewards.reward_model import RewardModel, ValueModel
from surefoot.lm.rewards.rewards import RewardInputs, as_rewards
from surefoot.lm.sampling.rollout import consult, lay_out, to_rollout, token_rewards
from surefoot.lm.sampling.sampler import Response, Sampling, generate
from surefoot.nets.policy import load_weights

__all__ = ["PPOTrainer", "RewardModel", "ValueModel"]

HISTORY = ("policy_losses", "value_losses", "kl_divergences", "step_avg_rewards", "mean_rewards")


class PPOTrainer:
    """PPO with separate models for policy, critic and reward; the reference is a copy of the policy at the start.

    `reward_model` is a module `(input_ids, attention_mask) → [B]` or any function of (prompt, response). Without a
    `value_model` the critic is a head on the policy. `kl_in` is where the KL counts: in the "loss" (as k3) or in the
    "reward". The defaults are those of the original trainer; `surefoot lm ppo` has the usual ones.
    """

    def __init__(
        self,
        policy_model: Any,
        value_model: nn.Module | None,
        reward_model: Any,
        tokenizer: Any,
        device: str | torch.device = "cpu",
        learning_rate: float = 1e-5,
        clip_epsilon: float = 0.2,
        kl_penalty: float = 0.1,
        gamma: float = 0.99,
        gae_lambda: float = 0.95,
        value_loss_coef: float = 0.5,
        max_grad_norm: float = 1.0,
        *,
        value_learning_rate: float | None = None,
        kl_in: str = "loss",
        kl: str | None = None,
        reference_model: Any = None,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
    ) -> None:
        if kl_in not in ("loss", "reward"):
            raise ConfigError(f"kl_in is {kl_in!r}; the KL counts in the 'loss' or in the 'reward', never in both")
        self.kl = kl or ("k3" if kl_in == "loss" else "k1")
        require_kl(kl_in, self.kl)
        self.device, self.tokenizer, self.kl_in, self.kl_penalty = torch.device(device), tokenizer, kl_in, kl_penalty
        self.top_k, self.top_p = top_k, top_p
        policy_model.to(self.device)
        if value_model is not None:
            _require_apart(policy_model, value_model, "value_model")
        if isinstance(reward_model, nn.Module):
            _require_apart(policy_model, reward_model, "reward_model")
            reward_model.to(self.device)
        self.policy_model, self.value_model, self.reward_model = policy_model, value_model, reward_model
        reference = None
        if reference_model is not None:
            _require_apart(policy_model, reference_model, "reference_model")
            reference = Backbone(reference_model.to(self.device), train="none")
        self.policy = LMPolicy(
            Backbone(policy_model, train="full"),
            critic=None if value_model is None else ValueOf(value_model.to(self.device)),
            kl_in_loss=self.kl if kl_in == "loss" else None,
            reference=reference,
        )
        value_rate = learning_rate if value_learning_rate is None else value_learning_rate
        self.config = PPOConfig(
            lr=learning_rate,
            critic_lr_scale=value_rate / learning_rate,
            clip=clip_epsilon,
            kl_coef=kl_penalty if kl_in == "loss" else 0.0,
            gamma=gamma,
            lam=gae_lambda,
            vf_coef=value_loss_coef,
            max_grad_norm=max_grad_norm,
            epochs=4,
            minibatch_size=None,
            minibatches=1,
            normalize_advantage="batch",
            seed=seed,
        )
        self.learner = Learner(self.policy, self.config, device=self.device)
        self.speech = Speech(tokenizer, policy_model, chat="never")
        self.rewards = as_rewards(reward_model, device=self.device, pad=self.speech.eos[0])
        self.generator = torch.Generator().manual_seed(seed_for("sample", seed))
        self.shuffle = random.Random(seed_for("prompts", seed))
        self.step = 0
        self.stats: dict[str, list[float]] = {name: [] for name in HISTORY}

    def generate_responses(
        self, prompts: Sequence[str], max_length: int = 150, temperature: float = 1.0
    ) -> tuple[list[str], list[Response]]:
        """Return (texts, responses with tokens, log-probs and values). `max_length` counts the prompt too."""
        ids = [self.speech.prompt(prompt) for prompt in prompts]
        for prompt, tokens in zip(prompts, ids, strict=True):
            if len(tokens) == 0:
                raise ConfigError("a prompt is empty; write at least one token")
            if len(tokens) >= max_length:
                raise ConfigError(
                    f"the prompt {prompt[:40]!r} has {len(tokens)} tokens, which leaves no room in max_length={max_length}"
                )
        room = max_length - max(len(tokens) for tokens in ids)
        self.policy.temperature = temperature
        sampling = Sampling(
            max_new_tokens=room, temperature=temperature, top_k=self.top_k, top_p=self.top_p, rows=max(1, len(ids))
        )
        responses = generate(self.policy, ids, sampling, eos=self.speech.eos, generator=self.generator)
        return [self.speech.text(r.tokens) for r in responses], responses

    def compute_rewards(self, prompts: Sequence[str], responses: Sequence[Response]) -> Tensor:
        """Return [B], one score per response."""
        batch = RewardInputs(
            prompts=list(prompts),
            responses=[self.speech.text(r.tokens) for r in responses],
            prompt_ids=[r.prompt for r in responses],
            response_ids=[self.speech.without_end(r.tokens) for r in responses],
        )
        return torch.from_numpy(self.rewards(batch)[0]).float()

    def compute_values(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return [B, L], the value after each token."""
        critic = self.policy.critic
        if isinstance(critic, ValueOf):
            return critic.model(input_ids, attention_mask)
        assert isinstance(critic, ValueHead)
        return critic.out(self._hidden(self.policy.backbone, input_ids, attention_mask).float()).squeeze(-1)

    def get_logprobs(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return [B, L - 1], the log-prob of every token but the first, with gradients; 0 for padding."""
        return self._logprobs(self.policy.backbone, input_ids, attention_mask)

    def get_reference_logprobs(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the same under the reference."""
        with self.policy.reference() as reference:
            return self._logprobs(reference, input_ids, attention_mask)

    def _hidden(self, backbone: Backbone, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        position = (attention_mask.long().cumsum(-1) - 1).clamp(min=0)
        if backbone.direct is None:
            return backbone.hidden(input_ids, position=position, mask=attention_mask)
        itself = torch.eye(input_ids.shape[1], dtype=torch.bool, device=input_ids.device)
        # A row of padding attends to itself: a softmax over nothing would be NaN.
        sees = torch.ones_like(itself).tril() & attention_mask.bool()[:, None, None] | itself
        return backbone.hidden(input_ids, position=position, mask=sees)

    def _logprobs(self, backbone: Backbone, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        states = self._hidden(backbone, input_ids, attention_mask)[:, :-1]
        counted = (attention_mask[:, 1:] * attention_mask[:, :-1]).bool()
        scores = score(states[counted], backbone.head, input_ids[:, 1:][counted], temperature=self.policy.temperature)
        flat = torch.zeros(counted.shape, device=states.device)
        return flat.masked_scatter(counted, scores.log_prob)

    def compute_gae(
        self, rewards: Tensor, values: Tensor, dones: Tensor | None = None, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return (advantages, returns) of [L] or [B, L] steps; the value after the last one, and after a done, is 0."""
        flat = rewards.dim() == 1
        reward, value = (x.reshape(1, -1) if flat else x for x in (rewards, values))
        end = torch.zeros_like(reward, dtype=torch.bool) if dones is None else dones.reshape(reward.shape).bool()
        # Padding has no value: the last valid step is not bootstrapped from what stands behind it.
        valid = torch.ones_like(reward, dtype=torch.bool) if mask is None else mask.reshape(reward.shape).bool()
        following = torch.cat([(value * valid)[:, 1:], torch.zeros_like(value[:, :1])], 1)
        gamma, lam = self.config.gamma, self.config.lam
        advantage = gae(reward.T, value.T, following.T, end.T, end.T, valid.T, gamma=gamma, lam=lam).T
        return (advantage[0], (advantage + value)[0]) if flat else (advantage, advantage + value)

    def compute_kl_divergence(self, logprobs: Tensor, reference: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the mean of log π - log π_ref over the valid tokens: unbiased for tokens sampled from π, and signed."""
        return masked_mean(k1(reference - logprobs), None if mask is None else mask.bool())

    def compute_ppo_loss(
        self, old_logprobs: Tensor, new_logprobs: Tensor, advantages: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        """Return the clipped objective, to be minimised."""
        per_token = clipped_surrogate(new_logprobs - old_logprobs, advantages, clip=float(self.config.clip))  # pyright: ignore
        return masked_mean(per_token, None if mask is None else mask.bool())

    def train_step(
        self, prompts: Sequence[str], num_epochs_per_batch: int = 4, max_length: int = 150, temperature: float = 1.0
    ) -> dict[str, float]:
        """Sample, score and learn once; return policy_loss, value_loss, kl_divergence, mean_reward, mean_advantage."""
        _, responses = self.generate_responses(prompts, max_length, temperature)
        rewards = self.compute_rewards(prompts, responses).numpy().astype(np.float64)
        batch = lay_out(responses)
        in_loss, exact = self.kl_in == "loss", self.kl == "exact"
        choices = {"exact_in_reward": exact and not in_loss, "exact_in_loss": exact and in_loss}
        consult(self.policy, batch, **choices, rescore=False, values=self.value_model is not None)
        beta = 0.0 if in_loss else self.kl_penalty
        bad = ~np.isfinite(rewards)
        reward = token_rewards(batch, np.where(bad, 0.0, rewards), beta=beta, decay=self.config.gamma * self.config.lam)
        kl = float(np.where(batch.valid, batch.log_prob - batch.ref_log_prob, 0.0).sum() / max(1, batch.valid.sum()))
        batch.valid[:, bad] = False
        self.learner.config = self.config.replace(epochs=num_epochs_per_batch)
        version = self.learner.policy_version
        report = self.learner.update(to_rollout(batch, reward, version=version, kl_in_loss=in_loss, stats={}))
        self.step += 1
        mean = float(rewards[~bad].mean()) if (~bad).any() else 0.0
        result = {"policy_loss": report.policy_loss, "value_loss": report.value_loss, "kl_divergence": kl}
        result["mean_reward"] = mean
        for name, value in zip(HISTORY, (*result.values(), mean), strict=True):
            self.stats[name].append(value)
        return result | {"mean_advantage": report.advantage_mean}

    def train(
        self,
        prompts: Sequence[str],
        num_steps: int = 100,
        batch_size: int = 4,
        num_epochs_per_batch: int = 4,
        max_length: int = 150,
        temperature: float = 1.0,
        checkpoint_dir: str | Path | None = None,
        checkpoint_freq: int = 10,
    ) -> dict[str, Any]:
        """Train on random batches of prompts; return the history and the final numbers."""
        if not prompts:
            raise ConfigError("there are no prompts to train on")
        for _ in range(num_steps):
            batch = self.shuffle.sample(list(prompts), min(batch_size, len(prompts)))
            self.train_step(batch, num_epochs_per_batch, max_length, temperature)
            if checkpoint_dir is not None and self.step % checkpoint_freq == 0:
                self.save_checkpoint(checkpoint_dir)
        last = {name: values[-num_steps:] for name, values in self.stats.items()}
        return {
            "training_history": last,
            "final_stats": self.get_statistics(),
            "final_avg_reward": float(np.mean(last["mean_rewards"][-10:])),
            "final_kl_divergence": last["kl_divergences"][-1],
        }

    def save_checkpoint(self, path: str | Path, step: int | None = None) -> Path:
        """Write everything needed to resume to `path/<step>`, without pickle."""
        state = self.shuffle.getstate()
        progress = {
            "step": self.step,
            "stats": self.stats,
            "generator": self.generator.get_state(),
            "shuffle": {"version": state[0], "words": np.array(state[1], dtype=np.uint64), "gauss": state[2]},
        }
        weights = {name: x.clone() for name, x in self.policy.state_dict().items()}
        parts = {"weights": weights, **self.learner.state(), "trainer": progress}
        return save_checkpoint(Path(path), self.step if step is None else step, parts)

    def load_checkpoint(self, path: str | Path) -> int:
        """Resume from a checkpoint, or from the newest in a directory of them; return its step."""
        if not Path(path).exists():
            raise CheckpointMissing(f"no checkpoint at {path}")
        parts = load_checkpoint(Path(path)).parts
        load_weights(self.policy, parts["weights"])
        self.learner.set_state(parts)
        progress = parts["trainer"]
        self.step = progress["step"]
        self.stats = {name: [float(x) for x in values] for name, values in progress["stats"].items()}
        self.generator.set_state(torch.as_tensor(np.array(progress["generator"])))
        shuffle = progress["shuffle"]
        self.shuffle.setstate((shuffle["version"], tuple(int(w) for w in shuffle["words"]), shuffle["gauss"]))
        return self.step

    def get_statistics(self) -> dict[str, Any]:
        """Return the history and the mean of each of its lists."""
        averages = {f"avg_{name}": float(np.mean(values)) if values else 0.0 for name, values in self.stats.items()}
        return {**{name: list(values) for name, values in self.stats.items()}, **averages, "steps": self.step}


def _require_apart(policy: nn.Module, other: nn.Module, name: str) -> None:
    """Raise if two models share weights: training one would change the other."""
    pointers = {p.data_ptr() for p in policy.parameters()}
    shared = [n for n, p in other.named_parameters() if p.data_ptr() in pointers and p.numel()]
    if shared:
        raise ConfigError(
            f"{name} shares {shared[0]} with the policy: training one would change the other. "
            "RewardModel and ValueModel copy the model they are given"
        )
