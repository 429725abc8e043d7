"""Nodes that look and keep: evaluation, record, checkpoint, plot, print."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.data.kinds import Interval, choice, flag, whole
from surefoot.graph.nodes.param_kinds import folder, text
from surefoot.graph.nodes.worlds import BACKENDS, env_id
from surefoot.graph.spec.declare import NodeType, Param, Port
from surefoot.graph.spec.types import ANY, EPISODES, LEARNER, MODEL, NUMBER, TABLE, TICK, TRIGGER, Clock, when


def _sometimes(given: Mapping[str, Clock], *outputs: str) -> tuple[Clock, dict[str, Clock]]:
    fires = given.get("trigger", TICK)
    return fires, dict.fromkeys(outputs, when(outputs[0]))


_EVERY = Param("every", whole(Interval(1, 10**9)), "Only each so-many-th time.", 1)
_FOLDER = folder()

NODES = (
    NodeType(
        name="Evaluation",
        category="Look",
        summary="Plays whole episodes with the network as it is, in environments and on seeds that training never sees.",
        inputs=(
            Port("trigger", TRIGGER, "When: training_complete."),
            Port("model", MODEL, "Whose.", sampled=True),
        ),
        params=(
            Param("env_id", env_id(), "Where."),
            Param("episodes", whole(Interval(1, 10_000)), "How many.", 10),
            Param("every", whole(Interval(1, 10**9)), "Only each so-many-th update.", 10),
            Param("backend", choice(*BACKENDS), "Whose implementation.", "auto"),
        ),
        outputs=(
            Port("mean_return", NUMBER, "The score."),
            Port("std_return", NUMBER, "Its spread over episodes."),
        ),
        calls="surefoot.train.evaluate.play",
        effect="rng",
        needs=("seed", "path"),
        clocks=lambda params, given: _sometimes(given, "mean_return", "std_return"),
    ),
    NodeType(
        name="Recorder",
        category="Look",
        summary="Writes the run's record, telemetry.ndjson, which the dashboard, the doctor and the report read.",
        inputs=(
            Port("loss_info", TABLE, "Of the trainer."),
            Port("episodes", EPISODES, "Of the trainer.", optional=True),
        ),
        params=(Param("folder", _FOLDER, "Where, below the run's directory.", "."),),
        calls="surefoot.telemetry.writer.Recorder",
        effect="io",
        needs=("seed", "total_steps", "folder"),
    ),
    NodeType(
        name="Checkpoint",
        category="Look",
        summary="Saves weights, optimiser and counters so that a kill at any moment leaves a whole one.",
        inputs=(
            Port("trigger", TRIGGER, "When: training_complete."),
            Port("learner", LEARNER, "Of the trainer."),
        ),
        params=(
            Param("every", whole(Interval(1, 10**9)), "Only each so-many-th update.", 10),
            Param("keep", whole(Interval(1, 1000)), "How many of the newest stay.", 3),
            Param("folder", _FOLDER, "Where, below the run's directory.", "checkpoints"),
        ),
        outputs=(Port("saved", NUMBER, "The update that was saved."),),
        calls="surefoot.learn.checkpoint.checkpoint.save_checkpoint",
        effect="io",
        needs=("folder",),
        clocks=lambda params, given: _sometimes(given, "saved"),
    ),
    NodeType(
        name="Plot",
        category="Look",
        summary="Keeps the last values of a number for a curve.",
        inputs=(Port("value", ANY, "A number, or a table of them."),),
        params=(
            Param("title", text(100), "Above the curve.", ""),
            Param("points", whole(Interval(1, 100_000)), "How many are kept.", 1000),
        ),
        effect="state",
    ),
    NodeType(
        name="Print",
        category="Look",
        summary="Prints what comes, in one line.",
        inputs=(Port("value", ANY, "Anything."),),
        params=(
            Param("prefix", text(100), "Before it.", ""),
            _EVERY,
            Param("enabled", flag(), "False prints nothing.", True),
        ),
        calls="print",
        effect="io",
    ),
)
