"""Tasks that need two tools in the right order, where every call costs and only the finished task pays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from surefoot.decide.encoders.encoder import Encoder
from surefoot.decide.policy.choosers import Chooser, Experience
from surefoot.decide.policy.outcome_model import Scene

TOOLS = {
    "answer": "answer a question in words from what is known",
    "search": "search the documents for a number or a passage",
    "calc": "calculate with numbers",
    "query": "query the database for rows, totals and prices",
    "notion_write": "write a note and keep it",
    "stop": "stop: give up or be done",
}
NAMES = list(TOOLS)
CHAINS = {
    ("search", "calc"): "how much is {n} percent of the budget named in the plan for {s}",
    ("query", "notion_write"): "write down in a note how many orders there are for {s} this month",
    ("query", "calc"): "what do {n} pieces of {s} cost together at the price in the table",
    ("search", "notion_write"): "keep a note of what the handbook says about {s}",
    ("calc",): "calculate {n} times {n} for {s}",
    ("answer",): "explain in words what {s} is",
}
SUBJECTS = (
    *(
        "shoes",
        "bread",
        "tickets",
        "the garden",
        "the kitchen",
        "the new office",
        "paper",
        "coffee",
        "travel",
        "the party",
    ),
    *(
        "bicycles",
        "lamps",
        "the school",
        "windows",
        "chairs",
        "software",
        "the museum",
        "milk",
        "insurance",
        "the workshop",
    ),
)
COST, MOST_CALLS = 0.1, 4


@dataclass
class Task:
    """One query on its way: what was called so far, and what is still needed."""

    vector: np.ndarray
    chain: tuple[str, ...]
    called: list[str] = field(default_factory=list[str])

    def scene(self, tools: np.ndarray) -> Scene:
        """The query and the last two calls; without them no policy could know where it stands."""
        before = np.zeros(2 * len(NAMES), np.float32)
        for k, name in enumerate(self.called[-2:]):
            before[k * len(NAMES) + NAMES.index(name)] = 0.7
        return Scene(x=np.concatenate([self.vector, before]), option=np.arange(len(NAMES)), cosine=tools @ self.vector)

    def call(self, name: str) -> tuple[float, bool]:
        """Reward and whether it is over: a call costs, the last one of the chain in the right order pays 1."""
        if name == "stop":
            return 0.0, True
        self.called.append(name)
        done = tuple(self.called[-len(self.chain) :]) == self.chain
        return float(done) - COST, done or len(self.called) == MOST_CALLS


class World:
    """Queries at random, from the templates."""

    def __init__(self, encoder: Encoder, seed: int) -> None:
        self.generator, self.encoder = np.random.default_rng([seed, 5]), encoder
        self.tools = encoder.encode(list(TOOLS.values()))
        self._vectors: dict[str, np.ndarray] = {}

    def task(self) -> Task:
        chain = list(CHAINS)[int(self.generator.integers(len(CHAINS)))]
        subject = SUBJECTS[int(self.generator.integers(len(SUBJECTS)))]
        text = CHAINS[chain].format(s=subject, n=int(self.generator.integers(2, 60)))
        if text not in self._vectors:
            self._vectors[text] = self.encoder.encode([text])[0]
        return Task(self._vectors[text], chain)


def run(chooser: Chooser, encoder: Encoder, seed: int, episodes: int, *, whole: bool) -> list[float]:
    """Return of each episode. `whole`: the chooser gets whole episodes; else every step is an episode of its own."""
    world, generator, returns = World(encoder, seed), np.random.default_rng([seed, 6]), list[float]()
    for _ in range(episodes):
        task, steps, over = world.task(), list[Experience](), False
        while not over:
            scene = task.scene(world.tools)
            choice = chooser.choose(scene, generator)
            reward, over = task.call(NAMES[choice.at])
            steps.append(Experience(scene=scene, choice=choice, reward=reward))
        returns.append(sum(step.reward for step in steps))
        chooser.learn([steps] if whole else [[step] for step in steps])
    return returns


def best() -> float:
    """Mean return of who knows every chain."""
    return float(np.mean([1.0 - COST * len(chain) for chain in CHAINS]))


def thirds(returns: Sequence[float]) -> tuple[float, float]:
    """Mean of all, and of the last third."""
    return float(np.mean(returns)), float(np.mean(returns[-len(returns) // 3 :]))
