"""The study's side of trials that run on a cluster: orders, results, and which trial continued with whose weights."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

from surefoot.data.seeds import seed_for
from surefoot.learn.search_ranges import nearby
from surefoot.train.diagnose.statistics import iqm
from surefoot.train.tune.plan import Plan
from surefoot.train.tune.search import (
    OnScore,
    TuneTask,
    ignore_score,
    optuna,
    read_params,
    requeue,
    started_trials,
    stored_value,
    suggest,
)

Order = dict[str, Any]
"""What a worker runs: a trial's `number`, its `params` as the study stores them, a checkpoint to resume `from` or ""."""


class RemoteTrials:
    """The running trials of a study, by number. Only the process that has this object writes the study."""

    def __init__(
        self, task: TuneTask, study: Any, plan: Plan, directory: Path, on_score: OnScore = ignore_score
    ) -> None:
        self.task, self.study, self.plan, self.directory, self.on_score = task, study, plan, directory, on_score
        self.broken = ""
        """Why no trial can be trained, once one has reported it."""
        self._open: dict[int, Any] = {}
        self._score: dict[int, float] = {}
        self._rung: dict[int, int] = {}
        self._place: dict[int, Path] = {}
        self._rng = random.Random(seed_for("population", plan.seed) + len(study.trials))

    def ask(self) -> Order | None:
        """Return a trial to run; None when all of the plan's have started."""
        if started_trials(self.study) >= self.plan.trials and not self._waiting_heirs():
            return None
        return self._begin(self.study.ask())

    def population(self) -> list[Order]:
        """Return all members: those that were stopped, and new ones up to the plan's number."""
        count = self.plan.trials - started_trials(self.study) + self._waiting_heirs()
        return [self._begin(self.study.ask()) for _ in range(count)]

    def successor(self, order: Order) -> Order:
        """Return a new trial that continues with the weights of `order`'s trial and settings close to its."""
        params = read_params(self.task.space, order["params"])
        moved = nearby(self.task.space, params, self.task.moving, self._rng)
        fixed = {name: stored_value(self.task.space[name], value) for name, value in moved.items()}
        self.study.enqueue_trial(fixed, user_attrs={"parent": order["number"]})
        return self._begin(self.study.ask())

    def record_scores(self, number: int, rung: int, scores: list[float]) -> None:
        if (trial := self._open.get(number)) is None:
            return
        score = iqm(scores)
        if "parent" in trial.user_attrs and "from_rung" not in trial.user_attrs:
            trial.set_user_attr("from_rung", rung - 1)
        before = self._rung.get(number, 0)
        again = rung <= before  # its worker was lost with what was not saved yet
        self._score[number], self._rung[number] = score, max(rung, before)
        if math.isfinite(score) and not again:
            self.on_score(number, rung, score)
            trial.report(score, rung)
            trial.set_user_attr("scores", scores)

    def saved(self, number: int, checkpoint: Path) -> None:
        """Record the checkpoint that a trial resumes from if it is stopped."""
        if number in self._open and self._place.get(number) != checkpoint:
            self._place[number] = checkpoint
            self._open[number].set_user_attr("checkpoint", checkpoint.relative_to(self.directory).as_posix())

    def ended(self, number: int, rung: int, *, seconds: float | None = None, why: str = "") -> None:
        """Record that a trial ended: finished, pruned, or failed with a reason."""
        trial = self._open.pop(number, None)
        if trial is None:
            return
        state, score = optuna().trial.TrialState, self._score.pop(number, math.nan)
        if why:
            trial.set_user_attr("why", why)
        if seconds is not None:
            trial.set_user_attr("seconds", seconds)
        if rung >= self.plan.rungs and math.isfinite(score) and not why:
            self.study.tell(trial, score)
        else:
            judged = self.study._storage.get_trial(trial._trial_id).intermediate_values
            self.study.tell(trial, state=state.PRUNED if judged else state.FAIL)

    def record_successor(self, number: int, successor: int) -> None:
        """Record that a trial was replaced by one that continues with another trial's weights."""
        if number in self._open:
            self._open[number].set_user_attr("succeeded_by", successor)
            self.ended(number, 0)

    def close(self) -> None:
        """Return running trials to the study: they are interrupted, not failed, and will be run again."""
        for trial in self._open.values():
            requeue(self.study, trial)
        self._open.clear()

    @property
    def unfinished(self) -> bool:
        """Whether a trial waits to be resumed from a checkpoint."""
        waiting = optuna().trial.TrialState.WAITING
        return any("checkpoint" in t.user_attrs for t in self.study.get_trials(deepcopy=False, states=(waiting,)))

    def _begin(self, trial: Any) -> Order:
        suggest(trial, self.task.space)
        known = trial.user_attrs
        for rung, score in known.get("rungs", {}).items():
            trial.report(score, int(rung))
            self._score[trial.number], self._rung[trial.number] = score, int(rung)
        self._open[trial.number] = trial
        place = known.get("checkpoint")
        return {
            "number": trial.number,
            "params": dict(trial.params),
            "from": "" if place is None else str(self.directory / place),
        }

    def _waiting_heirs(self) -> int:
        """Return how many stopped trials had continued with another's weights: they are members, not new trials."""
        waiting = optuna().trial.TrialState.WAITING
        return sum("parent" in t.user_attrs for t in self.study.get_trials(deepcopy=False, states=(waiting,)))
