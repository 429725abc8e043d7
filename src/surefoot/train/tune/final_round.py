"""The end of a search: the best of many noisy scores is partly luck, so the best meet again on fresh seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from surefoot.errors import Diverged, EnvError
from surefoot.learn.search_ranges import Space
from surefoot.train.diagnose.statistics import iqm
from surefoot.train.tune.search import Plan, Tell, TuneTask, nobody, optuna, read_params


@dataclass(frozen=True, slots=True)
class TrialStanding:
    """A setting and how it did; `scores` has one number a seed."""

    number: int
    params: dict[str, Any]
    value: float
    scores: list[float]


Stop = Callable[[], bool]
Play = Callable[[TuneTask, Sequence[TrialStanding], Plan, Stop], Iterator[tuple[TrialStanding, list[float]]]]
"""Gives each of the settings with its scores, in any order; those that were not played when `stop` came are left out."""


def standings(study: Any, space: Space) -> list[TrialStanding]:
    """Every trial that was trained to its end, best first."""
    state = optuna().trial.TrialState
    done = [
        TrialStanding(t.number, read_params(space, t.params), t.value, list(t.user_attrs.get("scores", [])))
        for t in study.get_trials(states=(state.COMPLETE,))
        if t.value is not None and math.isfinite(t.value)
    ]
    return _ranked(done)


def one_by_one(
    task: TuneTask, chosen: Sequence[TrialStanding], plan: Plan, stop: Stop
) -> Iterator[tuple[TrialStanding, list[float]]]:
    """Play in this process."""
    for one in chosen:
        if stop() or (scores := final_scores(task, one.params, plan, stop)) is None:
            return
        yield one, scores


def final_scores(task: TuneTask, params: dict[str, Any], plan: Plan, stop: Stop) -> list[float] | None:
    """How a setting does on fresh seeds, one number a seed; None if `stop` came first."""
    contest = task.contest(params, plan.fresh_seeds)
    try:
        return contest.advance(1.0, stop)
    except (Diverged, EnvError):
        return [-math.inf] * plan.seeds
    finally:
        contest.close()


def play_off(
    task: TuneTask,
    study: Any,
    plan: Plan,
    *,
    stop: Stop = lambda: False,
    tell: Tell = nobody,
    play: Play = one_by_one,
) -> list[TrialStanding]:
    """The base and the best trials once more, on fresh seeds: whoever was merely lucky shows it here. Best first.

    What was played is kept in the study, so that a play-off that was stopped goes on.
    """
    chosen = _chosen(study, task, plan)
    played = _played(study)
    for one, scores in play(task, [one for one in chosen if str(one.number) not in played], plan, stop):
        tell(one.number, plan.rungs, iqm(scores))
        played[str(one.number)] = scores
        study.set_user_attr("play_off", played)
    results = [
        replace(one, value=iqm(scores), scores=scores) for one in chosen if (scores := played.get(str(one.number)))
    ]
    return _ranked(results)


def finals(study: Any, space: Space) -> list[TrialStanding]:
    """How those that have met again on fresh seeds did there, best first; empty before the play-off.

    Nothing is known of the base's own settings where it was given up early.
    """
    known = {one.number: one for one in standings(study, space)}
    played = [
        (known.get(int(k), TrialStanding(int(k), {}, math.nan, [])), scores) for k, scores in _played(study).items()
    ]
    return _ranked([replace(one, value=iqm(scores), scores=scores) for one, scores in played])


def _played(study: Any) -> dict[str, list[float]]:
    """{number of a trial: its scores on fresh seeds}"""
    return dict(study.user_attrs.get("play_off", {}))


def _chosen(study: Any, task: TuneTask, plan: Plan) -> list[TrialStanding]:
    """The finalists, and the base even if it was given up early: there is nothing else to compare them with."""
    ranked = standings(study, task.space)
    chosen = ranked[: plan.finalists]
    if ranked and all(one.number for one in chosen):
        base = next((one for one in ranked if one.number == 0), None)
        chosen.append(base or TrialStanding(0, dict(task.base), math.nan, []))
    return chosen


def _ranked(results: list[TrialStanding]) -> list[TrialStanding]:
    return sorted(results, key=lambda standing: (-standing.value, standing.number))
