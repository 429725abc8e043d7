"""Signs in the numbers of learning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from doctor_runs import primary_of, record

from surefoot.telemetry.doctor.signals import slope_interval


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("R02", {"first_ratio_error": 0.02}),
        ("R10", {"reward_std": 0.0, "reward_mean": 0.0, "returns": lambda share: 0.0}),
        ("R24", {"target_mean": 3e5, "value_loss": 1e10}),
        ("R27", {"frozen_share": 0.4}),
        ("R28", {"weight_jump": 0.3}),
        ("R21B", {"bootstrap_zero_share": 1.0}),
        ("R26", {"returns": lambda share: 30.0 - 20.0 * min(1.0, 5 * share)}),
        ("R03", {"approx_kl": 0.6, "returns": lambda share: 20.0}),
        ("R07", {"entropy": 0.69, "ent_coef": 0.5, "returns": lambda share: 20.0}),
        ("R06", {"entropy": lambda u: 0.5 if u < 8 else 0.001, "returns": lambda share: 20.0}),
        ("R09", {"explained_variance": -9.0, "returns": lambda share: 20.0}),
        ("R16", {"policy_lag": 9.0, "effective_sample_size": 0.05}),
        ("R01", {"nonfinite_steps": lambda u: float(u > 50)}),
    ],
)
def test_each_fault_is_found_first_by_its_rule(rule: str, changes: dict[str, Any]):
    assert primary_of(record(**changes)).rule == rule


def test_the_theil_sen_interval_contains_the_slope_despite_an_outlier():
    x = np.arange(20.0)
    y = 3.0 * x
    y[5] = 1e6
    low, high = slope_interval(x, y)
    assert low <= 3.0 <= high
    assert high < 10.0
