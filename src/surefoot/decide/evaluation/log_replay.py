"""Compare two policies on one log of decisions: off-policy estimates of both, and the promotion gate's verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from surefoot.decide.evaluation.offpolicy import OffPolicyEvaluation, Target, evaluate, per_decision
from surefoot.decide.policy.experience_log import Logged
from surefoot.decide.policy.outcome_model import OutcomeModel
from surefoot.decide.policy.replay import ReplayChooser
from surefoot.decide.promotion import GateConfig, Judgement, Side, judge

if TYPE_CHECKING:
    # Only for the type: it imports torch, which a service that decides does not need.
    from surefoot.decide.policy.ppo import PPOChooser


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Estimates of two policies on one log, and the gate's verdict on promoting the second."""

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
        lines.append(f"  mean logged reward of these {some.decisions:,} decisions: {some.logged.value:.3f}")
        lines.append(
            "  a policy that learned from this log looks better on it than it is; check with `tools eval` on other queries"
        )
        return "\n".join([*lines, f"{self.judgement.verdict}: {self.judgement.reason}"])


def compare(
    core: PPOChooser | ReplayChooser, log: Logged, targets: Mapping[str, Target], config: GateConfig | None = None
) -> Replay:
    """Return the comparison of two targets by name: the live policy first, the candidate second."""

    def model() -> OutcomeModel:
        return OutcomeModel(core.dim, core.likeness)

    sides, evaluations, predicted = list[Side](), dict[str, OffPolicyEvaluation](), np.zeros(len(log))
    for name, target in targets.items():
        predicted, expected, probability = per_decision(log, target, model)
        sides.append(Side(target=probability, expected=expected))
        evaluations[name] = evaluate(log.reward, log.probability, probability, predicted, expected)
    # Both sides share the model's predictions, so the gate can compare them pairwise.
    live, new = sides
    return Replay(policies=evaluations, judgement=judge(log.reward, log.probability, predicted, live, new, config))
