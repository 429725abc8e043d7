"""Directive-023's `PPOTrainer`: choose a mutation for an embedding, store its reward, learn. Thin over `Learner`."""

from __future__ import annotations

import hashlib
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from surefoot.compat.directive023.network import EmbeddingNetwork
from surefoot.data.experience import RecordedStep, rollout_of
from surefoot.data.spaces import Box, Discrete
from surefoot.decide.prompts.mutations import WIRE_MUTATIONS
from surefoot.errors import ConfigError, NonFiniteValue, ShapeError
from surefoot.learn.checkpoint.checkpoint import load_checkpoint, save_checkpoint
from surefoot.learn.config import PPOConfig as LearnerConfig
from surefoot.learn.learner import Learner
from surefoot.learn.report import UpdateReport
from surefoot.learn.schedule import StepDecay
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.nets.policy import PolicyInput, load_weights

Reward = Callable[[str, str], tuple[float, str, bool]]
"""(prompt, mutation) → (reward, next prompt, whether the episode is over)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PPOConfig:
    """Directive-023's settings and defaults."""

    input_dim: int = 1536
    action_dim: int = 5
    hidden_dim: int = 256
    learning_rate: float = 3e-4
    gamma: float = 0.99
    gae_lambda: float = 0.95
    eps_clip: float = 0.2
    value_clip: float | None = 0.2
    entropy_coef: float = 0.01
    value_coef: float = 0.5
    max_grad_norm: float = 0.5
    n_epochs: int = 4
    batch_size: int = 64
    buffer_size: int = 2048
    """Experiences kept for the next update; the oldest are dropped."""
    min_buffer_size: int = 128
    """Smallest number of experiences for an update."""
    weight_decay: float = 0.01
    seed: int = 0
    allow_stateful_norm: bool = False
    """Use BatchNorm and dropout as in Directive-023. The ratio is then not 1 at the first step; the doctor reports it."""

    def __post_init__(self) -> None:
        for name in ("input_dim", "action_dim", "hidden_dim", "buffer_size", "min_buffer_size"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")

    def learner(self) -> LearnerConfig:
        """Return the same settings as a config of the engine."""
        same = ("gamma", "value_clip", "max_grad_norm", "weight_decay", "seed")
        names = dict(zip(same, same, strict=True)) | {
            "lam": "gae_lambda",
            "clip": "eps_clip",
            "ent_coef": "entropy_coef",
        }
        names |= {"vf_coef": "value_coef", "epochs": "n_epochs", "minibatch_size": "batch_size"}
        names |= {"min_samples": "min_buffer_size", "rollout_steps": "buffer_size"}
        values: dict[str, Any] = {name: getattr(self, original) for name, original in names.items()}
        # Directive-023's StepLR(step_size=100, gamma=0.9).
        return LearnerConfig(lr=StepDecay(self.learning_rate, 100, 0.9), optimizer="adamw", envs=1, **values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Experience:
    """One mutation and its reward, as a client reports it."""

    state: np.ndarray
    action: int
    reward: float
    next_state: np.ndarray
    done: bool
    """The episode terminated; False at its last step means that it was truncated."""
    log_prob: float
    value: float
    policy_version: int = 0


class PPOTrainer:
    """A policy that chooses mutations for embeddings, and the experiences for its next update."""

    def __init__(self, config: PPOConfig | None = None) -> None:
        self.config = config or PPOConfig()
        c = self.config
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(c.seed)
            net = EmbeddingNetwork({"obs": c.input_dim}, c.action_dim, c.hidden_dim, stateful=c.allow_stateful_norm)
        settings = NetConfig(allow_stateful_norm=c.allow_stateful_norm)
        obs, action = {"obs": Box((c.input_dim,))}, Discrete(c.action_dim)
        self.policy = ActorCritic(obs, action, settings, network=net, seed=c.seed)
        self.learner = Learner(self.policy, c.learner())
        self.generator = torch.Generator().manual_seed(c.seed)
        self.buffer: deque[Experience] = deque(maxlen=c.buffer_size)
        self.episodes = 0
        self._rewards: deque[float] = deque(maxlen=100)
        self._best = -math.inf
        self._reports: deque[UpdateReport] = deque(maxlen=10)

    def select_action(self, embedding: Sequence[float] | np.ndarray, deterministic: bool = False) -> dict[str, Any]:
        """Return {action, mutation_type, log_prob, value} for one embedding."""
        inputs = PolicyInput(obs={"obs": torch.from_numpy(self._checked(embedding)[None])})
        self.policy.eval()
        with torch.no_grad():
            out = self.policy.act(inputs, generator=self.generator, deterministic=deterministic)
        action = int(out.action[0])
        numbers = {"log_prob": float(out.log_prob[0]), "value": float(out.value[0])}
        return {"action": action, "mutation_type": mutation_name(action), **numbers}

    def get_distribution(self, embedding: Sequence[float] | np.ndarray) -> dict[str, Any]:
        """Return {probabilities, mutation_types} for one embedding."""
        obs = {"obs": torch.from_numpy(self._checked(embedding)[None])}
        self.policy.eval()
        with torch.no_grad():
            logits = self.policy.network.forward(obs)[0][0]
        names = [mutation_name(i) for i in range(self.config.action_dim)]
        return {"probabilities": torch.softmax(logits.double(), 0).tolist(), "mutation_types": names}

    def store_experience(self, experience: Experience) -> int:
        """Store an experience and return how many are stored. Raise if it is not finite or does not fit the policy."""
        numbers = (experience.reward, experience.log_prob, experience.value)
        if not all(math.isfinite(x) for x in numbers):
            raise NonFiniteValue(f"reward, log_prob and value are {numbers}; all of them must be finite")
        if not 0 <= experience.action < self.config.action_dim:
            raise ConfigError(f"action is {experience.action}; it must be 0 to {self.config.action_dim - 1}")
        self._checked(experience.state)
        self._checked(experience.next_state)
        self.buffer.append(experience)
        self._rewards.append(experience.reward)
        self._best = max(self._best, experience.reward)
        self.episodes += experience.done
        return len(self.buffer)

    def update(self) -> UpdateReport | None:
        """Learn from the stored experiences and drop them. Return None if there are too few."""
        if len(self.buffer) < self.config.min_buffer_size:
            return None
        rollout = rollout_of(self._chains())
        self.buffer.clear()
        self.policy.train()  # for BatchNorm and dropout, with `allow_stateful_norm`
        report = self.learner.update(rollout)
        self._reports.append(report)
        return report

    def train_episode(
        self,
        prompts: Sequence[str],
        get_embedding: Callable[[str], Sequence[float] | np.ndarray],
        get_reward: Reward,
        max_steps: int = 10,
    ) -> dict[str, Any]:
        """Mutate each prompt until its episode is over or for `max_steps`; update if there are enough experiences.

        Returns:
            {episode, avg_reward, max_reward, min_reward, actions}, and the update's metrics if there was one.
        """
        rewards: list[float] = []
        actions: list[int] = []
        for first in prompts:
            prompt, state = first, self._checked(get_embedding(first))
            for _ in range(max_steps):
                chosen = self.select_action(state)
                reward, prompt, done = get_reward(prompt, chosen["mutation_type"])
                after = self._checked(get_embedding(prompt))
                self.store_experience(
                    Experience(
                        state=state,
                        reward=reward,
                        next_state=after,
                        done=done,
                        policy_version=self.learner.policy_version,
                        **{name: chosen[name] for name in ("action", "log_prob", "value")},
                    )
                )
                rewards.append(reward)
                actions.append(chosen["action"])
                state = after
                if done:
                    break
        report = self.update()
        metrics = {} if report is None else update_stats(report)
        spread = {"avg_reward": float(np.mean(rewards)), "max_reward": max(rewards), "min_reward": min(rewards)}
        return {"episode": self.episodes, **spread, "actions": actions, **metrics}

    def get_stats(self) -> dict[str, Any]:
        """Return means of the last rewards and updates; {"message": …} before there are any."""
        if not self._rewards:
            return {"message": "No training data yet"}
        names = {"policy_loss": "policy_loss", "value_loss": "value_loss", "entropy": "entropy", "kl": "approx_kl"}
        means = {
            f"avg_{name}": float(np.mean([getattr(report, metric) for report in self._reports]))
            if self._reports
            else 0.0
            for name, metric in names.items()
        }
        totals = {"total_updates": self.learner.updates, "total_episodes": self.episodes}
        return {**totals, "avg_reward": float(np.mean(self._rewards)), "max_reward": self._best, **means}

    def save(self, path: Path | str) -> Path:
        """Write a checkpoint directory under `path` (weights, optimizer, counters; no pickle) and return it."""
        weights = {name: x.detach().clone() for name, x in self.policy.state_dict().items()}
        state = {
            "config": asdict(self.config),
            "episodes": self.episodes,
            "rewards": list(self._rewards),
            "best": self._best if math.isfinite(self._best) else None,
            "generator": self.generator.get_state().numpy(),
        }
        parts = {"weights": weights, **self.learner.state(), "prompts": state}
        return save_checkpoint(Path(path), self.learner.updates, parts)

    def load(self, path: Path | str) -> None:
        """Restore what `save` wrote; the sizes must be the same."""
        parts: dict[str, Any] = load_checkpoint(Path(path)).parts
        state = parts["prompts"]
        load_weights(self.policy, parts["weights"])
        self.learner.set_state(parts)
        self.episodes, self._best = int(state["episodes"]), -math.inf if state["best"] is None else float(state["best"])
        self._rewards = deque((float(x) for x in state["rewards"]), maxlen=100)
        self.generator.set_state(torch.from_numpy(np.array(state["generator"], np.uint8)))
        self.buffer.clear()
        self._reports.clear()

    def _checked(self, embedding: Sequence[float] | np.ndarray) -> np.ndarray:
        row = np.asarray(embedding, np.float32)
        if row.shape != (self.config.input_dim,):
            raise ShapeError(f"the embedding is {list(row.shape)}; this policy takes {[self.config.input_dim]}")
        if not np.isfinite(row).all():
            raise NonFiniteValue("the embedding contains NaN or infinity")
        return row

    def _chains(self) -> list[list[RecordedStep]]:
        """Return the experiences as episodes: one follows another whose next state is its state."""
        chains: list[list[Experience]] = []
        open_ends: dict[bytes, list[int]] = {}
        for experience in self.buffer:
            waiting = open_ends.get(fingerprint(experience.state), [])
            number = waiting.pop(0) if waiting else len(chains)
            if number == len(chains):
                chains.append([])
            chains[number].append(experience)
            if not experience.done:
                open_ends.setdefault(fingerprint(experience.next_state), []).append(number)
        return [self._recorded(chain) for chain in chains]

    def _recorded(self, chain: list[Experience]) -> list[RecordedStep]:
        last, ahead = chain[-1], 0.0
        if not last.done:
            self.policy.eval()
            with torch.no_grad():
                row = torch.from_numpy(np.asarray(last.next_state, np.float32)[None])
                ahead = float(self.policy.value(PolicyInput(obs={"obs": row}))[0])
        return [
            RecordedStep(
                obs={"obs": np.asarray(e.state, np.float32)},
                action=e.action,
                log_prob=e.log_prob,
                value=e.value,
                policy_version=e.policy_version,
                reward=e.reward,
                terminated=e.done,
                truncated=e is last and not e.done,
                bootstrap=ahead,
            )
            for e in chain
        ]


def fingerprint(state: Sequence[float] | np.ndarray) -> bytes:
    """Return a hash of an embedding's float32 bytes."""
    return hashlib.sha256(np.ascontiguousarray(state, np.float32).tobytes()).digest()


def mutation_name(action: int) -> str:
    """Return the name of a mutation; actions beyond the known mutations are named by their number."""
    return WIRE_MUTATIONS[action] if action < len(WIRE_MUTATIONS) else f"action-{action}"


def update_stats(report: UpdateReport) -> dict[str, Any]:
    """Return an update's metrics under Directive-023's names."""
    names = ("policy_loss", "value_loss", "entropy", "approx_kl", "clip_fraction")
    renamed = {"learning_rate": report.lr, "buffer_size": report.samples, "update_count": report.update}
    return {name: getattr(report, name) for name in names} | renamed
