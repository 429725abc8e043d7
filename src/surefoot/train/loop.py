"""The training loop as iterators: the caller decides what happens between two updates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from surefoot.data.rollout import Rollout
from surefoot.learn.learner import Learner
from surefoot.learn.report import UpdateReport
from surefoot.train.collect.collector import Collector


def live(collector: Collector, learner: Learner) -> Iterator[Rollout]:
    """Yield fresh rollouts forever, each collected with the current weights of the learner's policy.

    Args:
        collector: Collects the rollouts.
        learner: Its policy acts; its policy version is stored in the rollouts.
    """
    while True:
        with learner.acting():
            rollout = collector.collect(learner.policy_version)
        yield rollout


def training_loop(rollouts: Iterable[Rollout], learner: Learner) -> Iterator[UpdateReport]:
    """Yield one report per update. The report of an update is yielded before the next rollout is collected.

    Args:
        rollouts: Where the rollouts come from, as `live(collector, learner)`.
        learner: Learns from each of them.
    """
    for rollout in rollouts:
        yield learner.update(rollout)
