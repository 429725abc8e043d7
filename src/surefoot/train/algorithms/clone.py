"""Behaviour cloning: trains a policy to choose the recorded actions, before it learns by itself."""

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
from surefoot.data.kinds import NOT_NEGATIVE, POSITIVE, UNIT, Interval, real
from surefoot.data.knobs import Config, documented, knob
from surefoot.data.trajectory import Recording, Trajectory
from surefoot.errors import RecordingError
from surefoot.learn.config import AT_LEAST_ONE, PPOConfig
from surefoot.learn.minibatches import split_sizes
from surefoot.learn.optimizer import Optimizer
from surefoot.nets.continuous_heads import GaussianHead, StateDependentHead, TanhHead
from surefoot.nets.heads import DiscreteHead, MultiDiscreteHead
from surefoot.nets.policy import Policy, PolicyInput
from surefoot.train.collect.offpolicy import PIECE
from surefoot.train.collect.reward import RewardScaler

# A recorded action at the bound would need an infinite argument of tanh; actions are clipped to this share of the bound.
CLOSEST_TO_BOUND = 0.999
# Gradient norm limit, PPO's default: cloning then leaves the weights at a scale that PPO continues with.
MAX_GRAD_NORM = 0.5


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class CloneConfig(Config):
    """How episodes are cloned: maximum likelihood of the actions, and optionally a critic of their returns."""

    epochs: int = knob(200, "Most passes over the episodes.", AT_LEAST_ONE)
    lr: float = knob(3e-3, "Learning rate of Adam.", real(POSITIVE))
    minibatch_size: int = knob(256, "Steps in one gradient step.", AT_LEAST_ONE)
    validation: float = knob(
        0.1,
        "Share of the episodes held out; the weights with the highest likelihood on them are kept. 0 for none.",
        real(Interval(0, 1, open_high=True)),
    )
    patience: int = knob(20, "Stop after this many epochs without improvement on the held-out episodes.", AT_LEAST_ONE)
    ent_coef: float = knob(0.0, "Weight of an entropy bonus, so that the clone still explores.", real(NOT_NEGATIVE))
    least_std: float = knob(
        0.2, "Lower limit of a Gaussian's deviation: the clone of a deterministic expert has none left.", real(POSITIVE)
    )
    vf_coef: float = knob(
        0.5, "Weight of the critic's error on discounted returns; 0: not trained.", real(NOT_NEGATIVE)
    )
    gamma: float = knob(0.99, "Discount of those returns; use the learner's.", real(UNIT))


@dataclass(frozen=True, slots=True, kw_only=True)
class CloneReport:
    """One pass over the recorded steps."""

    epoch: int
    steps: int
    """Steps in the pass."""
    log_prob: float
    """Mean log-prob of the recorded actions over the pass."""
    entropy: float
    value_loss: float
    """Half the mean squared error of the critic, divided by the mean square of the returns; 0 if it is not trained."""
    validation_log_prob: float | None
    """Mean log-prob of the held-out episodes after the pass."""
    agreement: float | None
    """Share of those steps whose most likely action is the recorded one; None for real-valued actions."""
    best: bool
    """Whether these weights are the best so far."""
    stopped: bool
    """Whether this is the last pass, because patience has run out."""


def clone(
    policy: Policy,
    episodes: Recording | Sequence[Trajectory],
    config: CloneConfig | None = None,
    *,
    generator: torch.Generator,
    reward_scale: float = 1.0,
    device: str | torch.device = "cpu",
) -> Generator[CloneReport]:
    """Train `policy` to choose as in `episodes`; yield one report per pass. The best weights are kept if you stop early.

    Args:
        policy: The policy to train.
        episodes: A recording or its episodes.
        config: Settings of the cloning.
        generator: Shuffles and splits the episodes.
        reward_scale: Rewards are divided by it, for a critic that will see scaled rewards.
        device: Where the policy computes.
    """
    config, where = config or CloneConfig(), torch.device(device)
    trajectories = list(episodes.episodes if isinstance(episodes, Recording) else episodes)
    if not trajectories:
        raise RecordingError("there is no episode to clone; pass at least one")
    # Complete episodes are held out, not steps: neighbouring steps are too similar to test on.
    order = torch.randperm(len(trajectories), generator=generator).tolist()
    count = min(len(order) - 1, round(config.validation * len(order)) or int(config.validation > 0.0))
    learned, held_out = [trajectories[i] for i in order[count:]], [trajectories[i] for i in order[:count]]
    policy.absorb({name: np.concatenate([e.obs[name][:-1] for e in learned]) for name in learned[0].obs})
    data = _Steps(policy, learned, config, reward_scale, where)
    test = _Steps(policy, held_out or learned, config, reward_scale, where)
    optimizer = Optimizer(policy.parameters(), PPOConfig())
    best, best_weights, waited = -math.inf, _copy(policy), 0
    # `finally` below: the best weights are restored also if the caller stops iterating or a pass fails.
    try:
        for epoch in range(1, config.epochs + 1):
            log_prob, entropy, critic = _one_pass(policy, data, optimizer, config, generator)
            if not math.isfinite(log_prob + critic):
                raise RecordingError(
                    f"pass {epoch} of cloning is not finite; use an lr below {config.lr}, or fix the episodes"
                )
            likelihood = test.log_prob(policy)
            better = likelihood > best
            if better:
                best, best_weights = likelihood, _copy(policy)
            waited = 0 if better else waited + 1
            # Without held-out episodes the likelihood is that of training data, which does not show overfitting.
            stopped = waited >= config.patience and bool(held_out)
            yield CloneReport(
                epoch=epoch,
                steps=data.steps,
                log_prob=log_prob,
                entropy=entropy,
                value_loss=critic,
                validation_log_prob=likelihood if held_out else None,
                agreement=test.agreement(policy),
                best=better,
                stopped=stopped,
            )
            if stopped:
                break
    finally:
        policy.load_state_dict(best_weights)


def reward_scale_of(episodes: Sequence[Trajectory], scaler: RewardScaler) -> float:
    """Return the standard deviation of the discounted return after adding `episodes` to `scaler`."""
    # The episodes change the scaler's variance only; the running returns of the env's streams are restored afterwards.
    running = scaler.running
    scaler.running = np.zeros(1)
    for episode in episodes:
        ended = np.zeros((episode.steps, 1), bool)
        ended[-1] = True
        scaler.scale(episode.reward[:, None].astype(np.float64), ended, np.ones_like(ended))
    scaler.running = running
    return float(np.sqrt(scaler.var + 1e-8))


def stored_action(policy: Policy, action: np.ndarray) -> np.ndarray:
    """Return actions of the world, [T, …], as a rollout stores them: the inverse of `Policy.env_action`."""
    head: Any = getattr(policy, "head", None)
    match head:
        case DiscreteHead():
            return action.astype(np.int64) - head.start
        case MultiDiscreteHead():
            return action.astype(np.int64).reshape(len(action), -1)
        case TanhHead():
            share = (action.reshape(len(action), *head.shape) - head.middle) / head.half_width
            inside = np.clip(share, -CLOSEST_TO_BOUND, CLOSEST_TO_BOUND)
            return np.arctanh(inside).reshape(len(action), -1).astype(np.float32)
        case GaussianHead() | StateDependentHead():
            return action.reshape(len(action), -1).astype(np.float32)
        case _:
            raise RecordingError(
                f"a policy with the head {type(head).__name__} cannot be cloned: its form of a recorded action is unknown"
            )


class _Steps:
    """Episodes as a batch: one column per step, or one per episode for a policy with memory.

    An episode's column has one row more than steps, for the critic's value of the last observation.
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
        """Mean square of the first returns, the unit of the critic's loss: large returns must not dominate the policy's."""
        self.last = {name: self._load(np.stack([e.obs[name][-1] for e in episodes])) for name in episodes[0].obs}

    def set_targets(self, policy: Policy) -> None:
        """Compute discounted returns; a truncated episode is bootstrapped with the critic's value of its end."""
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
        """Return the critic's value of the last observation of each episode."""
        if not self.sequential:
            return policy.value(PolicyInput(obs=self.last)).cpu().numpy()
        value = policy.evaluate(self.batch).value.cpu().numpy()
        return np.array([value[e.steps, i] for i, e in enumerate(self.episodes)])

    @torch.no_grad()
    def log_prob(self, policy: Policy) -> float:
        sums = (policy.evaluate(part).log_prob[_counts(part)].double().sum() for part in self._parts())
        return sum(float(x) for x in sums) / self.steps

    @torch.no_grad()
    def agreement(self, policy: Policy) -> float | None:
        """Return the share of steps whose most likely action is the recorded one."""
        if self.sequential or not policy.choices():
            return None
        hits, unused = 0, torch.Generator(self.device)
        for part in self._parts():
            mask = None if part.action_mask is None else part.action_mask[0]
            inputs = PolicyInput(obs={name: x[0] for name, x in part.obs.items()}, action_mask=mask)
            same = policy.act(inputs, generator=unused, deterministic=True).action == part.action[0]
            hits += int(same.reshape(len(same), -1).all(dim=1).sum())
        return hits / self.steps

    def _parts(self) -> Generator[Batch]:
        # In pieces, so that memory does not grow with the recording.
        width = max(1, PIECE // self.batch.advantage.shape[0])
        for begin in range(0, self.batch.columns, width):
            yield self.batch.slice(begin, min(begin + width, self.batch.columns))

    def _load(self, array: np.ndarray) -> Tensor:
        # Recordings may be float64; the policy's weights are float32.
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
    """Return mean log-prob, entropy and critic's loss of one shuffled pass."""
    if config.vf_coef > 0.0:
        data.set_targets(policy)
    batch, sums = data.batch, torch.zeros(3, dtype=torch.float64, device=data.device)
    width = max(1, config.minibatch_size // batch.advantage.shape[0])
    shuffled, begin = batch.take(torch.randperm(batch.columns, generator=generator).to(data.device)), 0
    for size in split_sizes(batch.columns, width):
        part, begin = shuffled.slice(begin, begin + size), begin + size
        result, counts = policy.evaluate(part), _counts(part)
        log_prob, entropy = masked_mean(result.log_prob, part.valid), masked_mean(result.entropy, part.valid)
        loss, critic = -log_prob, torch.zeros_like(log_prob)
        if config.ent_coef > 0.0:
            loss = loss - config.ent_coef * entropy
        if config.vf_coef > 0.0:
            assert data.square is not None
            error = value_loss(result.value, part.target, part.value, clip=None)
            critic = masked_mean(error, part.valid) / data.square
            loss = loss + config.vf_coef * critic
        optimizer.zero_grad()
        loss.backward()
        optimizer.clip(MAX_GRAD_NORM)
        optimizer.step(config.lr)
        # Without the lower limit the deviation of a deterministic expert's clone shrinks to 0, and PPO could not explore.
        with torch.no_grad():
            for module in policy.modules():
                if isinstance(module, GaussianHead):
                    module.log_std.clamp_(min=math.log(config.least_std))
        sums += torch.stack([log_prob, entropy, critic]).detach().double() * counts.sum()
    log_prob, entropy, critic = (sums / data.steps).tolist()
    return log_prob, entropy, critic


def _counts(part: Batch) -> Tensor:
    return torch.ones_like(part.advantage, dtype=torch.bool) if part.valid is None else part.valid


def _copy(policy: Policy) -> dict[str, Tensor]:
    return {name: x.detach().clone() for name, x in policy.state_dict().items()}
