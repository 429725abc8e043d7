"""Types of arguments that several verbs share, and checks of their values."""

from __future__ import annotations

import dataclasses
import shlex
import sys
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import tyro

from surefoot.cli.usage import Usage, as_usage

if TYPE_CHECKING:
    from surefoot.train.rundir.rundir import RunDir

arg = tyro.conf.arg
T = TypeVar("T")

RunName = Annotated[tyro.conf.Positional[str], arg(metavar="RUN")]
Run = Annotated[tyro.conf.Positional[str], arg(metavar="RUN", help="The directory or name of a run.")]
EnvName = Annotated[
    tyro.conf.Positional[str],
    arg(
        metavar="ENV",
        help="A Gymnasium id such as CartPole-v1, module:Id-v0 for an id that a package registers, or your own "
        "environment: module:function, or ./library.so for one written in C.",
    ),
]
NewRunName = Annotated[str | None, arg(help="Name of the new run (default: <env>-<date>-<time>-s<seed>).")]
CheckpointName = Annotated[str, arg(help="Checkpoint to load: latest, best, or its number.")]
CodeEnv = Annotated[
    str | None,
    arg(
        help="The environment, for a run that was trained on module:function or a C library. It must be given again, "
        "because code named in a run's files is never executed."
    ),
]
Seed = Annotated[int, arg(help="Random seed.")]
OptionalSeed = Annotated[int | None, arg(help="Random seed (default: 0, or the seed in --config).")]
Stochastic = Annotated[bool, arg(help="Sample actions as in training instead of taking the most likely one.")]
Display = Annotated[
    Literal["auto", "live", "lines", "quiet"],
    arg(help="Progress display: a live dashboard, plain lines, or nothing; auto uses the dashboard on a terminal."),
]
Pairs = Annotated[tuple[str, ...], tyro.conf.UseAppendAction, arg(metavar="KEY=VALUE")]
Settings = Annotated[Pairs, arg(aliases=["-s"], metavar="KEY=VALUE")]
EnvArgs = Annotated[
    Pairs, arg(metavar="KEY=VALUE", help="Argument of the environment's constructor, such as gravity=5.0; repeatable.")
]
EnvBackend = Annotated[
    Literal["auto", "surefoot", "gymnasium", "envpool"],
    arg(
        help="Implementation of the environment. auto uses Surefoot's vectorized version of the classic tasks and the "
        "standard preprocessing for Atari, otherwise Gymnasium."
    ),
]
EnvWorkers = Annotated[
    str | None,
    arg(
        metavar="auto|0|N",
        help="Extra processes that step Gymnasium environments; the results do not depend on the number (default: auto, "
        "which measures whether processes pay off).",
    ),
]
Track = Annotated[
    tuple[Literal["tensorboard", "wandb", "trackio", "mlflow"], ...],
    tyro.conf.UseAppendAction,
    arg(
        metavar="tensorboard|wandb|trackio|mlflow",
        help="Also log metrics to this tool, offline, in the run's directory; repeatable.",
    ),
]
RecordMinibatches = Annotated[
    float,
    arg(
        metavar="RATE",
        help="Share of gradient steps that get their own line in the telemetry, evenly spaced: 0 (none) to 1 (all).",
    ),
]
PpoLog = Annotated[
    Path | None,
    arg(help="Also write flat telemetry 1.1 to this file, one JSON object per epoch; appends to an existing file."),
]
DoctorMode = Annotated[
    Literal["off", "on", "full", "act"],
    arg(
        help="Diagnose the run while it trains. on: record findings and print the serious ones; full: print causes and "
        "advice too; act: also return to an earlier checkpoint with other settings after a serious finding; off: disable."
    ),
]


def run_directory(name: str) -> RunDir:
    """Return the directory of the run called `name`, or at the path `name`."""
    from surefoot.train.rundir.rundir import find_run

    return find_run(name)


def command_line() -> list[str]:
    """Return the user's command, for the header of a run."""
    return ["surefoot", *sys.argv[1:]]


def pairs(texts: tuple[str, ...], option: str) -> dict[str, str]:
    """Return {"lr": "3e-4"} for ("lr=3e-4",)."""
    values: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise Usage(f"{option} {shlex.quote(text)} is not KEY=VALUE; write for example {option} lr=3e-4")
        if key in values:
            raise Usage(f"{option} {key} is given twice; give it once")
        values[key] = value
    return values


def options_from(kind: type[T], values: Mapping[str, str], option: str) -> T:
    """Return the dataclass `kind` with fields from the texts of KEY=VALUE; raise `Usage` for an unknown key or value."""
    import msgspec

    from surefoot.data.knobs import require_known
    from surefoot.errors import ConfigError

    types = typing.get_type_hints(kind)
    converted: dict[str, Any] = {}
    try:
        require_known(values, list(types), {})
    except ConfigError as why:
        raise Usage(f"{option}: {why}; the keys are {', '.join(types)}") from why
    for key, text in values.items():
        try:
            converted[key] = msgspec.convert(None if text == "none" else text, types[key], strict=False)
        except msgspec.ValidationError as why:
            raise Usage(f"{option} {key}={text}: {key} must be {_in_words(types[key])}") from why
    with as_usage():
        return kind(**converted)


_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", type(None): "none"}


def _in_words(kind: Any) -> str:
    """Return the values that a type allows: "a whole number or none", "one of tpe, random"."""
    if kind in _WORDS:
        return _WORDS[kind]
    parts = typing.get_args(kind)
    if typing.get_origin(kind) is Literal:
        return f"one of {', '.join(map(str, parts))}"
    return " or ".join(map(_in_words, parts)) if parts else str(kind)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Keys of --set that concern the run rather than PPO, its network or its rollouts."""

    eval_every: int | None = None
    """Environment steps between evaluations (default: ten evaluations per run; 0 disables them)."""
    eval_episodes: int | None = None
    """Episodes per evaluation, deterministic, on separate seeds (default: 10)."""
    checkpoint_every: int | None = None
    """Environment steps between checkpoints (default: twenty checkpoints per run)."""
    record_minibatches: float = 0.0
    """Share of gradient steps that get their own line in the telemetry, evenly spaced: 0 (none) to 1 (all)."""
    insecure_cluster: bool = False
    """Allow a Ray cluster without token authentication. Anyone who can reach such a cluster can run code on it."""
    overlap: bool = False
    """Collect the next rollout with --rollout-workers during the update; every rollout is then one policy version old."""


def split_settings(kind: type[T], texts: tuple[str, ...]) -> tuple[T, dict[str, str]]:
    """Return the dataclass `kind` from those pairs of `--set` that are its fields, and the other pairs."""
    values = pairs(texts, "--set")
    names = {field.name for field in dataclasses.fields(kind)}  # pyright: ignore[reportArgumentType]
    matching = {key: text for key, text in values.items() if key in names}
    return options_from(kind, matching, "--set"), {key: text for key, text in values.items() if key not in names}


def at_least_one(**counts: int | None) -> None:
    """Raise `Usage` for an option that counts something and is below 1; None means that it was not given."""
    for name, count in counts.items():
        if count is not None and count < 1:
            raise Usage(f"--{name.replace('_', '-')} is {count}; it must be at least 1")


def user_object(name: str, option: str, message: str = "") -> Any:
    """Return the object at `module:name`, imported from the current directory or the path.

    `message` replaces the error for a name without a colon.
    """
    from surefoot.train.worlds import import_user_module

    module, colon, attribute = name.partition(":")
    if not colon or not attribute:
        raise Usage(message or f"{option} is {name!r}; it must be module:function, such as my_rewards:polite")
    try:
        return getattr(import_user_module(module), attribute)
    except ImportError as why:
        raise Usage(f"{option}: cannot import {module}: {why}") from why
    except AttributeError as why:
        raise Usage(f"{option}: {module} has no {attribute}") from why
