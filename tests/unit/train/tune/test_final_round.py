"""The final round of a search: which trials play again on fresh seeds, and in which order they end."""

import math
from types import SimpleNamespace
from typing import Any

from surefoot.train.tune.final_round import TrialResult, evaluate_in_process, final_results, final_scores
from surefoot.train.tune.plan import Plan


class TrialRun:
    """Scores are the sum of parameter and seed; a negative parameter diverges."""

    def __init__(self, params: dict[str, Any], seeds: list[int]) -> None:
        self.params, self.seeds, self.closed = params, seeds, False

    def advance(self, share: float, stop: Any) -> list[float] | None:
        from surefoot.errors import Diverged

        if self.params["x"] < 0:
            raise Diverged("too far")
        return None if stop() else [self.params["x"] + seed for seed in self.seeds]

    def close(self) -> None:
        self.closed = True


TASK: Any = SimpleNamespace(trial_run=TrialRun)
PLAN = Plan(seeds=2, seed=1)


def test_fresh_seeds_are_not_those_of_the_search() -> None:
    assert final_scores(TASK, {"x": 0.0}, PLAN, lambda: False) == [10_001.0, 10_002.0]
    assert PLAN.training_seeds == [1, 2]


def test_settings_that_diverge_get_the_lowest_score() -> None:
    assert final_scores(TASK, {"x": -1.0}, PLAN, lambda: False) == [-math.inf, -math.inf]


def test_a_stop_leaves_out_what_was_not_played() -> None:
    chosen = [TrialResult(n, {"x": float(n)}, 0.0, []) for n in range(3)]
    calls = iter([False, False, True])
    assert [one.number for one, _ in evaluate_in_process(TASK, chosen, PLAN, lambda: next(calls, True))] == [0]


def test_the_order_is_that_of_the_scores_on_fresh_seeds() -> None:
    study = SimpleNamespace(user_attrs={"play_off": {"3": [1.0], "0": [2.0]}}, get_trials=lambda states: [])
    ranked = final_results(study, {})
    assert [(one.number, one.value) for one in ranked] == [(0, 2.0), (3, 1.0)]
