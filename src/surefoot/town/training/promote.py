"""Promotion: a candidate must pass the gates several times before it becomes the release; earlier releases are kept."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from surefoot.errors import CheckpointError
from surefoot.town.sim.measure import SMALLER_IS_BETTER

Decision = Literal["PROMOTE", "HOLD", "FAIL"]
HISTORY = 50


@dataclass(slots=True, kw_only=True)
class Promotion:
    """The releases of one town; `state` goes from monitoring to ready to promoted."""

    state: str = "monitoring"
    pass_streak: int = 0
    required_passes: int = 2
    candidate: str | None = None
    """The hash of the policy that is being examined."""
    current_release: dict[str, Any] | None = None
    initial_release: dict[str, Any] | None = None
    last_result: str | None = None
    history: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def candidate_ready(self) -> bool:
        """True once the candidate has passed often enough."""
        return self.pass_streak >= self.required_passes

    def evaluated(self, candidate: str, reasons: Sequence[str], *, failed: bool) -> Decision:
        """Record one examination and return the decision; a new candidate starts with no passes."""
        if candidate != self.candidate:
            self.candidate, self.pass_streak = candidate, 0
        if failed or reasons:
            self.pass_streak, self.state = 0, "monitoring"
            self.last_result = "FAIL" if failed else "HOLD"
        else:
            self.pass_streak += 1
            self.state = "ready" if self.candidate_ready else "monitoring"
            self.last_result = "PROMOTE" if self.candidate_ready else "HOLD"
        self._note(self.last_result, candidate=candidate, reasons=list(reasons))
        decision: Any = self.last_result
        return decision

    def promoted(self, release: Mapping[str, Any]) -> None:
        """Make the candidate the release; the one before stays in the history."""
        self._note("promoted", release=dict(release), before=self.current_release)
        self.current_release = dict(release)
        self.initial_release = self.initial_release or dict(release)
        self.state, self.candidate, self.pass_streak = "promoted", None, 0

    def rolled_back(self) -> dict[str, Any] | None:
        """Go back to the release before the current one and return it; None: the script takes over."""
        if self.current_release is None:
            raise CheckpointError("nothing was promoted here, so there is nothing to take back")
        before = next(
            (
                entry["before"]
                for entry in reversed(self.history)
                if entry["what"] == "promoted" and entry["release"] == self.current_release
            ),
            None,
        )
        self._note("rolled_back", release=self.current_release)
        self.current_release, self.state = before, "monitoring"
        return before

    def _note(self, what: str, **about: Any) -> None:
        self.history.append({"what": what, **about})
        del self.history[:-HISTORY]

    def save(self, path: Path) -> None:
        """Write the file atomically."""
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")
        temporary.replace(path)

    @classmethod
    def load(cls, path: Path) -> Promotion:
        """Read what `save` wrote; return a new one if there is no file."""
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return cls()
        except (ValueError, TypeError) as why:
            raise CheckpointError(f"{path} is not the state of a promotion: {why}") from why


def worse_measures(
    candidate: Mapping[str, np.ndarray],
    release: Mapping[str, np.ndarray],
    measures: Sequence[str],
    *,
    tolerance: float = 0.02,
    named: str = "release",
) -> list[str]:
    """Return a sentence per measure in which the candidate's interval lies beyond the release's mean by the tolerance."""
    sentences: list[str] = []
    for name in measures:
        mine, theirs = candidate[name], release[name]
        margin = 1.96 * float(mine.std()) / max(len(mine), 1) ** 0.5 + tolerance * max(abs(float(theirs.mean())), 1e-3)
        worse = float(mine.mean() - theirs.mean()) * (1.0 if name in SMALLER_IS_BETTER else -1.0)
        if worse > margin:
            sentences.append(f"{name} is {mine.mean():.4g}, the {named}'s is {theirs.mean():.4g}")
    return sentences
