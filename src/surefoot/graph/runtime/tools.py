"""Tool-selection nodes: the library's questions, encoder, agent and tools, one batch of decisions per tick."""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surefoot.data.seeds import seed_for
from surefoot.decide.core.agent import Agent, AgentConfig
from surefoot.decide.core.record import DecisionRecord
from surefoot.decide.encoders.encoder import Encoder, make_encoder
from surefoot.decide.policy.replay import ReplayChooser
from surefoot.decide.policy.replay_config import ReplayConfig
from surefoot.decide.rewards import RewardFacts, reward_of
from surefoot.decide.tools.memory import TextMemory
from surefoot.decide.tools.protocol import Toolbox, ToolRequest, ToolResult
from surefoot.decide.tools.toolbox.assistant import questions, tools
from surefoot.envs.gym.snapshot import rng_from_json, rng_to_json
from surefoot.errors import ConfigError, SurefootError
from surefoot.graph.runtime.base import COMPLETE, RuntimeNode, built
from surefoot.graph.runtime.inspection import EveryNode
from surefoot.train.collect.episodes import Episode

# Decisions in the mean reward that loss_info reports.
WINDOW = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolQuestion:
    """A question and the pattern of its right answer."""

    text: str
    expected: str


class QuerySourceNode(RuntimeNode):
    """The shipped questions, shuffled again in every pass."""

    def setup(self) -> None:
        self.generator = np.random.default_rng(seed_for("queries", self.seed))
        all_questions = [
            ToolQuestion(text=text, expected=pattern) for rows in questions().values() for text, pattern in rows
        ]
        self.generator.shuffle(all_questions)  # type: ignore[arg-type]
        count = round(self.params.held_out * len(all_questions))
        self.held_out, self.questions = all_questions[:count], all_questions[count:]
        self.order: list[int] = []

    def __call__(self) -> tuple[list[ToolQuestion], list[ToolQuestion]]:
        batch = self.params.batch
        while len(self.order) < batch:
            self.order += self.generator.permutation(len(self.questions)).tolist()
        indices, self.order = self.order[:batch], self.order[batch:]
        return [self.questions[k] for k in indices], self.held_out

    def snapshot(self) -> dict[str, Any]:
        return {"order": list(self.order), "generator": rng_to_json(self.generator)}

    def restore(self, saved: dict[str, Any]) -> None:
        self.order, self.generator = [int(k) for k in saved["order"]], rng_from_json(saved["generator"])


class QueryEncoderNode(RuntimeNode):
    """Texts as vectors."""

    def setup(self) -> None:
        self.encoder = make_encoder(self.params.encoder)

    def __call__(self, queries: Sequence[ToolQuestion]) -> tuple[np.ndarray, Encoder]:
        return self.encoder.encode([each.text for each in queries]), self.encoder


@dataclass(frozen=True, slots=True)
class Tools:
    """Tools and the memory that two of them read."""

    box: Toolbox
    memory: TextMemory


class ToolBoxNode(RuntimeNode):
    """The shipped tools; their notes and tables are files below `into`."""

    def __call__(self, encoder: Encoder) -> Tools:
        folder = self.into / "tools"
        folder.mkdir(parents=True, exist_ok=True)
        all_tools, memory = tools(encoder, folder)
        return Tools(Toolbox(*all_tools), memory)


class ToolPolicyNode(RuntimeNode):
    """An agent of the decision core over the tools, built in the first tick."""

    def setup(self) -> None:
        self.agent: Agent | None = None

    def __call__(self, vectors: np.ndarray, toolbox: Tools, encoder: Encoder) -> tuple[list[DecisionRecord], Agent]:
        if self.agent is None:
            settings = self.settings(ReplayConfig, seed=self.seed)
            chooser = ReplayChooser(encoder.dim, encoder.likeness, config=settings)
            self.agent = Agent(encoder, config=AgentConfig(seed=self.seed), chooser=chooser)
            for each in toolbox.box:
                self.agent.options.add(each.name, each.description)
        return [self.agent.decide("", vector=vector) for vector in vectors], self.agent

    def state_dict(self) -> dict[str, Any]:
        """Return the weights of the policy."""
        if self.agent is None:
            return {}
        state = self.agent.chooser.state()
        return {name: state[name] for name in ("table", "none", "outside")}

    def snapshot(self) -> dict[str, Any]:
        return {"agent": built(self.agent).state()}

    def restore(self, saved: dict[str, Any]) -> None:
        built(self.agent).set_state(saved["agent"])


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """The result of a tool call."""

    result: ToolResult
    milliseconds: float
    error: str = ""


class ToolRunnerNode(RuntimeNode):
    """Runs the chosen tools."""

    def __call__(
        self, queries: Sequence[ToolQuestion], choices: Sequence[DecisionRecord], toolbox: Tools
    ) -> list[ToolOutput]:
        return self.run(queries, [each.name for each in choices], toolbox)

    def run(self, queries: Sequence[ToolQuestion], names: Sequence[str | None], toolbox: Tools) -> list[ToolOutput]:
        """Return the results of the tools with these names; None runs nothing."""

        async def all_of_them() -> list[ToolOutput]:
            # One after the other: tools write notes, and the next tool must find them.
            return [await self._one(query.text, name, toolbox) for query, name in zip(queries, names, strict=True)]

        return asyncio.run(all_of_them())

    async def _one(self, text: str, name: str | None, toolbox: Tools) -> ToolOutput:
        if name is None:
            return ToolOutput(result=ToolResult(text=""), milliseconds=0.0, error="none of the tools was chosen")
        begin = time.perf_counter()
        context = [(hit.passage.id, hit.passage.text) for hit in toolbox.memory.search(text)]
        request, error = ToolRequest(text=text, context=context), ""
        try:
            result = await toolbox.box.run(name, request, seconds=self.params.seconds)
        except SurefootError as why:
            result, error = ToolResult(text=""), str(why)
        return ToolOutput(result=result, milliseconds=1000.0 * (time.perf_counter() - begin), error=error)


def is_right(query: ToolQuestion, output: ToolOutput) -> bool:
    """Return whether a result matches the pattern of the right answer."""
    return not output.error and re.search(query.expected, output.result.text) is not None


class ToolRewardNode(RuntimeNode):
    """One reward per result, from 0 to 1."""

    def __call__(
        self, queries: Sequence[ToolQuestion], choices: Sequence[DecisionRecord], results: Sequence[ToolOutput]
    ) -> tuple[np.ndarray, np.ndarray]:
        right = np.array([is_right(query, output) for query, output in zip(queries, results, strict=True)], bool)
        rewards: list[float] = []
        for chosen, output, good in zip(choices, results, right, strict=True):
            facts = RewardFacts(
                confidence=chosen.choice.probability,
                duration_ms=output.milliseconds,
                quality=output.result.quality,
                errors=int(bool(output.error)),
                warnings=len(output.result.warnings),
                sources=output.result.sources,
            )
            rewards.append(reward_of(facts, {"success": bool(good)} if self.params.by == "answer" else None).unit)
        return np.array(rewards, np.float64), right


class ToolExamNode(EveryNode):
    """Evaluates on held-out questions in a separate toolbox, so that training does not find the notes it writes."""

    def setup(self) -> None:
        super().setup()
        self.toolbox, self.runner = ToolBoxNode(into=self.into / "exam"), ToolRunnerNode()
        self.tools: Tools | None = None

    def __call__(
        self, trigger: Any, queries: Sequence[ToolQuestion], encoder: Encoder, chooser: Agent
    ) -> tuple[float | None, float | None]:
        return self.examine(queries, encoder, chooser) if self.is_due() else (None, None)

    def examine(self, queries: Sequence[ToolQuestion], encoder: Encoder, agent: Agent) -> tuple[float, float]:
        """Return the share of right answers with the most likely tool, and with the tool of the nearest description."""
        if not queries:
            raise ConfigError("no questions are held out; set held_out of QuerySource above 0")
        if self.tools is None:
            self.tools = self.toolbox(encoder)
        by_policy, by_description = list[str](), list[str]()
        for query in queries:
            record = agent.choose(query.text, greedy=True, peek=True)
            by_policy.append(record.names[record.choice.at])
            by_description.append(record.names[int(record.scene.cosine.argmax())])
        runs = [self.runner.run(queries, chosen, self.tools) for chosen in (by_policy, by_description)]
        right, nearest = (sum(map(is_right, queries, outputs)) / len(queries) for outputs in runs)
        return right, nearest


Outputs = tuple[str | None, dict[str, Any] | None, list[Episode] | None, "ToolTrainerNode | None"]


class ToolTrainerNode(RuntimeNode):
    """Reports rewards to the agent, which learns from each of them."""

    normalize_rewards = False
    learner = None
    """None: the agent learns, not PPO's learner, which trainers of other loops have."""

    def setup(self) -> None:
        self.agent: Agent | None = None
        self.updates = self.env_steps = 0
        self.recent: deque[float] = deque(maxlen=WINDOW)
        self.fresh: list[Episode] = []

    def __call__(self, choices: Sequence[DecisionRecord], rewards: np.ndarray, chooser: Agent) -> Outputs:
        self.agent = chooser
        for stream, (record, reward) in enumerate(zip(choices, map(float, rewards), strict=True)):
            # After "none of these" no tool ran: its reward counts, but there is nothing to learn from.
            if record.name is not None:
                chooser.outcome(record.id, reward)
            self.recent.append(reward)
            self.fresh.append(Episode(stream=stream, return_=reward, length=1, success=None, truncated=False))
        self.env_steps += len(choices)
        chooser.learn()
        if len(self.fresh) < self.params.every:
            return None, None, None, None
        self.updates += 1
        metrics = {"update": self.updates, "env_steps": self.env_steps, "return": float(np.mean(self.recent))}
        metrics |= {"length": 1.0, "policy_version": chooser.version}
        fresh, self.fresh = self.fresh, []
        return COMPLETE, metrics, fresh, self

    def snapshot(self) -> dict[str, Any]:
        fresh = [[each.stream, each.return_] for each in self.fresh]
        counts = {"updates": self.updates, "env_steps": self.env_steps}
        return {**counts, "recent": list(self.recent), "fresh": fresh}

    def restore(self, saved: dict[str, Any]) -> None:
        self.updates, self.env_steps = int(saved["updates"]), int(saved["env_steps"])
        self.recent = deque(saved["recent"], maxlen=WINDOW)
        self.fresh = [
            Episode(stream=int(stream), return_=float(return_), length=1, success=None, truncated=False)
            for stream, return_ in saved["fresh"]
        ]

    def state(self) -> dict[str, Any]:
        """Return the parts of a checkpoint, which `Agent.load` reads."""
        return {"weights": {}, **built(self.agent).state()}
