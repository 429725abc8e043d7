"""Behaviour cloning: a policy made to choose what was chosen in recorded episodes, before it learns by itself."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from surefoot.core.batch import Batch
from surefoot.core.losses import value_loss
from surefoot.core.masked import masked_mean
from surefoot.data.trajectory import Recording, Trajectory
from surefoot.errors import ConfigError, RecordingError
from surefoot.learn.config import PPOConfig
from surefoot.learn.minibatches import split_sizes
from surefoot.learn.optimizer import Optimizer
from surefoot.nets.continuous_heads import GaussianHead, StateDependentHead, TanhHead
from surefoot.nets.heads import DiscreteHead, MultiDiscreteHead
from surefoot.nets.policy import Policy, PolicyInput
from surefoot.train.collect.reward import RewardScaler

NEAREST_TO_THE_BOUND = 0.999
"""Share of the half-width up to which a recorded action is taken back through the tanh; at 1 it would be infinite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneConfig:
    """How episodes are cloned. What matters in them is likelihood; the critic may learn their returns on the side."""

    epochs: int = 200
    """Passes over the episodes, at most."""
    lr: float = 3e-3
    """Learning rate of Adam."""
    minibatch_size: int = 256
    """Steps in one gradient step."""
    validation: float = 0.1
    """Share of the episodes that is only looked at: the weights kept are those to which they were likeliest. 0 for none."""
    patience: int = 20
    """Stop after this many epochs in which that did not get better."""
    ent_coef: float = 0.0
    """Weight of an entropy bonus, which leaves the clone something to explore with."""
    least_std: float = 0.2
    """A Gaussian's deviation is held above this: a clone of a deterministic expert would have none left to learn with."""
    vf_coef: float = 0.5
    """Weight of the critic's error on discounted returns; 0 leaves the critic as it is."""
    gamma: float = 0.99
    """Discount of those returns: the learner's own."""

    def __post_init__(self) -> None:
        for name in ("epochs", "minibatch_size", "patience"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 1")
        for name in ("lr", "least_std"):
            if not getattr(self, name) > 0.0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be above 0")
        for name in ("ent_coef", "vf_coef"):
            if not getattr(self, name) >= 0.0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be at least 0")
        if not 0.0 <= self.validation < 1.0 or not 0.0 <= self.gamma <= 1.0:
            raise ConfigError(
                f"validation is {self.validation} and gamma is {self.gamma}; they are 0 to below 1, and 0 to 1"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneReport:
    """One pass over the recorded steps."""

    epoch: int
    steps: int
    """Steps learned from."""
    log_prob: float
    """Mean log-prob of what was chosen, over the pass."""
    entropy: float
    value_loss: float
    """Half the mean squared error of the critic, over the mean square of the returns; 0 if it does not learn."""
    validation_log_prob: float | None
    """Of the episodes that are only looked at, after the pass."""
    agreement: float | None
    """Share of those steps in which the likeliest choice is the one that was made; None for real-valued actions."""
    best: bool
    """The weights of now are the ones to keep so far."""
    stopped: bool
    """Patience has run out: this is the last pass."""


def clone(
    policy: Policy,
    episodes: Recording | Sequence[Trajectory],
    config: CloneConfig | None = None,
    *,
    generator: torch.Generator,
    reward_scale: float = 1.0,
    device: str | torch.device = "cpu",
) -> Generator[CloneReport]:
    """Learn to choose as in `episodes`, a report per pass. Whoever iterates may stop: the best weights so far are kept.

    `generator` shuffles. Rewards are divided by `reward_scale`, for a critic that will meet scaled ones. Observation
    statistics, if the policy keeps any, take all of the learned episodes in first.
    """
    config, where = config or CloneConfig(), torch.device(device)
    known = list(episodes.episodes if isinstance(episodes, Recording) else episodes)
    if not known:
        raise RecordingError("there is no episode to clone; one is the least")
    learned, watched = _split(known, config.validation, generator)
    policy.absorb({name: np.concatenate([e.obs[name][:-1] for e in learned]) for name in learned[0].obs})
    data = _Steps(policy, learned, config, reward_scale, where)
    judge = _Steps(policy, watched or learned, config, reward_scale, where)
    optimizer = Optimizer(policy.parameters(), PPOConfig())
    best, kept, waited = -math.inf, _copy(policy), 0
    try:
        for epoch in range(1, config.epochs + 1):
            log_prob, entropy, critic = _one_pass(policy, data, optimizer, config, generator)
            if not math.isfinite(log_prob + critic):
                raise RecordingError(
                    f"pass {epoch} left the finite; a smaller lr than {config.lr} or mended episodes help"
                )
            said = judge.log_prob(policy)
            better = said > best
            if better:
                best, kept = said, _copy(policy)
            waited = 0 if better else waited + 1
            stopped = waited >= config.patience and bool(watched)
            yield CloneReport(
                epoch=epoch,
                steps=data.steps,
                log_prob=log_prob,
                entropy=entropy,
                value_loss=critic,
                validation_log_prob=said if watched else None,
                agreement=judge.agreement(policy),
                best=better,
                stopped=stopped,
            )
            if stopped:
                break
    finally:
        policy.load_state_dict(kept)


def reward_scale_of(episodes: Sequence[Trajectory], scaler: RewardScaler) -> float:
    """The deviation of the discounted return in `episodes`, after `scaler` has counted them in; it keeps its streams."""
    running = scaler.running
    scaler.running = np.zeros(1)
    for episode in episodes:
        ended = np.zeros((episode.steps, 1), bool)
        ended[-1] = True
        scaler.scale(episode.reward[:, None].astype(np.float64), ended, np.ones_like(ended))
    scaler.running = running
    return float(np.sqrt(scaler.var + 1e-8))


def stored_action(policy: Policy, action: np.ndarray) -> np.ndarray:
    """[T, …] as a rollout would keep what the world took: the inverse of `Policy.env_action`."""
    head: Any = getattr(policy, "head", None)
    match head:
        case DiscreteHead():
            return action.astype(np.int64) - head.start
        case MultiDiscreteHead():
            return action.astype(np.int64).reshape(len(action), -1)
        case TanhHead():
            share = (action.reshape(len(action), *head.shape) - head.middle) / head.half_width
            held = np.clip(share, -NEAREST_TO_THE_BOUND, NEAREST_TO_THE_BOUND)
            return np.arctanh(held).reshape(len(action), -1).astype(np.float32)
        case GaussianHead() | StateDependentHead():
            return action.reshape(len(action), -1).astype(np.float32)
        case _:
            raise RecordingError(
                f"a policy with the head {type(head).__name__} cannot be cloned into: nothing here knows how it would "
                "have kept a recorded action"
            )


class _Steps:
    """Episodes laid out as the policy evaluates them: every step a column, or every episode for one with a memory.

    An episode's column is one row longer than its steps: there the critic judges where it ended.
    """

    def __init__(
        self, policy: Policy, episodes: Sequence[Trajectory], config: CloneConfig, scale: float, device: torch.device
    ) -> None:
        self.episodes, self.gamma, self.device = episodes, config.gamma, device
        self.sequential = policy.sequential
        self.rewards = [e.reward / scale for e in episodes]
        self.steps = sum(e.steps for e in episodes)
        actions = [stored_action(policy, e.action) for e in episodes]
        masks = [e.action_mask for e in episodes if e.action_mask is not None]
        if masks and len(masks) < len(episodes):
            raise RecordingError("some episodes have action masks and some have none; all or none must")
        put = self._pad if self.sequential else self._row
        zeros = put([np.zeros(e.steps, np.float32) for e in episodes])
        self.valid = put([np.ones(e.steps, bool) for e in episodes])
        self.batch = Batch(
            obs={name: put([e.obs[name][: e.steps + self.sequential] for e in episodes]) for name in episodes[0].obs},
            action=put(actions),
            log_prob=zeros,
            value=zeros,
            advantage=zeros,
            target=zeros,
            valid=self.valid if self.sequential else None,
            action_mask=put(masks, fill=True) if masks else None,
            start=put([np.arange(e.steps) == 0 for e in episodes]) if self.sequential else None,
            context=policy.initial_context(len(episodes)) if self.sequential else {},
        )
        self.square: float | None = None
        """Mean square of the first returns: what the critic's loss is measured in, so that it cannot drown the policy's."""
        self.last = {name: self._load(np.stack([e.obs[name][-1] for e in episodes])) for name in episodes[0].obs}

    def set_targets(self, policy: Policy) -> None:
        """Discounted returns; an episode that did not terminate goes on with what the critic says of its end."""
        ahead = self._ahead(policy)
        returns: list[np.ndarray] = []
        for episode, reward, after in zip(self.episodes, self.rewards, ahead, strict=True):
            sums, following = np.empty(len(reward), np.float32), 0.0 if episode.terminated else float(after)
            for t in range(len(reward) - 1, -1, -1):
                following = float(reward[t]) + self.gamma * following
                sums[t] = following
            returns.append(sums)
        self.batch.target = self._pad(returns) if self.sequential else self._row(returns)
        if self.square is None:
            self.square = float(np.mean(np.square(np.concatenate(returns), dtype=np.float64))) or 1.0

    @torch.no_grad()
    def _ahead(self, policy: Policy) -> np.ndarray:
        """[episodes]: the worth of where each ended."""
        if not self.sequential:
            return policy.value(PolicyInput(obs=self.last)).cpu().numpy()
        value = policy.evaluate(self.batch).value.cpu().numpy()
        return np.array([value[e.steps, i] for i, e in enumerate(self.episodes)])

    @torch.no_grad()
    def log_prob(self, policy: Policy) -> float:
        """Mean over all steps, in pieces that fit."""
        return (
            sum(float(policy.evaluate(part).log_prob[_counts(part)].double().sum()) for part in self._parts())
            / self.steps
        )

    @torch.no_grad()
    def agreement(self, policy: Policy) -> float | None:
        """Share of steps whose likeliest choice is the one that was made."""
        if self.sequential or not policy.choices():
            return None
        hits, nothing = 0, torch.Generator(self.device)
        for part in self._parts():
            seen = PolicyInput(
                obs={name: x[0] for name, x in part.obs.items()},
                action_mask=None if part.action_mask is None else part.action_mask[0],
            )
            same = policy.act(seen, generator=nothing, deterministic=True).action == part.action[0]
            hits += int(same.reshape(len(same), -1).all(dim=1).sum())
        return hits / self.steps

    def _parts(self, size: int = 8192) -> Generator[Batch]:
        width = max(1, size // self.batch.advantage.shape[0])
        for begin in range(0, self.batch.columns, width):
            yield self.batch.slice(begin, min(begin + width, self.batch.columns))

    def _load(self, array: np.ndarray) -> Tensor:
        array = array.astype(np.float32) if array.dtype == np.float64 else array
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

    def _row(self, each: Sequence[np.ndarray], *, fill: Any = 0) -> Tensor:
        return self._load(np.concatenate(each)[None])

    def _pad(self, each: Sequence[np.ndarray], *, fill: Any = 0) -> Tensor:
        longest = 1 + max(e.steps for e in self.episodes)
        padded = np.full((longest, len(each), *each[0].shape[1:]), fill, each[0].dtype)
        for i, x in enumerate(each):
            padded[: len(x), i] = x
        return self._load(padded)


def _one_pass(
    policy: Policy, data: _Steps, optimizer: Optimizer, config: CloneConfig, generator: torch.Generator
) -> tuple[float, float, float]:
    """Mean log-prob, entropy and critic's loss over one shuffled pass."""
    if config.vf_coef > 0.0:
        data.set_targets(policy)
    batch, sums = data.batch, torch.zeros(3, dtype=torch.float64, device=data.device)
    width = max(1, config.minibatch_size // batch.advantage.shape[0])
    shuffled, begin = batch.take(torch.randperm(batch.columns, generator=generator).to(data.device)), 0
    for size in split_sizes(batch.columns, width):
        part, begin = shuffled.slice(begin, begin + size), begin + size
        said, counts = policy.evaluate(part), _counts(part)
        log_prob, entropy = masked_mean(said.log_prob, part.valid), masked_mean(said.entropy, part.valid)
        loss, critic = -log_prob, torch.zeros_like(log_prob)
        if config.ent_coef > 0.0:
            loss = loss - config.ent_coef * entropy
        if config.vf_coef > 0.0:
            assert data.square is not None
            error = value_loss(said.value, part.target, part.value, clip=None)
            critic = masked_mean(error, part.valid) / data.square
            loss = loss + config.vf_coef * critic
        optimizer.zero_grad()
        loss.backward()
        optimizer.clip(0.5)
        optimizer.step(config.lr)
        _hold_std(policy, config.least_std)
        sums += torch.stack([log_prob, entropy, critic]).detach().double() * counts.sum()
    log_prob, entropy, critic = (sums / data.steps).tolist()
    return log_prob, entropy, critic


def _counts(part: Batch) -> Tensor:
    return torch.ones_like(part.advantage, dtype=torch.bool) if part.valid is None else part.valid


@torch.no_grad()
def _hold_std(policy: Policy, least: float) -> None:
    for module in policy.modules():
        if isinstance(module, GaussianHead):
            module.log_std.clamp_(min=math.log(least))


def _copy(policy: Policy) -> dict[str, Tensor]:
    return {name: x.detach().clone() for name, x in policy.state_dict().items()}


def _split(
    episodes: list[Trajectory], share: float, generator: torch.Generator
) -> tuple[list[Trajectory], list[Trajectory]]:
    """Episodes to learn from and episodes to look at; whole ones, as neighbouring steps know too much of each other."""
    count = min(len(episodes) - 1, round(share * len(episodes)) or int(share > 0.0))
    order = torch.randperm(len(episodes), generator=generator).tolist()
    return [episodes[i] for i in order[count:]], [episodes[i] for i in order[:count]]
