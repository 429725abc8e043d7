"""The learners of benchmarks/tools.py: ours is the agent as users get it, the others are peers with the same vectors."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from surefoot.decide.core.agent import Agent, AgentConfig
from surefoot.decide.encoders.encoder import Likeness
from surefoot.decide.policy.choosers import Chooser, Experience, LinTS, LinUCB, Residual, ZeroShot
from surefoot.decide.policy.outcome_model import Scene
from workloads.tool_streams import LATE, Moment, Task, moments

# Ridge and exploration were the best of eight settings over three streams of banking77's queries. The guess from the descriptions
# has the scale that ours has: a sigmoid of the cosine, or for `residual-soft` the softmax of the cosines.
PEERS: dict[str, Callable[[int, Likeness], Chooser]] = {
    "nearest": ZeroShot,
    "residual": lambda dim, like: Residual(dim, like, ridge=1.0),
    "residual-soft": lambda dim, like: Residual(dim, like, ridge=1.0, patience=1e9),
    "linucb": lambda dim, like: LinUCB(dim, like, ridge=1.0, alpha=0.05),
    "lints": lambda dim, like: LinTS(dim, like, ridge=1.0, spread=0.03),
}
ARMS = ("ours", *PEERS, "vw")


def vw_missing() -> bool:
    try:
        import vowpalwabbit  # noqa: F401  # pyright: ignore[reportUnusedImport, reportMissingImports]
    except ImportError:
        return True
    return False


class TableEncoder:
    """Vectors that are already known: a text ends with the row of its vector."""

    def __init__(self, likeness: Likeness, rows: np.ndarray) -> None:
        self.name, self.dim, self.likeness, self.rows = "table-1", rows.shape[1], likeness, rows

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        return self.rows[[int(text.rsplit(" ", 1)[-1]) for text in texts]]


class Ours:
    """The agent with its defaults: decide, report the outcome, learn."""

    def __init__(self, task: Task, seed: int, **config: Any) -> None:
        self.encoder = TableEncoder(task.likeness, task.tools)
        self.agent = Agent(self.encoder, config=AgentConfig(seed=seed, **config))
        self._option: np.ndarray | None = None

    def decide(self, moment: Moment) -> tuple[int, Any]:
        """Return the index of the chosen tool, -1 for none, and what `learn` needs."""
        if moment.option is not self._option:
            self._follow(moment)
        record = self.agent.decide("", vector=moment.x)
        return -1 if record.name is None else int(record.name), record

    def learn(self, record: Any, reward: float) -> None:
        if record.name is not None:
            self.agent.outcome(record.id, reward)
            self.agent.learn()

    def _follow(self, moment: Moment) -> None:
        """Add and remove tools until those of the moment are there."""
        self._option, self.encoder.rows = moment.option, moment.described
        wanted, options = {str(i) for i in moment.option}, self.agent.options
        for name in sorted(wanted - set(options.names), key=int):
            options.add(name, f"row {name}")
        for name in set(options.names) - wanted:
            options.remove(name)


class Peer:
    """A chooser without an agent around it."""

    def __init__(self, chooser: Chooser, seed: int) -> None:
        self.chooser, self._generator = chooser, np.random.default_rng([seed, 1])

    def decide(self, moment: Moment) -> tuple[int, Any]:
        every = len(moment.option) == len(moment.described)
        cosine = (moment.described if every else moment.described[moment.option]) @ moment.x
        scene = Scene(x=moment.x, option=moment.option, cosine=cosine)
        choice = self.chooser.choose(scene, self._generator)
        return int(moment.option[choice.at]), (scene, choice)

    def learn(self, record: Any, reward: float) -> None:
        scene, choice = record
        self.chooser.learn([[Experience(scene=scene, choice=choice, reward=reward)]])


def make(arm: str, task: Task, seed: int) -> Ours | Peer:
    """Return a fresh learner."""
    dim = task.x.shape[1]
    if arm == "ours":
        return Ours(task, seed)
    if arm == "vw":
        from workloads.vw_chooser import VW

        return Peer(VW(dim, task.likeness, seed=seed, gamma=1000.0, rate=0.5), seed)
    return Peer(PEERS[arm](dim, task.likeness), seed)


def play(learner: Ours | Peer, task: Task, regime: str, seed: int, count: int) -> np.ndarray:
    """Return the true successes of one pass, [decisions] bool. Refused queries are no successes."""
    right, waiting = list[bool](), deque[tuple[Any, float] | None]()
    for moment in moments(task, regime, seed, count):
        chosen, record = learner.decide(moment)
        right.append(chosen == moment.right)
        waiting.append((record, float(right[-1] != moment.flipped)) if moment.observed else None)
        if regime != "late" or len(waiting) > LATE:
            outcome = waiting.popleft()
            if outcome is not None:
                learner.learn(*outcome)
    return np.array(right, bool)
