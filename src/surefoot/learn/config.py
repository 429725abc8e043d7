"""The knobs of PPO, each written once: default, legal range, and the help that the command line and the docs print."""

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

DEFAULT_MINIBATCH_SIZE = 64


def scheduled(within: Interval) -> Kind:
    """A number within an interval or a schedule of such numbers, which may touch an open lower bound (lin_3e-4)."""

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
    """What the learner needs to know. `PPOConfig()` has SB3's values; `PPOConfig.make` takes any library's names."""

    lr: float | Schedule = knob(
        3e-4,
        "Learning rate: how far one gradient step moves the weights, usually 1e-5 to 1e-2. "
        "A number, or a schedule: lin_3e-4 falls to 0 over the run, cos_3e-4 along a cosine, 0:3e-4,0.5:3e-4,1:0 by points.",
        scheduled(POSITIVE),
    )
    critic_lr_scale: float = knob(
        1.0,
        "What only the critic has learns at this many times lr.",
        real(POSITIVE),
    )
    gamma: float = knob(
        0.99,
        "Discount per step: the present value of a reward of 1 one step later, 0 to 1. "
        "1/(1-gamma) is how many steps ahead the policy looks: 100 at 0.99.",
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
        "the ratio is held within 1 ± clip. Usually 0.1 to 0.4; may be a schedule.",
        scheduled(POSITIVE),
    )
    dual_clip: float | None = knob(
        None,
        "Bounds the loss of an action that turned out badly: its ratio counts for no more than this (Ye et al. 2020). "
        "Usually 3; none leaves it unbounded.",
        optional(real(Interval(1, open_low=True))),
    )
    value_clip: float | None = knob(
        None,
        "How far a value may move from the one at acting time, in units of the return (with normalize_value: of its "
        "deviation); none leaves it free. Only sensible where returns are about 1 in size.",
        optional(real(POSITIVE)),
    )
    epochs: int = knob(
        10,
        "Passes over each rollout. More learns more from the same steps, until the policy has moved too far from them.",
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
        "Minibatches per epoch, instead of their size. With both set, the smaller minibatch of the two counts.",
        optional(AT_LEAST_ONE),
    )
    sequence: int | None = knob(
        None,
        "For policies with memory: the steps of one column that minibatches are chosen from; none keeps whole rollouts. "
        "Shorter gives more columns to shuffle, and gradients that reach less far back.",
        optional(AT_LEAST_ONE),
    )
    burn_in: int = knob(
        0,
        "With sequence: steps before each column that are walked through again, so that memory is that of the weights "
        "of now, and that are not learned from.",
        integer(NOT_NEGATIVE),
    )
    rollout_steps: int = knob(
        2048,
        "Steps taken in each env between two updates; rollout_steps times envs is the size of a rollout.",
        AT_LEAST_ONE,
    )
    envs: int = knob(
        1,
        "Envs that are stepped side by side. More gives more varied rollouts and better use of the machine.",
        AT_LEAST_ONE,
    )
    ent_coef: float | Schedule = knob(
        0.0,
        "Weight of the entropy bonus: rewards a random policy, so that it continues to explore. "
        "Usually 0 to 0.02; may be a schedule.",
        scheduled(NOT_NEGATIVE),
    )
    vf_coef: float = knob(
        0.5,
        "Weight of the value loss (half the squared error) next to the policy's.",
        real(NOT_NEGATIVE),
    )
    kl_coef: float = knob(
        0.0,
        "Weight in the loss of the divergence (k3) from a fixed reference policy; 0 for none. "
        "Needs rollouts that carry the reference's log-probs.",
        real(NOT_NEGATIVE),
    )
    max_grad_norm: float = knob(
        0.5,
        "The gradient of all weights together is scaled down to this norm; a very large number turns that off.",
        real(POSITIVE),
    )
    target_kl: float | None = knob(
        None,
        "Ends an update early once the policy has moved this far (k3), times kl_stop_factor. "
        "Usually 0.01 to 0.05; none never does.",
        optional(real(POSITIVE)),
    )
    kl_stop_factor: float = knob(
        1.5,
        "An update stops at this many times target_kl. SB3 has 1.5, CleanRL 1.",
        real(POSITIVE),
    )
    adaptive_kl: float | None = knob(
        None,
        "The divergence an update should come to. After one that moved the policy less than half as far (mean k3), "
        "or more than twice as far, lr is multiplied or divided by 1.5, within 1e-5 to 1e-2. Usually 0.01. "
        "With target_kl set too, an update that ended early counts as too far.",
        optional(real(POSITIVE)),
    )
    normalize_value: bool = knob(
        False,
        "The critic learns targets of mean 0 and deviation 1 (running statistics), so that the size of the rewards does "
        "not matter to it. Values are in units of the return everywhere else.",
        flag(),
    )
    temperature: float | Schedule = knob(
        1.0,
        "Logits are divided by it in training: above 1 tries more, below 1 less; lin_2_1 cools down over the run. "
        "Choices only. Evaluations and saved policies have 1.",
        scheduled(Interval(0.001)),
    )
    normalize_advantage: str = knob(
        "minibatch",
        "Advantages get mean 0 and deviation 1 within each minibatch, once over the whole batch, or not (off).",
        choice("minibatch", "batch", "off", true="minibatch", false="off"),
    )
    optimizer: str = knob(
        "adam",
        "What turns gradients into steps.",
        choice("adam", "adamw", "sgd", "rmsprop"),
    )
    weight_decay: float = knob(
        0.0,
        "Pull of the weights towards 0 in each step; adamw keeps it apart from the gradient. 0 for none.",
        real(NOT_NEGATIVE),
    )
    adam_eps: float = knob(
        1e-5,
        "Added to the denominator of adam, adamw and rmsprop. PPO has always used 1e-5, not torch's 1e-8.",
        real(POSITIVE),
    )
    momentum: float = knob(
        0.0,
        "Share of the last step kept in the next one, 0 to below 1; sgd and rmsprop only.",
        real(Interval(0, 1, open_high=True)),
    )
    seed: int = knob(
        0,
        "Everything random follows from it: weights, envs, actions, minibatches.",
        integer(Interval(0, 2**63 - 1)),
    )
    device: str = knob(
        "auto",
        "Where the networks live: cpu, cuda, cuda:1, mps; auto takes what is fastest for their size.",
        matching(r"auto|cpu|(cuda|mps)(:\d+)?", "auto, cpu, cuda, mps, or one of several as in cuda:0"),
    )
    path: str = knob(
        "auto",
        "Which implementation learns: the native kernel, torch, or auto: the kernel where it knows the policy.",
        choice("auto", "native", "torch"),
    )
    min_samples: int = knob(
        2,
        "Fewest valid steps for an update; a smaller rollout is skipped and the report has the reason.",
        AT_LEAST_ONE,
    )
    max_policy_lag: int | None = knob(
        None,
        "Oldest rollout that is learned from, in updates since it was collected; none takes any.",
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
        """From a preset (or SB3's values) and any names that people know the knobs by; text is read as a value."""
        start = cls() if preset is None else cls(**preset_called(preset).ppo)
        return start.replace(**names)

    def replace(self, **changes: Any) -> Self:
        """A copy with some knobs changed; any of their names will do.

        To name one of `minibatch_size` and `minibatches` is to choose it over the other, unless both were set.
        """
        current = {entry.name: getattr(self, entry.name) for entry in dataclasses.fields(self)}
        found = self.canonical(changes, base=current)
        for named, other in (("minibatch_size", "minibatches"), ("minibatches", "minibatch_size")):
            chosen = found.get(named) is not None and other not in found
            if chosen and current[named] is None:
                found[other] = None
        return dataclasses.replace(self, **found)

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
        """The size to split `samples` steps by, and a sentence to print where two knobs had to be weighed up."""
        return minibatch_size_for(samples, self.minibatch_size, self.minibatches)
