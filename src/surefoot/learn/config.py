"""The settings of PPO, each declared once: default, legal range, and the help for command line, docs and docstrings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from surefoot.data.kinds import (
    NOT_NEGATIVE,
    POSITIVE,
    UNIT,
    Interval,
    Kind,
    choice,
    flag,
    integer,
    matching,
    optional,
    real,
)
from surefoot.data.knobs import Config, Vocabulary, accept_former_names, documented, knob, read_texts
from surefoot.errors import ConfigError
from surefoot.learn.aliases import PPO_NAMES, canonical
from surefoot.learn.minibatches import minibatch_size_for
from surefoot.learn.presets import preset as preset_called
from surefoot.learn.schedule import Schedule
from surefoot.learn.schedule_text import extremes, parse_schedule, schedule_to_json

# SB3's batch_size.
DEFAULT_MINIBATCH_SIZE = 64


def scheduled(within: Interval) -> Kind:
    """Return the kind of numbers within an interval and schedules of them, which may end at an open bound (lin_3e-4)."""

    def accept(value: Any) -> float | Schedule:
        knob = parse_schedule(value)
        lowest, highest = extremes(knob)
        if highest not in within or lowest < within.low:
            raise ValueError(f"{knob} is not {within}")
        return knob

    legal = f"a number, {within}, or a schedule of such numbers that may end at {within.low:g}"
    return Kind("float | schedule", legal, accept, parse_schedule, schedule_to_json)


AT_LEAST_ONE = integer(Interval(1))


@accept_former_names
@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class PPOConfig(Config):
    """Settings of the learner. The defaults are SB3's; `PPOConfig.make` accepts the names of other libraries."""

    lr: float | Schedule = knob(
        3e-4,
        "Learning rate: how far one gradient step moves the weights, usually 1e-5 to 1e-2. "
        "A number, or a schedule: lin_3e-4 falls to 0 over the run, cos_3e-4 along a cosine, 0:3e-4,0.5:3e-4,1:0 by points.",
        scheduled(POSITIVE),
    )
    critic_lr_scale: float = knob(
        1.0,
        "Factor on lr for the weights that only the critic has.",
        real(POSITIVE),
    )
    gamma: float = knob(
        0.99,
        "Discount factor of a reward one step later, 0 to 1. 1/(1-gamma) is the horizon in steps: 100 at 0.99.",
        real(UNIT),
    )
    lam: float = knob(
        0.95,
        "λ of the advantage estimate, 0 to 1: 0 trusts the critic after one step, 1 trusts only the rewards. "
        "Lower is steadier, higher is less biased.",
        real(UNIT),
    )
    clip: float | Schedule = knob(
        0.2,
        "How far the probability of an action may move in one update before its gradient stops: "
        "the ratio is clipped to 1 ± clip. Usually 0.1 to 0.4; may be a schedule.",
        scheduled(POSITIVE),
    )
    dual_clip: float | None = knob(
        None,
        "Upper limit of the ratio of actions with a negative advantage (Ye et al. 2020). "
        "Usually 3; none sets no limit.",
        optional(real(Interval(1, open_low=True))),
    )
    value_clip: float | None = knob(
        None,
        "How far a value may move from the one at acting time, in units of the return (with normalize_value: of its "
        "deviation); none does not clip. Only useful if returns are of the order of 1.",
        optional(real(POSITIVE)),
    )
    epochs: int = knob(
        10,
        "Passes over each rollout. More learns more from the same steps, until the policy has moved too far.",
        AT_LEAST_ONE,
    )
    minibatch_size: int | None = knob(
        None,
        "Steps in one gradient step. Samples are split evenly, so that no small minibatch is left over. "
        "Unset, and with minibatches set, the count decides.",
        optional(AT_LEAST_ONE),
        shown=DEFAULT_MINIBATCH_SIZE,
    )
    minibatches: int | None = knob(
        None,
        "Minibatches per epoch, as an alternative to their size. With both set, the smaller minibatch is used.",
        optional(AT_LEAST_ONE),
    )
    sequence: int | None = knob(
        None,
        "For policies with memory: length of the sequences that minibatches are made of; none uses complete rollouts. "
        "Shorter sequences shuffle better, but gradients reach less far back.",
        optional(AT_LEAST_ONE),
    )
    burn_in: int = knob(
        0,
        "With sequence: steps before each sequence that are only replayed, so that its memory is computed with the "
        "current weights.",
        integer(NOT_NEGATIVE),
    )
    rollout_steps: int = knob(
        2048,
        "Steps taken in each env between two updates; rollout_steps times envs is the size of a rollout.",
        AT_LEAST_ONE,
    )
    envs: int = knob(
        1,
        "Envs that are stepped in parallel. More gives more varied rollouts and better use of the machine.",
        AT_LEAST_ONE,
    )
    ent_coef: float | Schedule = knob(
        0.0,
        "Weight of the entropy bonus, which keeps the policy exploring. Usually 0 to 0.02; may be a schedule.",
        scheduled(NOT_NEGATIVE),
    )
    vf_coef: float = knob(
        0.5,
        "Weight of the value loss (half the squared error) relative to the policy loss.",
        real(NOT_NEGATIVE),
    )
    kl_coef: float = knob(
        0.0,
        "Weight of the KL divergence (k3) from a fixed reference policy; 0 for none. "
        "Needs rollouts with the reference's log-probs.",
        real(NOT_NEGATIVE),
    )
    max_grad_norm: float = knob(
        0.5,
        "Limit of the gradient's norm over all weights; a very large number turns it off.",
        real(POSITIVE),
    )
    target_kl: float | None = knob(
        None,
        "Stops an update early once the KL divergence (k3) exceeds this times kl_stop_factor. "
        "Usually 0.01 to 0.05; none never stops.",
        optional(real(POSITIVE)),
    )
    kl_stop_factor: float = knob(
        1.5,
        "An update stops at this many times target_kl. SB3 has 1.5, CleanRL 1.",
        real(POSITIVE),
    )
    adaptive_kl: float | None = knob(
        None,
        "Desired KL divergence of an update. After one with less than half of it (mean k3) lr is multiplied by 1.5, "
        "after one with more than twice of it divided, within 1e-5 to 1e-2. Usually 0.01. "
        "With target_kl set too, an update that stopped early counts as too far.",
        optional(real(POSITIVE)),
    )
    normalize_value: bool = knob(
        False,
        "Normalize the critic's targets to mean 0 and deviation 1 (running statistics), so that it does not depend on the "
        "size of the rewards. Values are in units of the return everywhere else.",
        flag(),
    )
    temperature: float | Schedule = knob(
        1.0,
        "Divisor of the logits in training: above 1 explores more, below 1 less; lin_2_1 falls over the run. "
        "Discrete actions only. Evaluations and saved policies use 1.",
        scheduled(Interval(0.001)),
    )
    normalize_advantage: str = knob(
        "minibatch",
        "Normalize advantages to mean 0 and deviation 1 per minibatch, once per batch, or not (off).",
        choice("minibatch", "batch", "off", true="minibatch", false="off"),
    )
    optimizer: str = knob(
        "adam",
        "Optimization algorithm.",
        choice("adam", "adamw", "sgd", "rmsprop"),
    )
    weight_decay: float = knob(
        0.0,
        "Weight decay, decoupled from the gradient in adamw; 0 for none.",
        real(NOT_NEGATIVE),
    )
    adam_eps: float = knob(
        1e-5,
        "Added to the denominator of adam, adamw and rmsprop. PPO has always used 1e-5, not torch's 1e-8.",
        real(POSITIVE),
    )
    momentum: float = knob(
        0.0,
        "Share of the previous step in the next one, 0 to below 1; sgd and rmsprop only.",
        real(Interval(0, 1, open_high=True)),
    )
    seed: int = knob(
        0,
        "Seed of everything random: weights, envs, actions, minibatches.",
        integer(Interval(0, 2**63 - 1)),
    )
    device: str = knob(
        "auto",
        "Device of the networks: cpu, cuda, cuda:1, mps; auto uses a GPU if there is one.",
        matching(r"auto|cpu|(cuda|mps)(:\d+)?", "auto, cpu, cuda, mps, or one of several as in cuda:0"),
    )
    path: str = knob(
        "auto",
        "Implementation that learns: native (the C kernel), torch, or auto: the kernel if it supports the policy.",
        choice("auto", "native", "torch"),
    )
    min_samples: int = knob(
        2,
        "Fewest valid steps for an update; a smaller rollout is skipped, and the report contains the reason.",
        AT_LEAST_ONE,
    )
    max_policy_lag: int | None = knob(
        None,
        "Oldest rollout that is learned from, in updates since it was collected; none for no limit.",
        optional(integer(NOT_NEGATIVE)),
    )

    def check(self) -> None:
        """Raise `ConfigError` if knobs contradict each other."""
        if self.minibatch_size is None and self.minibatches is None:
            object.__setattr__(self, "minibatch_size", DEFAULT_MINIBATCH_SIZE)
        if self.burn_in and self.sequence is None:
            raise ConfigError(f"burn_in is {self.burn_in} but sequence is none; only shorter sequences need a burn-in")
        if self.momentum and self.optimizer not in ("sgd", "rmsprop"):
            raise ConfigError(
                f"momentum is {self.momentum} but optimizer is {self.optimizer!r}; only sgd and rmsprop have momentum"
            )

    @classmethod
    def make(cls, preset: str | None = None, **names: Any) -> Self:
        """Return a config from a preset (or SB3's values) and settings by any of their names; text is parsed."""
        start = cls() if preset is None else cls(**preset_called(preset).ppo)
        return start.replace(**names)

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some settings changed, by any of their names.

        Setting one of `minibatch_size` and `minibatches` unsets the other, unless both were set.
        """
        current = {entry.name: getattr(self, entry.name) for entry in dataclasses.fields(self)}
        updates = self.canonical(changes, base=current)
        for named, other in (("minibatch_size", "minibatches"), ("minibatches", "minibatch_size")):
            chosen = updates.get(named) is not None and other not in updates
            if chosen and current[named] is None:
                updates[other] = None
        return dataclasses.replace(self, **updates)

    @classmethod
    def vocabulary(cls) -> Vocabulary:
        """Return the names by which people know the knobs, those of other libraries included."""
        return PPO_NAMES

    @classmethod
    def canonical(cls, names: Mapping[str, Any], base: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return `names` by the knobs' own names; some of CleanRL's need the values so far, `base`."""
        return read_texts(cls, canonical(names, base))

    @property
    def batch_size(self) -> int:
        """Steps in one rollout, over all envs. (SB3 calls a *mini*batch batch_size.)"""
        return self.rollout_steps * self.envs

    def minibatch_size_for(self, samples: int) -> tuple[int, str | None]:
        """Return the minibatch size for `samples` steps, and a sentence to print if two settings disagree."""
        return minibatch_size_for(samples, self.minibatch_size, self.minibatches)
