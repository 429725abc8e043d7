"""Training from live rollouts, from replay, or from both in turn. A resumed run continues with the same turn and batch."""

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

# Metrics of the samples that go into the report, by the names of telemetry 1.0.
BASELINE = ("sample_count", "reward_mean", "reward_sum", "reward_sum_mean", "log_prob_mean")
# Shares such as 0.3 are not exact in binary: without it 10 · 0.3 could count as 2.
ROUNDING = 1e-9


class Cycles:
    """A `Training` of which some updates learn from old data.

    The share `replay` (0 … 1) of its updates uses `dataset`, the last `recent` live rollouts, or both in turn, spread
    evenly. Which kind an update is follows from its number alone.
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
            raise ConfigError(f"replay is {replay}; it must be a share of the updates, 0 to 1")
        if replay > 0.0 and dataset is None and recent < 1:
            raise ConfigError("replay needs data: pass samples of a manifest, or recent=1 or more")
        if replay == 1.0 and dataset is None:
            raise ConfigError("replay=1 makes no live rollouts that could be replayed; pass samples of a manifest")
        if training.spec.collect.normalize_reward and dataset is not None:
            raise ConfigError("samples hold raw rewards; normalize_reward must be off to learn from them")
        self.training, self.replay, self.dataset = training, replay, dataset
        # `Run` and the command line use these parts of a training or of a `Cycles` alike.
        self.spec, self.device, self.make, self.world = training.spec, training.device, training.make, training.world
        self.policy, self.learner, self.collector = training.policy, training.learner, training.collector
        self.take_losses, self.close = training.take_losses, training.close
        self.rules, self.updates = rules or ReplayRules(), updates
        self.recent: deque[Rollout] = deque(maxlen=max(recent, 0))
        self.stale = 0
        """Batches in a row that were too old to learn from."""
        self.cycle = 0
        """Live rollouts so far."""

    @property
    def env_steps(self) -> int:
        """Live steps."""
        return self.training.env_steps

    @property
    def mode(self) -> str:
        """Return "rollout", "replay" or "mixed"."""
        return "rollout" if self.replay == 0.0 else "replay" if self.replay == 1.0 else "mixed"

    @property
    def finished(self) -> bool:
        """Whether the number of updates, or else of live steps, is reached."""
        return self.learner.updates >= self.updates if self.updates is not None else self.training.finished

    def is_replay(self, update: int) -> bool:
        """Return whether the update of this number, counted from 0, uses old data."""
        return int((update + 1) * self.replay + ROUNDING) > int(update * self.replay + ROUNDING)

    def update(self) -> UpdateReport:
        """Make one update, live or from replay."""
        number = self.learner.updates
        if self.is_replay(number):
            return self.update_from_replay(int(number * self.replay + ROUNDING))
        rollouts: list[Rollout] = []
        report = self.training.update(rollouts)
        self.recent.append(rollouts[-1])
        report.stats["cycle_id"] = float(self.cycle)
        self.cycle += 1
        return report

    def update_from_replay(self, turn: int) -> UpdateReport:
        """Learn from old data, for the `turn`-th time."""
        learner, ppo = self.learner, self.spec.ppo
        same_run = bool(self.recent)
        if same_run and (self.dataset is None or turn % 2 == 0):
            rollout = self.recent[-1 - (turn % len(self.recent))]
            # Without its stats: its episodes were counted when they were collected.
            rollout = replace(rollout, valid=rollout.valid.copy(), stats={})
        elif self.dataset is None:
            raise ReplayError("there is nothing to replay yet; the first update of a mixed run must be live")
        else:
            lap, same_run = turn // 2 if same_run else turn, False
            rollout = self.dataset.batch(lap).rollout(unknown_version=learner.policy_version)
        renewed, assessment = renew(
            rollout,
            self.policy,
            self.rules,
            gamma=ppo.gamma,
            lam=ppo.lam,
            version=learner.policy_version,
            device=self.device,
            same_run=same_run,
        )
        self.stale = 0 if assessment.stale is None else self.stale + 1
        if assessment.stale is not None:
            # Replay alone makes no new data: once a full lap was stale, every later one will be.
            if self.mode == "replay" and self.dataset is not None and self.stale >= len(self.dataset):
                raise ReplayError(
                    f"every sample is stale: {assessment.stale}; capture new ones, or lower min_sample_size"
                )
            renewed.valid[...] = False
        progress = min(1.0, self.env_steps / self.spec.total_steps) if self.mode == "mixed" else None
        report = learner.update(renewed, progress=progress)
        report.seconds.update({**self.collector.seconds, "collect": 0.0})
        cycle = float(max(0, self.cycle - 1))
        report.stats.update(from_replay=1.0, stale_batches=float(self.stale), rollout_ticks=0.0, cycle_id=cycle)
        if not same_run and self.dataset is not None:
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
        recent = {
            str(i): {
                "arrays": {n: x for n, x in r.arrays().items() if "." not in n and n != "ref_log_prob"},
                "obs": dict(r.obs),
            }
            for i, r in enumerate(self.recent)
        }
        return {**self.training.state(), "cycles": {"recent": recent, "stale": self.stale, "cycle": self.cycle}}

    def set_state(self, parts: dict[str, Any]) -> None:
        """Continue from a checkpoint's parts."""
        self.training.set_state(parts)
        # A run that was plain PPO before has no cycles yet.
        saved = parts.get("cycles", {"recent": {}, "stale": 0, "cycle": 0})
        self.recent.clear()
        for i in range(len(saved["recent"])):
            entry = saved["recent"][str(i)]
            self.recent.append(Rollout(obs=dict(entry["obs"]), **entry["arrays"]))
        self.stale, self.cycle = int(saved["stale"]), int(saved["cycle"])
