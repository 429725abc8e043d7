"""A trial in its Ray worker: trained one rung at a time, saved, and restored with other settings."""

from __future__ import annotations

import math
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from surefoot.errors import CheckpointCorrupt, CheckpointMissing, Diverged, EnvError, RunError, SurefootError
from surefoot.learn.checkpoint.checkpoint import LATEST, load_checkpoint, save_checkpoint
from surefoot.scale.remote_trials import Order
from surefoot.train.device import pin_threads
from surefoot.train.diagnose.statistics import iqm
from surefoot.train.tune.plan import Plan
from surefoot.train.tune.search import TrialRun, TuneTask, read_params

# The part of a checkpoint that is not part of the trial run.
ABOUT = "trial"


class RayTrial:
    """The methods of a Ray Tune Trainable, without Ray: a step is a rung."""

    _task: TuneTask
    _plan: Plan
    _order: Order
    _trial_run: TrialRun | None = None
    _rung = 0
    _why = ""
    """Why the trial cannot continue; "" while it can."""

    def setup(self, config: dict[str, Any], task: TuneTask, plan: Plan) -> None:
        pin_threads(1)
        self._task, self._plan = task, plan
        self.reset_config(config)

    def reset_config(self, config: dict[str, Any]) -> bool:
        """Start another trial in the same worker."""
        self.cleanup()
        self._order, self._rung, self._why = config["order"], 0, ""
        self._began = time.monotonic()
        return True

    def step(self) -> dict[str, Any]:
        broken = ""
        scores = [-math.inf] * self._plan.seeds
        try:
            if not self._why:
                scores = self._built().advance((self._rung + 1) / self._plan.rungs, self._late) or scores
                self._why = f"took longer than {self._plan.timeout:g} s" if self._late() else ""
        except (Diverged, EnvError) as error:
            self._why = str(error)
        except SurefootError as error:  # every other trial would fail in the same way
            broken = f"{type(error).__name__}: {error}"
        self._rung += 1
        # In a population a trial that cannot continue ranks last, and so continues with another trial's weights.
        alive = not broken and (not self._why or (self._plan.scheduler == "pbt" and not self._late()))
        return {
            "number": self._order["number"],
            "rung": self._rung,
            "score": iqm(scores),
            "scores": scores,
            "seconds": time.monotonic() - self._began,
            "why": self._why,
            "broken": broken,
            "done": not alive or self._rung >= self._plan.rungs,
        }

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        root, parts = Path(checkpoint_dir), dict[str, Any]()
        if not self._why:
            try:
                parts = self._built().state()
            except RunError:  # no exact state: a lost worker starts again; a population needs the state
                if self._plan.scheduler == "pbt":
                    raise
        about = {"why": self._why, "seconds": time.monotonic() - self._began}
        save_checkpoint(root, self._rung, {ABOUT: about, **parts})
        (root / LATEST).unlink()  # not every file system that Ray copies to has links

    def load_checkpoint(self, checkpoint: Any) -> None:
        saved = load_checkpoint(Path(checkpoint))
        about = saved.parts.pop(ABOUT)
        self.cleanup()
        self._why, self._began = about["why"], time.monotonic() - about["seconds"]
        self._rung = saved.step if saved.parts or self._why else 0
        if saved.parts:
            self._trial_run = self._new()
            self._trial_run.set_state(saved.parts)

    def cleanup(self) -> None:
        if self._trial_run is not None:
            self._trial_run.close()
        self._trial_run = None

    def _built(self) -> TrialRun:
        if self._trial_run is None and self._rung == 0 and self._order["from"]:
            with suppress(CheckpointMissing, CheckpointCorrupt):  # then start from the beginning
                self.load_checkpoint(self._order["from"])
        if self._trial_run is None:
            self._trial_run = self._new()
        return self._trial_run

    def _new(self) -> TrialRun:
        return self._task.trial_run(read_params(self._task.space, self._order["params"]), self._plan.training_seeds)

    def _late(self) -> bool:
        return self._plan.timeout is not None and time.monotonic() - self._began > self._plan.timeout
