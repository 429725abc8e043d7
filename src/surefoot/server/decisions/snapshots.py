"""Versions of a served policy: what is saved, and how a policy continues from it."""

from __future__ import annotations

from typing import Any

import numpy as np

from surefoot.decide.policy.experience_log import Log
from surefoot.decide.policy.outcome_model import BIAS
from surefoot.decide.policy.replay import ReplayChooser
from surefoot.errors import CheckpointIncompatible
from surefoot.learn.checkpoint.typed_state import restoring
from surefoot.server.decisions.served_policy import ServedPolicy


def snapshot(serving: ServedPolicy) -> dict[str, Any]:
    """Return the parts of a version: weights and counters, without the log, which is in the store."""
    state = serving.agent.state()
    chooser = state["chooser"]
    written = chooser.pop("log")["written"]
    return {
        "weights": {"table": chooser.pop("table"), **_evaluable(serving, chooser["none"])},
        **state,
        "service": {
            "cursor": serving.agent.cursor,
            "observed": serving.observed,
            "draws": serving.agent.draws,
            "written": written,
            "inputs": serving.inputs.state(),
        },
    }


def _evaluable(serving: ServedPolicy, none: float) -> dict[str, np.ndarray]:
    """Return what else a client needs to evaluate a version; nothing for a policy over candidates, which bring their own."""
    if serving.config.choose != "actions":
        return {}
    agent, config = serving.agent, serving.learner.config
    like, cosines, options = agent.encoder.likeness, agent.cosines, agent.options
    # In this order in ExportedPolicy of the TypeScript client. Embeddings of texts have length 1.
    settings = (
        *(like.sharpness, float(like.relative), cosines.mean, cosines.deviation),
        *(serving.inputs.length, like.sharpness * like.middle + BIAS * none, config.sharpness, config.floor),
    )
    present = [float(options.name(index) in options) for index in range(options.highest)]
    return {
        "descriptions": options.vectors.copy(),
        "present": np.array(present, np.float32),
        "settings": np.array(settings, np.float32),
    }


@restoring("served policy")
def restore(serving: ServedPolicy, parts: dict[str, Any], log: Log) -> None:
    """Continue from the parts of a version, with the outcomes it has learned from."""
    require_readable(parts)
    service, logged = parts["service"], log.state()
    chooser = {**parts["chooser"], "table": parts["weights"]["table"], "log": logged}
    written = int(service["written"])
    if len(log) == min(written, log.capacity):
        # In the same places as before: replay draws places, and must draw the same outcomes.
        turn = written % log.capacity if written > log.capacity else 0
        logged["columns"] = {name: np.roll(column, turn, axis=0) for name, column in logged["columns"].items()}
        logged["written"] = written
    else:  # outcomes were deleted from the store
        chooser["usable"] = np.ones(max(64, len(log)), bool)
    serving.agent.set_state({"agent": parts["agent"], "chooser": chooser})
    serving.describe_options()
    serving.agent.cursor, serving.observed = int(service["cursor"]), int(service["observed"])
    serving.order, serving.agent.draws = serving.agent.cursor, int(service["draws"])
    serving.inputs.set_state(service["inputs"])


@restoring("served policy")
def version_chooser(serving: ServedPolicy, number: int) -> ReplayChooser:
    """Return the chooser of a saved version; it has no log and does not learn."""
    parts: dict[str, Any] = serving.versions.load(number).parts
    require_readable(parts)
    learner = serving.learner
    chooser = ReplayChooser(learner.dim, learner.likeness, config=learner.config)
    table = {"table": parts["weights"]["table"], "log": Log(learner.dim, learner.config.log).state()}
    chooser.set_state({**parts["chooser"], **table})
    return chooser


def require_readable(parts: dict[str, Any]) -> None:
    """Raise if a version is not of this learner."""
    if "service" not in parts:
        raise CheckpointIncompatible("it was made by an earlier version of surefoot, with another learner")
