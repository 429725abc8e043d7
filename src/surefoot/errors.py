"""Everything that can go wrong, as one tree.

SurefootError
├── ConfigError            a knob has a value that cannot work                    (also a ValueError)
├── ShapeError             arrays that must agree do not                          (also a ValueError)
├── SpaceError             an observation or action space no policy here can use  (also a ValueError)
├── PolicyError            a network that breaks a rule PPO relies on
├── AllActionsMasked       a row in which no action is allowed
├── IllegalAction          a stored action that its own mask forbids
├── Diverged               learning was stopped because the numbers left the finite
├── EnvError               a world misbehaved
│   ├── UnknownEnv         no world of that name
│   ├── WorkersLost        processes that step envs end as fast as they are replaced
│   └── NonFiniteValue     an observation or a reward is NaN or infinite
├── CheckpointError
│   ├── CheckpointMissing      nothing there to load
│   ├── CheckpointCorrupt      the bytes are not the ones that were written
│   └── CheckpointIncompatible written by another format, for another policy or another world
├── RunError
│   ├── RunNotFound        no such run
│   └── RunLocked          another process is writing this run
├── DecisionError
│   ├── UnknownDecision    no decision of that id waits for an outcome
│   └── UnknownOption      no tool or action of that name
├── EncoderError           texts cannot be turned into numbers as asked
├── ToolError              a tool refused what it was asked, or failed at it
├── JournalError           a file of decisions and outcomes that cannot be used
├── DataError              a file of prompts, pairs or principles that cannot be used, by its line
├── RewardError            a reward function raised, hung, or gave no numbers
├── RecordingError         recorded episodes that cannot be read, or not for this policy
│   └── ReplayError        a replay sample or manifest that cannot be learned from
├── ScenarioError          a town that cannot be                                  (also a ValueError)
├── GraphError             a graph that does not hold together                    (also a ValueError)
│   └── FiringError        a node failed while its graph ran
└── TelemetryError         a record that does not say what its schema promises
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class SurefootError(Exception):
    """Base of everything raised on purpose; the message says what would work."""


class ConfigError(SurefootError, ValueError):
    """A knob has a value that cannot work."""


class ShapeError(SurefootError, ValueError):
    """Arrays that must agree do not."""


class SpaceError(SurefootError, ValueError):
    """An observation or action space that no policy here can use."""


class PolicyError(SurefootError):
    """A network that breaks a rule PPO relies on."""


class AllActionsMasked(SurefootError):
    """A row in which no action is allowed."""


class IllegalAction(SurefootError):
    """A stored action that its own mask forbids."""


class Diverged(SurefootError):
    """Learning was stopped because the numbers left the finite."""


class EnvError(SurefootError):
    """A world misbehaved."""


class UnknownEnv(EnvError):
    """No world of that name."""


class WorkersLost(EnvError):
    """Processes that step envs end as fast as they are replaced."""


class NonFiniteValue(EnvError):
    """An observation or a reward is NaN or infinite."""


class CheckpointError(SurefootError):
    """A checkpoint could not be written or read."""


class CheckpointMissing(CheckpointError):
    """Nothing there to load."""


class CheckpointCorrupt(CheckpointError):
    """The bytes are not the ones that were written."""


class CheckpointIncompatible(CheckpointError):
    """Written by another format, for another policy or another world."""


class RunError(SurefootError):
    """A run directory cannot be used."""


class RunNotFound(RunError):
    """No such run."""


class RunLocked(RunError):
    """Another process is writing this run."""


class DecisionError(SurefootError):
    """A decision or its outcome cannot be used."""


class UnknownDecision(DecisionError):
    """No decision of that id waits for an outcome."""


class UnknownOption(DecisionError, KeyError):
    """No tool or action of that name."""

    def __str__(self) -> str:  # a KeyError would show the sentence in quotes
        return str(self.args[0]) if self.args else ""


class EncoderError(SurefootError):
    """Texts cannot be turned into numbers as asked."""


class ToolError(SurefootError):
    """A tool refused what it was asked, or failed at it."""


class JournalError(SurefootError):
    """A file of decisions and outcomes that cannot be used."""


class DataError(SurefootError, ValueError):
    """A file of prompts, preferences or principles that cannot be used; the line is named."""


class RewardError(SurefootError):
    """A reward function raised, took too long, or gave something that is no number."""


class RecordingError(SurefootError):
    """Recorded episodes that cannot be read, or that are not for this policy."""


class ReplayError(RecordingError):
    """A replay sample or its manifest cannot be read, or cannot be learned from."""


class ScenarioError(SurefootError, ValueError):
    """A town's description that cannot be; the message begins with the file and the line."""


class TelemetryError(SurefootError):
    """A record that does not say what its schema promises."""


class GraphError(SurefootError, ValueError):
    """A graph that does not hold together; the message names node and port."""


class FiringError(GraphError):
    """A node failed while its graph ran."""

    node: str = ""
    tick: int = 0
    inputs: Mapping[str, Any] = {}
    """What it was given, by port."""


class RenamedWarning(FutureWarning):
    """A name is used that goes in the next release.

    A `FutureWarning`, because Python shows it by default; a `DeprecationWarning` only in the main program.
    """
