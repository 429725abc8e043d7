"""A run's log seen again: what the policy of now and the nearest description would have earned on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from surefoot.decide.agent import Agent
from surefoot.decide.evaluation.offpolicy import Evaluation, Target, evaluate, per_decision
from surefoot.decide.evaluation.trial import decisions_of, load_agent, log_of
from surefoot.decide.policy.experience_log import Logged
from surefoot.decide.policy.outcome_model import OutcomeModel
from surefoot.decide.policy.ppo import PPOChooser, spread
from surefoot.decide.promotion import GateConfig, Judgement, Side, judge
from surefoot.errors import DecisionError


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Two policies on one log, and what the gate says of the first against the second."""

    policies: dict[str, Evaluation]
    judgement: Judgement

    def as_text(self) -> str:
        lines = [f"  {'policy':<12} {'IPS':>22} {'SNIPS':>22} {'DM':>22} {'DR':>22}   sample size"]
        for name, each in self.policies.items():
            cells = [f"{e.value:.3f} ({e.low:.3f} … {e.high:.3f})" for e in (each.ips, each.snips, each.dm, each.dr)]
            lines.append(
                f"  {name:<12} " + " ".join(f"{cell:>22}" for cell in cells) + f"   {each.effective_sample_size:,.0f}"
            )
        some = next(iter(self.policies.values()))
        lines.append(f"  really earned on these {some.decisions:,} decisions: {some.logged.value:.3f}")
        lines.append(
            "  what learned from this very log looks better on it than it is; `tools eval` on other queries tells"
        )
        return "\n".join([*lines, f"{self.judgement.verdict}: {self.judgement.reason}"])


def replay(agent: Agent, directory: Path, *, last: int = 5000) -> Replay:
    """The live version of a run against the nearest description, smoothed so that it could have been drawn."""
    rows = [row for row in decisions_of(directory) if row["chosen"] != "none"]
    if not rows:
        raise DecisionError(f"{directory} has no decisions to look at; `surefoot tools train` writes some")
    load_agent(agent, directory)
    log = log_of(rows[-last:], agent)
    core = agent.chooser
    if not isinstance(core, PPOChooser):
        raise DecisionError("only runs of the ppo chooser log probabilities to replay with")

    def near(seen: Logged) -> np.ndarray:
        return nearest(seen, core)

    return compare(core, log, {"nearest": near, "learned": core.probabilities})


def compare(core: PPOChooser, log: Logged, targets: Mapping[str, Target], config: GateConfig | None = None) -> Replay:
    """Two policies on one log: the first is live, the second wants to be."""

    def model() -> OutcomeModel:
        return OutcomeModel(core.model.dim, core.model.likeness, core.model.config)

    sides, found, predicted = list[Side](), dict[str, Evaluation](), np.zeros(len(log))
    for name, target in targets.items():
        predicted, expected, chosen = per_decision(log, target, model)
        sides.append(Side(target=chosen, expected=expected))
        found[name] = evaluate(log.reward, log.probability, chosen, predicted, expected)
    live, new = sides
    return Replay(policies=found, judgement=judge(log.reward, log.probability, predicted, live, new, config))


def nearest(log: Logged, core: PPOChooser) -> np.ndarray:
    """[B, K]: the calibrated guess as a policy."""
    calibrated, _ = core.model.guesses(log.cosine, log.valid)
    return np.stack([spread(np.log(np.maximum(row, 1e-30)), core.config.floor)[0] for row in calibrated])
