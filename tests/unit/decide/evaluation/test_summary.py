"""Tests of `surefoot.decide.evaluation.summary`."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.decide.evaluation.summary import as_text, matrix, page_of, risk_coverage, summary_of


def row(chosen: str, right: str, confidence: float = 0.8) -> dict[str, object]:
    reward = float(chosen == right)
    return {
        "chosen": chosen,
        "right": right,
        "nearest": "a",
        "reward": reward,
        "confidence": confidence,
        "probability": 1.0,
    }


def test_a_summary_by_hand():
    summary = summary_of([row("a", "a"), row("a", "b"), row("b", "b"), row("a", "b")], marks=(2, 100))
    assert (summary["success"], summary["regret"], summary["nearest"]) == (0.5, 2.0, 0.25)
    assert summary["marks"] == {"2": 0.5}
    assert summary["tools"][0] == {"name": "a", "chosen": 3, "success": pytest.approx(1 / 3), "right": 1}
    assert summary["confusion"] == [{"right": "b", "chosen": "a", "count": 2}]
    assert summary["calibration_error"] == pytest.approx(0.3)
    assert "2 × a where b was right" in as_text(summary)
    assert summary["regret_curve"] == [(0, 0.0), (1, 0.0), (2, 1.0), (3, 1.0), (4, 2.0)]
    assert summary["matrix"] == {"names": ["b", "a"], "counts": [[1, 2], [0, 1]]}


def test_rarer_options_are_others_in_the_matrix():
    assert matrix([row("a", "a"), row("c", "a"), row("b", "b")], most=1) == {
        "names": ["a", "others"],
        "counts": [[1, 1], [0, 1]],
    }


def test_a_page_without_right_options_reports_the_regret_as_unknown():
    rows = [{"chosen": "a", "reward": 0.7, "probability": 0.9, "confidence": 0.5}] * 3
    page = page_of(summary_of(rows), "a run")
    assert "does not name the right options" in page
    assert "Confusion" not in page


def test_risk_and_coverage_by_hand():
    points = risk_coverage(np.array([0.9, 0.1, 0.5, 0.7]), np.array([1.0, 0.0, 0.0, 1.0]))
    assert points == [(0.25, 0.0), (0.5, 0.0), (0.75, pytest.approx(1 / 3)), (1.0, 0.5)]
    assert risk_coverage(np.zeros(0), np.zeros(0)) == []
