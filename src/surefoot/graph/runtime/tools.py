"""Tools at work: the library's questions, encoder, chooser and tools, a batch of decisions a tick."""

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
from surefoot.decide.encoders.encoder import Encoder, make_encoder
from surefoot.decide.policy.choosers import Experience, OptionChoice
from surefoot.decide.policy.options import Options
from surefoot.decide.policy.outcome_model import Scene
from surefoot.decide.policy.ppo import PPO_DEFAULTS, ChooserConfig, PPOChooser
from surefoot.decide.rewards import RewardFacts, reward_of
from surefoot.decide.tools.memory import TextMemory
from surefoot.decide.tools.protocol import Toolbox, ToolRequest, ToolResult
from surefoot.decide.tools.toolbox.assistant import questions, tools
from surefoot.envs.gym.snapshot import rng_from_json, rng_to_json
from surefoot.errors import ConfigError, SurefootError
from surefoot.graph.runtime.base import COMPLETE, RuntimeNode, checkpoint_parts
from surefoot.graph.runtime.inspection import EveryNode
from surefoot.learn.learner import Learner
from surefoot.train.collect.episodes import Episode

WINDOW = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolQuestion:
    """A question and what a right answer matches."""

    text: str
    expected: str


class QuerySourceNode(RuntimeNode):
    """The shipped questions, shuffled anew in every pass."""

    def setup(self) -> None:
        """Keep some questions back."""
        self.generator = np.random.default_rng(seed_for("queries", self.seed))
        found = [ToolQuestion(text=text, expected=expected) for rows in questions().values() for text, expected in rows]
        self.generator.shuffle(found)  # type: ignore[arg-type]
        kept = round(self.params.held_out * len(found))
        self.held_out, self.asked = found[:kept], found[kept:]
        self.order: list[int] = []

    def __call__(self) -> tuple[list[ToolQuestion], list[ToolQuestion]]:
        batch = self.params.batch
        while len(self.order) < batch:
            self.order += self.generator.permutation(len(self.asked)).tolist()
        taken, self.order = self.order[:batch], self.order[batch:]
        return [self.asked[k] for k in taken], self.held_out

    def snapshot(self) -> dict[str, Any]:
        """Where in the questions it is."""
        return {"order": list(self.order), "generator": rng_to_json(self.generator)}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from there."""
        self.order, self.generator = [int(k) for k in saved["order"]], rng_from_json(saved["generator"])


class QueryEncoderNode(RuntimeNode):
    """Texts as vectors."""

    def setup(self) -> None:
        """Load the encoder."""
        self.encoder = make_encoder(self.params.encoder)

    def __call__(self, queries: Sequence[ToolQuestion]) -> tuple[np.ndarray, Encoder]:
        return self.encoder.encode([each.text for each in queries]), self.encoder


@dataclass(frozen=True, slots=True)
class Tools:
    """Tools and the memory that two of them read."""

    box: Toolbox
    memory: TextMemory

    def options(self, encoder: Encoder) -> Options:
        """Return the tools as options to choose among, by their descriptions."""
        options = Options(encoder)
        for each in self.box:
            options.add(each.name, each.description)
        return options


class ToolBoxNode(RuntimeNode):
    """The shipped tools; notes and tables are files below `into`."""

    def __call__(self, encoder: Encoder) -> Tools:
        folder = self.into / "tools"
        folder.mkdir(parents=True, exist_ok=True)
        made, memory = tools(encoder, folder)
        return Tools(Toolbox(*made), memory)


@dataclass(frozen=True, slots=True)
class ChosenTool:
    """A tool for one question."""

    name: str
    scene: Scene
    choice: OptionChoice


class ToolPolicyNode(RuntimeNode):
    """One chooser for all ticks, built in the first."""

    def setup(self) -> None:
        """Read the configs."""
        it = self.params
        self.config = ChooserConfig(sharpness=it.sharpness, floor=it.floor, fresh=it.fresh, reuse=it.reuse)
        self.ppo = PPO_DEFAULTS.replace(lr=it.learning_rate, epochs=it.epochs, seed=self.seed)
        self.generator = np.random.default_rng(seed_for("choose", self.seed))
        self.chooser: PPOChooser | None = None

    def __call__(self, vectors: np.ndarray, toolbox: Tools, encoder: Encoder) -> tuple[list[ChosenTool], PPOChooser]:
        if self.chooser is None:
            self.options = toolbox.options(encoder)
            self.chooser = PPOChooser(
                encoder.dim, encoder.likeness, options=len(self.options), config=self.config, ppo=self.ppo
            )
        names, choices = self.options.names, list[ChosenTool]()
        for vector in vectors:
            scene = self.options.scene(vector, names)
            choice = self.chooser.choose(scene, self.generator)
            choices.append(ChosenTool(names[choice.at], scene, choice))
        return choices, self.chooser

    def state_dict(self) -> dict[str, Any]:
        """Weights of the policy, and what outcomes corrected."""
        if self.chooser is None:
            return {}
        return {**self.chooser.policy.state_dict(), "theta": self.chooser.model.theta()}

    def snapshot(self) -> dict[str, Any]:
        """The chooser and its randomness."""
        assert self.chooser is not None
        return {"chooser": self.chooser.state(), "generator": rng_to_json(self.generator)}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from there."""
        assert self.chooser is not None
        self.chooser.set_state(saved["chooser"])
        self.generator = rng_from_json(saved["generator"])


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """What came of running a tool."""

    result: ToolResult
    milliseconds: float
    error: str = ""


class ToolRunnerNode(RuntimeNode):
    """Runs what was chosen."""

    def __call__(
        self, queries: Sequence[ToolQuestion], choices: Sequence[ChosenTool], toolbox: Tools
    ) -> list[ToolOutput]:
        return self.run(queries, [each.name for each in choices], toolbox)

    def run(self, queries: Sequence[ToolQuestion], names: Sequence[str], toolbox: Tools) -> list[ToolOutput]:
        """What tools of these names answer."""

        async def all_of_them() -> list[ToolOutput]:
            # One after the other: tools write notes, and what is written first is to be found by the next.
            return [await self._one(asked.text, name, toolbox) for asked, name in zip(queries, names, strict=True)]

        return asyncio.run(all_of_them())

    async def _one(self, text: str, name: str, toolbox: Tools) -> ToolOutput:
        begin = time.perf_counter()
        context = [(hit.passage.id, hit.passage.text) for hit in toolbox.memory.search(text)]
        request, error = ToolRequest(text=text, context=context), ""
        try:
            result = await toolbox.box.run(name, request, seconds=self.params.seconds)
        except SurefootError as why:
            result, error = ToolResult(text=""), str(why)
        return ToolOutput(result=result, milliseconds=1000.0 * (time.perf_counter() - begin), error=error)


def is_right(asked: ToolQuestion, ran: ToolOutput) -> bool:
    """Whether an answer has what the question asks for."""
    return not ran.error and re.search(asked.expected, ran.result.text) is not None


class ToolRewardNode(RuntimeNode):
    """One number an answer, 0 to 1."""

    def __call__(
        self, queries: Sequence[ToolQuestion], choices: Sequence[ChosenTool], results: Sequence[ToolOutput]
    ) -> tuple[np.ndarray, np.ndarray]:
        right = np.array([is_right(asked, ran) for asked, ran in zip(queries, results, strict=True)], bool)
        rewards: list[float] = []
        for chosen, ran, good in zip(choices, results, right, strict=True):
            facts = RewardFacts(
                confidence=chosen.choice.probability,
                duration_ms=ran.milliseconds,
                quality=ran.result.quality,
                errors=int(bool(ran.error)),
                warnings=len(ran.result.warnings),
                sources=ran.result.sources,
            )
            rewards.append(reward_of(facts, {"success": bool(good)} if self.params.by == "answer" else None).unit)
        return np.array(rewards, np.float64), right


class ToolExamNode(EveryNode):
    """Asks questions that nobody learned from, in a toolbox of its own: its notes are not there for the others to find."""

    def setup(self) -> None:
        """The tools are made with the first exam."""
        super().setup()
        self.generator = np.random.default_rng(0)  # for a draw that can come out in one way only
        self.toolbox, self.runner = ToolBoxNode(into=self.into / "exam"), ToolRunnerNode()
        self.tools: Tools | None = None

    def __call__(
        self, trigger: Any, queries: Sequence[ToolQuestion], encoder: Encoder, chooser: PPOChooser
    ) -> tuple[float | None, float | None]:
        return self.examine(queries, encoder, chooser) if self.is_due() else (None, None)

    def examine(self, queries: Sequence[ToolQuestion], encoder: Encoder, chooser: PPOChooser) -> tuple[float, float]:
        """Return the share that is right by the likeliest tool, and by the one whose description is nearest."""
        if not queries:
            raise ConfigError("no questions are held out; set held_out of QuerySource above 0")
        if self.tools is None:
            self.tools = self.toolbox(encoder)
            self.options = self.tools.options(encoder)
        names, by_policy, by_description = self.options.names, list[str](), list[str]()
        for vector in encoder.encode([each.text for each in queries]):
            scene = self.options.scene(vector, names)
            by_policy.append(names[chooser.choose(scene, self.generator, greedy=True).at])
            by_description.append(names[int(scene.cosine.argmax())])
        runs = [self.runner.run(queries, chosen, self.tools) for chosen in (by_policy, by_description)]
        right, nearest = (sum(map(is_right, queries, ran)) / len(queries) for ran in runs)
        return right, nearest


Outputs = tuple[str | None, dict[str, Any] | None, list[Episode] | None, "ToolTrainerNode | None"]


class ToolTrainerNode(RuntimeNode):
    """Hands outcomes to the chooser, which says when it has made an update."""

    normalize_rewards = False

    def setup(self) -> None:
        """Nothing is counted yet."""
        self.learner: Learner | None = None
        self.updates = self.env_steps = 0
        self.recent: deque[float] = deque(maxlen=WINDOW)
        self.fresh: list[Episode] = []

    def __call__(self, choices: Sequence[ChosenTool], rewards: np.ndarray, chooser: PPOChooser) -> Outputs:
        self.learner = chooser.learner
        seen = [
            Experience(scene=each.scene, choice=each.choice, reward=float(reward))
            for each, reward in zip(choices, rewards, strict=True)
        ]
        self.env_steps += len(seen)
        self.recent.extend(each.reward for each in seen)
        self.fresh += [
            Episode(stream=k, return_=each.reward, length=1, success=None, truncated=False)
            for k, each in enumerate(seen)
        ]
        report = chooser.learn([[each] for each in seen])
        if report is None:
            return None, None, None, None
        self.updates = report.update
        metrics = {"update": report.update, "env_steps": self.env_steps, **report.metrics(), **report.stats}
        metrics |= {"return": float(np.mean(self.recent)), "length": 1.0}
        fresh, self.fresh = self.fresh, []
        return COMPLETE, metrics, fresh, self

    def snapshot(self) -> dict[str, Any]:
        """What it counts; the policy keeps the rest."""
        return {"updates": self.updates, "env_steps": self.env_steps, "recent": list(self.recent)}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from there."""
        self.updates, self.env_steps, self.fresh = int(saved["updates"]), int(saved["env_steps"]), []
        self.recent = deque(saved["recent"], maxlen=WINDOW)

    def state(self) -> dict[str, Any]:
        """The parts of a checkpoint."""
        return checkpoint_parts(self.learner)
