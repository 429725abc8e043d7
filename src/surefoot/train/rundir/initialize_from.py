"""A training that begins with another run's weights: cloned, or learned elsewhere. Its optimiser starts fresh."""

from __future__ import annotations

from pathlib import Path

from surefoot.nets.actor_critic import ActorCritic, policy_from_description
from surefoot.nets.policy import load_weights
from surefoot.train.assemble import read_model
from surefoot.train.predict import refuse_other_spaces
from surefoot.train.training import Training


def adopt(training: Training, path: Path) -> int:
    """Put the weights of a run, or of a saved model, into `training`; the number of updates they have behind them.

    What belongs to the weights comes along: observation statistics, and the scale of the rewards that the critic knows.
    Counters, schedules and the optimiser's memory do not.
    """
    saved = read_model(path)
    if isinstance(training.policy, ActorCritic) and not saved.parts["policy"].get("own_module", True):
        theirs = policy_from_description(saved.parts["policy"])
        refuse_other_spaces(theirs.observation, theirs.action, training.world)
    load_weights(training.policy, saved.parts["weights"])
    scaler, known = training.collector.scaler, saved.parts["collector"]["scaler"]
    if saved.spec.collect.normalize_reward and training.spec.collect.normalize_reward:
        scaler.mean, scaler.var, scaler.count = known["mean"], known["var"], known["count"]
    return int(saved.parts["learner"]["updates"])
