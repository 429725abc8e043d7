"""The own off-policy estimators next to those of Open Bandit Pipeline (obp 0.4.1), on synthetic logs.

obp pins packages that no longer build, so it is put into an environment of its own without its dependencies:

    python -m venv /tmp/obp && /tmp/obp/bin/pip install --no-deps obp==0.4.1
    /tmp/obp/bin/pip install torch numpy pandas scikit-learn matplotlib seaborn pyyaml tqdm msgspec
    PYTHONPATH=src /tmp/obp/bin/python benchmarks/tools_obp.py
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from surefoot.decide.evaluation.offpolicy import evaluate

ROUNDS, ACTIONS, CONTEXTS = 20_000, 5, 8


def log(seed: int) -> dict[str, np.ndarray]:
    """Rewards 0 or 1 of a logging policy, and another policy and a wrong model for the same contexts."""
    rng = np.random.default_rng(seed)
    worth = rng.random((CONTEXTS, ACTIONS))
    logging, target = rng.dirichlet(np.full(ACTIONS, 2.0), CONTEXTS), rng.dirichlet(np.full(ACTIONS, 1.0), CONTEXTS)
    context = rng.integers(0, CONTEXTS, ROUNDS)
    action = (rng.random(ROUNDS)[:, None] > logging[context].cumsum(axis=1)).sum(axis=1).clip(max=ACTIONS - 1)
    return {
        "reward": (rng.random(ROUNDS) < worth[context, action]).astype(float),
        "action": action,
        "pscore": logging[context, action],
        "target": target[context],
        "model": np.clip(worth + rng.normal(0, 0.2, worth.shape), 0, 1)[context],
        "truth": (target * worth).sum(axis=1)[context],
    }


def ours(d: dict[str, np.ndarray]) -> dict[str, float]:
    rows = np.arange(ROUNDS)
    chosen, expected = d["model"][rows, d["action"]], (d["target"] * d["model"]).sum(axis=1)
    found = evaluate(d["reward"], d["pscore"], d["target"][rows, d["action"]], chosen, expected)
    return {name: getattr(found, name).value for name in ("ips", "snips", "dm", "dr")}


def theirs(d: dict[str, np.ndarray]) -> dict[str, float]:
    # The estimators alone: the package's front door loads policies and plots with it.
    from obp.ope.estimators import DirectMethod, DoublyRobust, InverseProbabilityWeighting, SelfNormalizedInverseProbabilityWeighting  # fmt: skip  # noqa: E501, I001  # pyright: ignore

    dist, model = d["target"][:, :, None], d["model"][:, :, None]
    common = {"reward": d["reward"], "action": d["action"], "pscore": d["pscore"], "action_dist": dist}
    return {
        "ips": InverseProbabilityWeighting().estimate_policy_value(**common),
        "snips": SelfNormalizedInverseProbabilityWeighting().estimate_policy_value(**common),
        "dm": DirectMethod().estimate_policy_value(action_dist=dist, estimated_rewards_by_reg_model=model),
        "dr": DoublyRobust().estimate_policy_value(**common, estimated_rewards_by_reg_model=model),
    }


def main() -> int:
    rows, worst = list[dict[str, object]](), 0.0
    for seed in range(10):
        d = log(seed)
        mine, other = ours(d), {name: float(value) for name, value in theirs(d).items()}
        worst = max(worst, *(abs(mine[name] - other[name]) for name in mine))
        rows.append({"seed": seed, "truth": float(d["truth"].mean()), "ours": mine, "obp": other})
    Path(__file__).with_name("results").joinpath("tools_obp.json").write_text(json.dumps(rows, indent=1) + "\n")
    print(f"10 logs of {ROUNDS:,} decisions, IPS, SNIPS, DM and DR: at most {worst:.2e} apart (bar 1e-9)")
    return int(worst > 1e-9)


if __name__ == "__main__":
    sys.exit(main())
