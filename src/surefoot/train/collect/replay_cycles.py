"""Training from live rollouts, from replay, or from both in turn; resumed, it goes on with the same turn and batch."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

from surefoot.data.replayset import ReplayDataset
from surefoot.data.rollout import Rollout
from surefoot.errors import ConfigError, ReplayError
from surefoot.learn.report import UpdateReport
from surefoot.train.collect.offpolicy import ReplayRules, renew
from surefoot.train.training import Training

BASELINE = ("sample_count", "reward_mean", "reward_sum", "reward_sum_mean", "log_prob_mean")
"""Metrics of the samples themselves that go into the report, by the names of telemetry 1.0."""


class Cycles:
    """A `Training` of which some updates learn from old data.

    Of its updates the share `replay` (0 … 1) is from `dataset`, or from the last `recent` live rollouts of its own, or
    from both in turn; they are spread evenly. Whose turn it is follows from the number of updates alone.
    """

    def __init__(
        self,
        training: Training,
        *,
        replay: float,
        dataset: ReplayDataset | None = None,
        recent: int = 0,
        rules: ReplayRules | None = None,
        updates: int | None = None,
    ) -> None:
        if not 0.0 <= replay <= 1.0:
            raise ConfigError(f"replay is {replay}; it is a share of the updates, 0 to 1")
        if replay > 0.0 and dataset is None and recent < 1:
            raise ConfigError("replay needs something to replay: samples of a manifest, or recent=1 rollouts or more")
        if replay == 1.0 and dataset is None:
            raise ConfigError(
                "with nothing but replay there are no live rollouts to keep; samples of a manifest are needed"
            )
        if training.spec.collect.normalize_reward and dataset is not None:
            raise ConfigError("samples hold raw rewards, so normalize_reward must be off where they are learned from")
        self.training, self.replay, self.dataset = training, replay, dataset
        # A cycle stands in for its training, so it shows the same parts.
        self.spec, self.device, self.make, self.world = training.spec, training.device, training.make, training.world
        self.policy, self.learner, self.collector = training.policy, training.learner, training.collector
        self.take_losses, self.close = training.take_losses, training.close
        self.rules, self.updates = rules or ReplayRules(), updates
        self.recent: deque[Rollout] = deque(maxlen=max(recent, 1))
        self.keep = recent > 0
        self.stale = 0
        """Batches that were too old to learn from."""
        self.cycle = 0
        """Live rollouts so far."""

    @property
    def env_steps(self) -> int:
        """Live steps."""
        return self.training.env_steps

    @property
    def mode(self) -> str:
        """rollout, replay or mixed."""
        return "rollout" if self.replay == 0.0 else "replay" if self.replay == 1.0 else "mixed"

    @property
    def finished(self) -> bool:
        """True once the live steps, or the number of updates where that is said, are done."""
        return self.learner.updates >= self.updates if self.updates is not None else self.training.finished

    def is_replay(self, update: int) -> bool:
        """Whether update number `update`, counted from 0, is from old data."""
        return int((update + 1) * self.replay + 1e-9) > int(update * self.replay + 1e-9)

    def update(self) -> UpdateReport:
        """One update, live or from replay."""
        number = self.learner.updates
        if self.is_replay(number):
            return self.update_from_replay(int(number * self.replay + 1e-9))
        kept: list[Rollout] = []
        report = self.training.update(kept)
        if self.keep:
            self.recent.append(kept[-1])
        report.stats["cycle_id"] = float(self.cycle)
        self.cycle += 1
        return report

    def update_from_replay(self, turn: int) -> UpdateReport:
        """Learn from old data, the `turn`-th time."""
        learner, ppo = self.learner, self.spec.ppo
        own = bool(self.recent) and self.keep
        if own and (self.dataset is None or turn % 2 == 0):
            rollout = self.recent[-1 - (turn % len(self.recent))]
            # Its episodes were counted when they were collected.
            rollout = replace(rollout, valid=rollout.valid.copy(), stats={})
        elif self.dataset is None:
            raise ReplayError("nothing to replay yet: the first update of a mixed run must be live")
        else:
            lap, own = turn // 2 if own else turn, False
            rollout = self.dataset.batch(lap).rollout(unknown_version=learner.policy_version)
        fit, judged = renew(
            rollout,
            self.policy,
            self.rules,
            gamma=ppo.gamma,
            lam=ppo.lam,
            version=learner.policy_version,
            device=self.device,
            same_run=own,
        )
        if judged.stale is not None:
            self.stale += 1
            if self.mode == "replay" and self.dataset is not None and self.stale >= len(self.dataset):
                raise ReplayError(f"every sample is stale: {judged.stale}; capture new ones, or lower min_sample_size")
            fit.valid[...] = False
        else:
            self.stale = 0
        progress = min(1.0, self.env_steps / self.spec.total_steps) if self.mode == "mixed" else None
        report = learner.update(fit, progress=progress)
        report.seconds.update({**self.collector.seconds, "collect": 0.0})
        cycle = float(max(0, self.cycle - 1))
        report.stats.update(from_replay=1.0, stale_batches=float(self.stale), rollout_ticks=0.0, cycle_id=cycle)
        if not own and self.dataset is not None:
            known = self.dataset.baseline_metrics
            report.stats.update({f"baseline_{name}": known[name] for name in BASELINE if name in known})
        return report

    def __iter__(self) -> Cycles:
        return self

    def __next__(self) -> UpdateReport:
        if self.finished:
            raise StopIteration
        return self.update()

    def state(self) -> dict[str, Any]:
        """The parts of a checkpoint."""
        kept = {
            str(i): {
                "arrays": {n: x for n, x in r.arrays().items() if "." not in n and n != "ref_log_prob"},
                "obs": dict(r.obs),
            }
            for i, r in enumerate(self.recent)
        }
        return {**self.training.state(), "cycles": {"recent": kept, "stale": self.stale, "cycle": self.cycle}}

    def set_state(self, parts: dict[str, Any]) -> None:
        """Go on from a checkpoint's parts."""
        self.training.set_state(parts)
        mine = parts.get("cycles", {"recent": {}, "stale": 0, "cycle": 0})
        self.recent.clear()
        for i in range(len(mine["recent"])):
            kept = mine["recent"][str(i)]
            self.recent.append(Rollout(obs=dict(kept["obs"]), **kept["arrays"]))
        self.stale, self.cycle = int(mine["stale"]), int(mine["cycle"])
