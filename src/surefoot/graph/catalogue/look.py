"""Nodes that look and keep: evaluation, record, checkpoint, plot, print."""

from __future__ import annotations

from collections.abc import Mapping

from surefoot.data.kinds import Interval, choice, flag, whole
from surefoot.graph.catalogue.kinds import folder, text
from surefoot.graph.catalogue.worlds import BACKENDS, env_id
from surefoot.graph.spec.declare import NodeType, Param, Port
from surefoot.graph.spec.types import ANY, TICK, Clock, Type, when


def _sometimes(given: Mapping[str, Clock], *outputs: str) -> tuple[Clock, dict[str, Clock]]:
    fires = given.get("trigger", TICK)
    return fires, dict.fromkeys(outputs, when(outputs[0]))


_EVERY = Param(name="every", kind=whole(Interval(1, 10**9)), help="Only each so-many-th time.", default=1)
_FOLDER = folder()

NODES = (
    NodeType(
        name="Evaluation",
        category="Look",
        summary="Plays whole episodes with the network as it is, in environments and on seeds that training never sees.",
        inputs=(
            Port(name="trigger", type=Type("trigger"), help="When: training_complete."),
            Port(name="model", type=Type("model"), help="Whose.", sampled=True),
        ),
        params=(
            Param(name="env_id", kind=env_id(), help="Where."),
            Param(name="episodes", kind=whole(Interval(1, 10_000)), help="How many.", default=10),
            Param(name="every", kind=whole(Interval(1, 10**9)), help="Only each so-many-th update.", default=10),
            Param(name="backend", kind=choice(*BACKENDS), help="Whose implementation.", default="auto"),
        ),
        outputs=(
            Port(name="mean_return", type=Type("number"), help="The score."),
            Port(name="std_return", type=Type("number"), help="Its spread over episodes."),
        ),
        runtime="surefoot.graph.nodes.look:Evaluation",
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
            Port(name="loss_info", type=Type("dict"), help="Of the trainer."),
            Port(name="episodes", type=Type("episodes"), help="Of the trainer.", optional=True),
        ),
        params=(Param(name="folder", kind=_FOLDER, help="Where, below the run's directory.", default="."),),
        runtime="surefoot.graph.nodes.look:Recorder",
        calls="surefoot.telemetry.writer.Recorder",
        effect="io",
        needs=("seed", "total_steps", "folder"),
    ),
    NodeType(
        name="Checkpoint",
        category="Look",
        summary="Saves weights, optimiser and counters so that a kill at any moment leaves a whole one.",
        inputs=(
            Port(name="trigger", type=Type("trigger"), help="When: training_complete."),
            Port(name="learner", type=Type("learner"), help="Of the trainer."),
        ),
        params=(
            Param(name="every", kind=whole(Interval(1, 10**9)), help="Only each so-many-th update.", default=10),
            Param(name="keep", kind=whole(Interval(1, 1000)), help="How many of the newest stay.", default=3),
            Param(name="folder", kind=_FOLDER, help="Where, below the run's directory.", default="checkpoints"),
        ),
        outputs=(Port(name="saved", type=Type("number"), help="The update that was saved."),),
        runtime="surefoot.graph.nodes.look:CheckpointNode",
        calls="surefoot.learn.checkpoint.checkpoint.save_checkpoint",
        effect="io",
        needs=("folder",),
        clocks=lambda params, given: _sometimes(given, "saved"),
    ),
    NodeType(
        name="Plot",
        category="Look",
        summary="Keeps the last values of a number for a curve.",
        inputs=(Port(name="value", type=ANY, help="A number, or a table of them."),),
        params=(
            Param(name="title", kind=text(100), help="Above the curve.", default=""),
            Param(name="points", kind=whole(Interval(1, 100_000)), help="How many are kept.", default=1000),
        ),
        runtime="surefoot.graph.nodes.look:Plot",
        calls="",
        effect="state",
    ),
    NodeType(
        name="Print",
        category="Look",
        summary="Prints what comes, in one line.",
        inputs=(Port(name="value", type=ANY, help="Anything."),),
        params=(
            Param(name="prefix", kind=text(100), help="Before it.", default=""),
            _EVERY,
            Param(name="enabled", kind=flag(), help="False prints nothing.", default=True),
        ),
        runtime="surefoot.graph.nodes.look:Print",
        calls="print",
        effect="io",
        aliases=("PrintValue", "DebugPrintNode"),
    ),
)
