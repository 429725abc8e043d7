"""Settings of the default policy."""

from __future__ import annotations

from dataclasses import dataclass

from surefoot.data.kinds import POSITIVE, UNIT, Interval, integer, real
from surefoot.data.knobs import knob
from surefoot.decide.policy.exploration import ExplorationConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayConfig(ExplorationConfig):
    """How the policy explores, learns and forgets."""

    lr: float = knob(0.3, "Length of a step of each option's weights.", real(Interval(0, 100, open_low=True)))
    decay: float = knob(
        0.03, "Pull of all weights to 0, in outcomes: more trusts the description longer.", real(POSITIVE)
    )
    minibatch_size: int = knob(64, "Logged outcomes per step.", integer(Interval(1, 10_000_000)))
    log: int = knob(20_000, "Outcomes that are kept for replay.", integer(Interval(1, 10_000_000)))
    forget: float = knob(
        0.8,
        "Share of an option's weights that is dropped, with its older outcomes, when it fails where it is expected to "
        "succeed; 0 never forgets.",
        real(UNIT),
    )
    surprise: float = knob(
        5.0,
        "How clearly: standard deviations between expected and observed successes over the option's last outcomes.",
        real(POSITIVE),
    )
    seed: int = knob(0, "Seed of the replay order.", integer(Interval(0)))
