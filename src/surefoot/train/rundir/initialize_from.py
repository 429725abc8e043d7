"""Starts a training with the weights of another run. The optimizer starts fresh."""

from __future__ import annotations

from pathlib import Path

from surefoot.nets.actor_critic import ActorCritic, policy_from_description
from surefoot.nets.policy import load_weights
from surefoot.train.assemble import read_model
from surefoot.train.predict import refuse_other_spaces
from surefoot.train.training import Training


def adopt(training: Training, path: Path) -> int:
    """Load the weights of a run or a saved model into `training`. Return the number of updates behind them.

    Observation statistics and the reward scale of the critic are loaded too; counters, schedules and the optimizer's state
    are not.
    """
    saved = read_model(path)
    # A description of the spaces exists only for networks of this package; for others `load_weights` compares shapes.
    if isinstance(training.policy, ActorCritic) and not saved.parts["policy"].get("own_module", True):
        source = policy_from_description(saved.parts["policy"])
        refuse_other_spaces(source.observation, source.action, training.world)
    load_weights(training.policy, saved.parts["weights"])
    scaler, known = training.collector.scaler, saved.parts["collector"]["scaler"]
    # The critic's values are in units of this scale, so both runs must use it.
    if saved.spec.collect.normalize_reward and training.spec.collect.normalize_reward:
        scaler.mean, scaler.var, scaler.count = known["mean"], known["var"], known["count"]
    return int(saved.parts["learner"]["updates"])
