"""The final comparison of a search: the best trials are trained again on fresh seeds, which removes the selection bias."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from surefoot.errors import Diverged, EnvError
from surefoot.learn.search_ranges import Space
from surefoot.train.diagnose.statistics import iqm
from surefoot.train.tune.plan import Plan
from surefoot.train.tune.search import OnScore, TuneTask, ignore_score, optuna, read_params

# Attribute of a study with the scores on fresh seeds. The key is part of the format of stored studies.
FINAL_SCORES = "play_off"


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The settings and the score of a trial; `scores` has one value per seed."""

    number: int
    params: dict[str, Any]
    value: float
    scores: list[float]


Stop = Callable[[], bool]
EvaluateFinalists = Callable[[TuneTask, Sequence[TrialResult], Plan, Stop], Iterator[tuple[TrialResult, list[float]]]]
"""Yields each trial with its scores on fresh seeds, in any order. Trials not evaluated when `stop` returns True are omitted."""


def ranked_trials(study: Any, space: Space) -> list[TrialResult]:
    """Return every completed trial, best first."""
    state = optuna().trial.TrialState
    completed = [
        TrialResult(t.number, read_params(space, t.params), t.value, list(t.user_attrs.get("scores", [])))
        for t in study.get_trials(states=(state.COMPLETE,))
        if t.value is not None and math.isfinite(t.value)
    ]
    return _ranked(completed)


def evaluate_in_process(
    task: TuneTask, finalists: Sequence[TrialResult], plan: Plan, stop: Stop
) -> Iterator[tuple[TrialResult, list[float]]]:
    """Yield the finalists with their scores on fresh seeds, evaluated one after another in this process."""
    for trial in finalists:
        if stop() or (scores := final_scores(task, trial.params, plan, stop)) is None:
            return
        yield trial, scores


def final_scores(task: TuneTask, params: dict[str, Any], plan: Plan, stop: Stop) -> list[float] | None:
    """Return the scores of a setting on fresh seeds, one per seed; None if `stop` returned True."""
    trial_run = task.trial_run(params, plan.fresh_seeds)
    try:
        return trial_run.advance(1.0, stop)
    except (Diverged, EnvError):
        # A setting that diverges on one seed is ranked last; leaving it out would hide the failure.
        return [-math.inf] * plan.seeds
    finally:
        trial_run.close()


def compare_finalists(
    task: TuneTask,
    study: Any,
    plan: Plan,
    *,
    stop: Stop = lambda: False,
    on_score: OnScore = ignore_score,
    evaluate: EvaluateFinalists = evaluate_in_process,
) -> list[TrialResult]:
    """Train the base and the best trials again on fresh seeds and return them, best first.

    Scores are saved in the study, so that an interrupted comparison can be resumed.
    """
    finalists = _finalists(study, task, plan)
    saved = _saved_scores(study)
    for trial, scores in evaluate(task, [t for t in finalists if str(t.number) not in saved], plan, stop):
        on_score(trial.number, plan.rungs, iqm(scores))
        saved[str(trial.number)] = scores
        study.set_user_attr(FINAL_SCORES, saved)
    evaluated = [(trial, scores) for trial in finalists if (scores := saved.get(str(trial.number)))]
    return _ranked([replace(trial, value=iqm(scores), scores=scores) for trial, scores in evaluated])


def final_results(study: Any, space: Space) -> list[TrialResult]:
    """Return the saved results of the final comparison, best first; empty if it has not started."""
    completed = {trial.number: trial for trial in ranked_trials(study, space)}
    results: list[TrialResult] = []
    for number, scores in _saved_scores(study).items():
        # The base is compared even if it was pruned; then it is not among the completed trials.
        trial = completed.get(int(number), TrialResult(int(number), {}, math.nan, []))
        results.append(replace(trial, value=iqm(scores), scores=scores))
    return _ranked(results)


def _saved_scores(study: Any) -> dict[str, list[float]]:
    """Return {trial number: scores on fresh seeds}."""
    return dict(study.user_attrs.get(FINAL_SCORES, {}))


def _finalists(study: Any, task: TuneTask, plan: Plan) -> list[TrialResult]:
    ranked = ranked_trials(study, task.space)
    finalists = ranked[: plan.finalists]
    # The base (trial 0) is always compared, even if it was pruned: the report states the improvement over it.
    if ranked and all(trial.number for trial in finalists):
        base = next((trial for trial in ranked if trial.number == 0), None)
        finalists.append(base or TrialResult(0, dict(task.base), math.nan, []))
    return finalists


def _ranked(results: list[TrialResult]) -> list[TrialResult]:
    return sorted(results, key=lambda result: (-result.value, result.number))
