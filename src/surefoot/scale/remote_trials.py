"""The study's side of trials that run elsewhere: what is handed out, what came back, who went on with whose weights."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

from surefoot.data.seeds import seed_for
from surefoot.learn.search_ranges import nearby
from surefoot.train.diagnose.statistics import iqm
from surefoot.train.tune.search import (
    Plan,
    Tell,
    TuneTask,
    begun,
    nobody,
    optuna,
    read_params,
    suggest,
    take_back,
    told,
)

Order = dict[str, Any]
"""What a worker is told: a trial's `number`, its `params` as the study keeps them, a checkpoint to go on `from` or ""."""


class Book:
    """The trials of a study that are under way, by number. Only the process that has the book writes the study."""

    def __init__(self, task: TuneTask, study: Any, plan: Plan, directory: Path, tell: Tell = nobody) -> None:
        self.task, self.study, self.plan, self.directory, self.tell = task, study, plan, directory, tell
        self.broken = ""
        """Why no trial can be trained at all, once one has said so."""
        self._open: dict[int, Any] = {}
        self._score: dict[int, float] = {}
        self._rung: dict[int, int] = {}
        self._place: dict[int, Path] = {}
        self._rng = random.Random(seed_for("population", plan.seed) + len(study.trials))

    def ask(self) -> Order | None:
        """A trial to run; None when the plan's are all begun."""
        if begun(self.study) >= self.plan.trials and not self._waiting_heirs():
            return None
        return self._begin(self.study.ask())

    def population(self) -> list[Order]:
        """All members at once: those that were stopped, and new ones up to the plan's number."""
        count = self.plan.trials - begun(self.study) + self._waiting_heirs()
        return [self._begin(self.study.ask()) for _ in range(count)]

    def heir(self, order: Order) -> Order:
        """Another trial that goes on with the weights of `order`'s, with settings close to its."""
        params = read_params(self.task.space, order["params"])
        moved = nearby(self.task.space, params, self.task.moving, self._rng)
        fixed = {name: told(self.task.space[name], value) for name, value in moved.items()}
        self.study.enqueue_trial(fixed, user_attrs={"parent": order["number"]})
        return self._begin(self.study.ask())

    def judged(self, number: int, rung: int, scores: list[float]) -> None:
        """A trial got to a rung."""
        if (trial := self._open.get(number)) is None:
            return
        score = iqm(scores)
        if "parent" in trial.user_attrs and "from_rung" not in trial.user_attrs:
            trial.set_user_attr("from_rung", rung - 1)
        before = self._rung.get(number, 0)
        again = rung <= before  # its worker was lost, and took with it what was not saved yet
        self._score[number], self._rung[number] = score, max(rung, before)
        if math.isfinite(score) and not again:
            self.tell(number, rung, score)
            trial.report(score, rung)
            trial.set_user_attr("scores", scores)

    def saved(self, number: int, checkpoint: Path) -> None:
        """Where a trial can go on from, should it be stopped here."""
        if number in self._open and self._place.get(number) != checkpoint:
            self._place[number] = checkpoint
            self._open[number].set_user_attr("checkpoint", checkpoint.relative_to(self.directory).as_posix())

    def ended(self, number: int, rung: int, *, seconds: float | None = None, why: str = "") -> None:
        """A trial will not go on: it is at its end, was given up, or says why it cannot."""
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

    def succeeded(self, number: int, heir: int) -> None:
        """A trial was given up, and its place taken by one that goes on with another's weights."""
        if number in self._open:
            self._open[number].set_user_attr("succeeded_by", heir)
            self.ended(number, 0)

    def close(self) -> None:
        """Whatever is still under way did nothing wrong: it will be tried again."""
        for trial in self._open.values():
            take_back(self.study, trial)
        self._open.clear()

    @property
    def unfinished(self) -> bool:
        """True if a trial waits to go on from a checkpoint."""
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
        """Stopped trials that went on with another's weights: they are members, and no new ones."""
        waiting = optuna().trial.TrialState.WAITING
        return sum("parent" in t.user_attrs for t in self.study.get_trials(deepcopy=False, states=(waiting,)))
