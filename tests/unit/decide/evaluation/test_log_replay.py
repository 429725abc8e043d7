"""Tests of `surefoot.decide.evaluation.log_replay`."""

from __future__ import annotations

import numpy as np

from surefoot.decide.encoders.encoder import HashingEncoder
from surefoot.decide.evaluation.log_replay import compare
from surefoot.decide.policy.experience_log import Log, Logged
from surefoot.decide.policy.options import Options
from surefoot.decide.policy.ppo import PPOChooser


def logged(count: int = 1500) -> tuple[PPOChooser, Logged]:
    """Return a log of a uniform policy over two options, of which only the first earns rewards."""
    encoder = HashingEncoder(16)
    options = Options(encoder)
    options.add("left", "go left")
    options.add("right", "go right")
    log, rng = Log(16, count), np.random.default_rng(0)
    for _ in range(count):
        scene = options.scene(encoder.encode(["where"])[0], ["left", "right"])
        action = int(rng.integers(2))
        log.append(scene, action, 0.5, float(action == 0))
    return PPOChooser(16, encoder.likeness), log.rows(slice(None))


def always(action: int, probability: float = 0.9):
    row = np.full(2, 1.0 - probability)
    row[action] = probability
    return lambda log: np.tile(row, (len(log), 1))


def test_the_policy_that_takes_the_rewarded_action_is_estimated_and_promoted():
    core, log = logged()
    result = compare(core, log, {"live": always(1), "new": always(0)})
    # The rewards are 1 and 0, so the value of a policy is its probability of the first action.
    assert abs(result.policies["live"].dr.value - 0.1) < 0.03
    assert abs(result.policies["new"].dr.value - 0.9) < 0.03
    assert result.judgement.verdict == "promote"
    assert compare(core, log, {"live": always(0), "new": always(1)}).judgement.verdict == "fail"


def test_the_text_has_one_row_per_policy_and_the_verdict():
    core, log = logged()
    lines = compare(core, log, {"live": always(1), "new": always(0)}).as_text().splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["live", "new"]
    assert lines[-1].startswith("promote")
