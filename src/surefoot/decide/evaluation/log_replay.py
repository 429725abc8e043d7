"""Two policies on one log of decisions: what each would have earned, and what the gate says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from surefoot.decide.evaluation.offpolicy import OffPolicyEvaluation, Target, evaluate, per_decision
from surefoot.decide.policy.experience_log import Logged
from surefoot.decide.policy.outcome_model import OutcomeModel
from surefoot.decide.policy.ppo import PPOChooser
from surefoot.decide.promotion import GateConfig, Judgement, Side, judge


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Two policies on one log, and what the gate says of the first against the second."""

    policies: dict[str, OffPolicyEvaluation]
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


def compare(core: PPOChooser, log: Logged, targets: Mapping[str, Target], config: GateConfig | None = None) -> Replay:
    """Two policies on one log: the first is live, the second wants to be."""

    def model() -> OutcomeModel:
        return OutcomeModel(core.model.dim, core.model.likeness, core.model.config)

    sides, found, predicted = list[Side](), dict[str, OffPolicyEvaluation](), np.zeros(len(log))
    for name, target in targets.items():
        predicted, expected, chosen = per_decision(log, target, model)
        sides.append(Side(target=chosen, expected=expected))
        found[name] = evaluate(log.reward, log.probability, chosen, predicted, expected)
    live, new = sides
    return Replay(policies=found, judgement=judge(log.reward, log.probability, predicted, live, new, config))
