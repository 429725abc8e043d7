"""The exception tree.

SurefootError
├── ConfigError            a setting has an invalid value                         (also a ValueError)
├── ShapeError             array shapes do not match                              (also a ValueError)
├── SpaceError             an unsupported observation or action space             (also a ValueError)
├── PolicyError            a network that breaks a rule PPO relies on
├── AllActionsMasked       a row in which no action is allowed
├── IllegalAction          a stored action that its mask forbids
├── Diverged               training stopped: losses or weights became NaN or infinite
├── EnvError               an environment broke its contract
│   ├── UnknownEnv         no environment of that name
│   ├── WorkersLost        worker processes die as fast as they are replaced
│   └── NonFiniteValue     an observation or a reward is NaN or infinite
├── CheckpointError
│   ├── CheckpointMissing      there is no checkpoint to load
│   ├── CheckpointCorrupt      the bytes are not the ones that were written
│   └── CheckpointIncompatible another format version, policy or environment
├── RunError
│   ├── RunNotFound        no such run
│   └── RunLocked          another process is writing this run
├── DecisionError
│   ├── UnknownDecision    no decision of that id waits for an outcome
│   └── UnknownOption      no tool or action of that name
├── EncoderError           texts cannot be encoded with these settings
├── ToolError              a tool rejected its input, or failed
├── JournalError           a file of decisions and outcomes that cannot be used
├── DataError              a file of prompts, pairs or principles that cannot be used; names the line
├── RewardError            a reward function raised, timed out, or returned no numbers
├── RecordingError         recorded episodes that cannot be read, or do not fit this policy
│   └── ReplayError        a replay sample or manifest that cannot be used for learning
├── ScenarioError          an invalid town description                            (also a ValueError)
├── GraphError             an invalid graph                                       (also a ValueError)
│   └── FiringError        a node failed while its graph ran
└── TelemetryError         a telemetry record that does not follow its schema
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class SurefootError(Exception):
    """Base of all errors that Surefoot raises; the message states what would work."""


class ConfigError(SurefootError, ValueError):
    """A setting has an invalid value."""


class ShapeError(SurefootError, ValueError):
    """Array shapes do not match."""


class SpaceError(SurefootError, ValueError):
    """An observation or action space that no policy supports."""


class PolicyError(SurefootError):
    """A network that breaks a rule PPO relies on."""


class AllActionsMasked(SurefootError):
    """A row in which no action is allowed."""


class IllegalAction(SurefootError):
    """A stored action that its own mask forbids."""


class Diverged(SurefootError):
    """Training was stopped because losses or weights became NaN or infinite."""


class EnvError(SurefootError):
    """An environment broke its contract."""


class UnknownEnv(EnvError):
    """There is no environment of that name."""


class WorkersLost(EnvError):
    """Worker processes die as fast as they are replaced."""


class NonFiniteValue(EnvError):
    """An observation or a reward is NaN or infinite."""


class CheckpointError(SurefootError):
    """A checkpoint could not be written or read."""


class CheckpointMissing(CheckpointError):
    """There is no checkpoint to load."""


class CheckpointCorrupt(CheckpointError):
    """The bytes are not the ones that were written."""


class CheckpointIncompatible(CheckpointError):
    """The checkpoint is of another format version, policy or environment."""


class RunError(SurefootError):
    """A run directory cannot be used."""


class RunNotFound(RunError):
    """There is no run of that name."""


class RunLocked(RunError):
    """Another process is writing this run."""


class DecisionError(SurefootError):
    """A decision or its outcome cannot be used."""


class UnknownDecision(DecisionError):
    """No decision of that id is waiting for an outcome."""


class UnknownOption(DecisionError, KeyError):
    """There is no tool or action of that name."""

    def __str__(self) -> str:  # a KeyError would show the sentence in quotes
        return str(self.args[0]) if self.args else ""


class EncoderError(SurefootError):
    """Texts cannot be encoded with these settings."""


class ToolError(SurefootError):
    """A tool rejected its input, or failed."""


class JournalError(SurefootError):
    """A file of decisions and outcomes that cannot be used."""


class DataError(SurefootError, ValueError):
    """A file of prompts, preferences or principles that cannot be used; the line is named."""


class RewardError(SurefootError):
    """A reward function raised, timed out, or returned something that is not a number."""


class RecordingError(SurefootError):
    """Recorded episodes that cannot be read, or do not fit this policy."""


class ReplayError(RecordingError):
    """A replay sample or its manifest cannot be read, or cannot be used for learning."""


class ScenarioError(SurefootError, ValueError):
    """A town description is invalid; the message begins with the file and the line."""


class TelemetryError(SurefootError):
    """A telemetry record does not follow its schema."""


class GraphError(SurefootError, ValueError):
    """A graph is invalid; the message names node and port."""


class FiringError(GraphError):
    """A node failed while its graph ran."""

    node: str = ""
    tick: int = 0
    inputs: Mapping[str, Any] = {}
    """The node's inputs, by port."""


class RenamedWarning(FutureWarning):
    """A name is used that is removed in the next release.

    A `FutureWarning`, because Python shows it by default; a `DeprecationWarning` only in the main program.
    """
