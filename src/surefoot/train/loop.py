"""The loop as iterators: rollouts go by, reports come out, and whoever iterates decides what happens in between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from surefoot.data.rollout import Rollout
from surefoot.learn.learner import Learner
from surefoot.learn.report import UpdateReport
from surefoot.train.collect.collector import Collector


def live(collector: Collector, learner: Learner) -> Iterator[Rollout]:
    """Fresh rollouts for ever, each made by the learner's policy of that moment."""
    while True:
        with learner.acting():
            rollout = collector.collect(learner.policy_version)
        yield rollout


def train(rollouts: Iterable[Rollout], learner: Learner) -> Iterator[UpdateReport]:
    """Learn from each rollout as it comes; the report is yielded before the next rollout is made."""
    for rollout in rollouts:
        yield learner.update(rollout)


def timed(report: UpdateReport, collector: Collector) -> UpdateReport:
    """The report, with the collector's times put beside the learner's."""
    report.seconds.update(collector.seconds)
    return report
