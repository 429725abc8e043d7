"""Progress logs of Stable-Baselines3, CleanRL and RLlib as records, so that the doctor can examine them.

Read are progress.csv and progress.json (SB3), event files of TensorBoard (SB3, CleanRL), result.json (RLlib) and run files of
W&B (offline directories).
"""

from __future__ import annotations

import bisect
import csv
import json
import math
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, cast

from surefoot.data.shipped_yaml import read_shipped
from surefoot.errors import TelemetryError
from surefoot.telemetry.foreign.event_file import read_events
from surefoot.telemetry.foreign.wandb_file import read_wandb
from surefoot.telemetry.schema import VERSION, Episodes, HeaderRecord, Record, UpdateRecord

Row = dict[str, float]
"""The metrics of one update by our names, with `env_steps`."""

_NAMES = cast(dict[str, dict[str, str]], read_shipped("surefoot.telemetry.foreign", "names.yaml"))
METRICS: dict[str, str] = _NAMES["metrics"]
"""{name in a log: our name}; a name that begins with - has the opposite sign."""
# Loggers of one's own often leave out the group: value_loss for train/value_loss.
_BARE = {name.rpartition("/")[2]: ours for name, ours in METRICS.items()}
SETTINGS: dict[str, str] = _NAMES["settings"]
"""{name of a setting elsewhere: our name}"""
KNOWN = "progress.csv, progress.json, result.json, event files of TensorBoard and W&B's run-ID.wandb"
# Settings of a model of SB3, by the names of CleanRL: what SB3 calls batch_size is one minibatch, in CleanRL a rollout.
_SB3_SETTINGS = {
    **{
        name: name
        for name in ("learning_rate", "gamma", "gae_lambda", "ent_coef", "vf_coef", "max_grad_norm", "target_kl")
    },
    "n_steps": "num_steps",
    "n_envs": "num_envs",
    "n_epochs": "update_epochs",
    "batch_size": "minibatch_size",
}
# Names whose numbers the rules about weights, observations and gradients need; other libraries do not write them.
MISSING = {
    "obs_constant_share": "observations (constant, stale, scaled wrongly)",
    "action_effect": "the effect of actions",
    "grad_norm": "gradients",
    "first_ratio_error": "the difference between the acting and the learning policy",
}


@dataclass(frozen=True, slots=True)
class ForeignLog:
    """A log of another library."""

    kind: str
    """What wrote it, such as "Stable-Baselines3 progress.csv"."""
    rows: list[Row]
    settings: dict[str, Any]

    def records(self) -> Iterator[Record]:
        """Yield a header and one update per row."""
        total = int(self.rows[-1]["env_steps"])
        common: dict[str, Any] = {"v": VERSION, "run": "log", "t": 0.0}
        settings = {name: value for name, value in self.settings.items() if name not in ("env", "seed")}
        first: Row = {}
        for row in self.rows:
            first = {**row, **first}
        config = {"ppo": {**{name: first[name] for name in ("lr", "clip") if name in first}, **settings}}
        env, steps_per_update = str(self.settings.get("env", self.kind)), gradient_steps(settings)
        yield HeaderRecord(
            **common, seq=1, env_steps=0, updates=0, env=env, seed=0, config=config, session="log", total_steps=total
        )
        for update, row in enumerate(self.rows, 1):
            m: dict[str, float | None] = {}
            m |= {name: x for name, x in row.items() if name not in ("env_steps", "return", "length", "episodes")}
            if "minibatches" in m and steps_per_update is not None:
                m["minibatches"] = steps_per_update
            episodes = None
            if "return" in row:
                # Most logs have a moving mean; each row counts as a few new episodes.
                count = int(row.get("episodes", 5))
                episodes = Episodes(count=count, return_mean=row["return"], length_mean=row.get("length"))
            steps = int(row["env_steps"])
            yield UpdateRecord(**common, seq=update + 1, env_steps=steps, updates=update, m=m, episodes=episodes)

    def missing(self) -> list[str]:
        """Return what the log has no numbers about."""
        names = {name for row in self.rows for name in row}
        return [about for name, about in MISSING.items() if name not in names]


def gradient_steps(settings: Mapping[str, Any]) -> float | None:
    """Return the gradient steps per update; None if the settings do not tell."""
    names = ("epochs", "minibatches", "minibatch_size", "envs", "rollout_steps")
    numbers = {name: float(x) for name in names if isinstance(x := settings.get(name), int | float)}
    if "epochs" not in numbers:
        return None
    if "minibatches" in numbers:
        return numbers["epochs"] * numbers["minibatches"]
    if len(numbers) < 4:
        return None
    return numbers["epochs"] * math.ceil(numbers["envs"] * numbers["rollout_steps"] / numbers["minibatch_size"])


def find_log(path: Path) -> Path | None:
    """Return the file of a known log at or below a path, or None; of several, the newest."""
    if path.is_file():
        return path if _reader(path) is not None else None
    # Other tables lie beside a log, such as SB3's monitor.csv, so that a CSV of another name must be named.
    files = [p for p in path.rglob("*") if p.is_file() and _reader(p) is not None]
    files = [p for p in files if p.suffix != ".csv" or p.name == "progress.csv"]
    # Of one run in several formats the table: it has one row per update.
    return max(files, key=lambda p: (p.suffix in (".csv", ".json"), p.stat().st_mtime), default=None)


def read_log(path: Path) -> ForeignLog:
    """Return the log in a file. Raise `TelemetryError` if it has no row with steps and a metric that is known."""
    reader = _reader(path)
    if reader is None:
        raise TelemetryError(f"{path} is no log that is known; {KNOWN} are")
    kind, read = reader
    settings: dict[str, Any] = {}
    rows = [row for entry in read(path, settings) if "env_steps" in (row := _row(entry)) and len(row) > 1]
    if not rows:
        raise TelemetryError(
            f"{path} has no row with a number of steps and a metric of PPO, such as time/total_timesteps and train/approx_kl"
        )
    return ForeignLog(kind, rows, {SETTINGS[name]: _value(x) for name, x in settings.items() if name in SETTINGS})


def _reader(path: Path) -> tuple[str, Any] | None:
    name = path.name
    if path.suffix == ".csv":
        return name, _csv
    if name in ("progress.json", "result.json"):
        return name, _lines
    if name.endswith(".wandb"):
        return "W&B run", read_wandb
    if ".tfevents." in name:
        return "TensorBoard events", _events
    return None


def _csv(path: Path, settings: dict[str, Any]) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        names: list[str] = []
        for cells in csv.reader(file):
            if cells and names and cells[0] not in names:
                yield dict(zip(names, cells, strict=False))
            elif cells:
                names = cells  # or again: some loggers repeat the header when they get new metrics
    _params(path, settings)


def _lines(path: Path, settings: dict[str, Any]) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            try:
                entry = json.loads(line)
            except ValueError as why:
                # A run that still writes, or was killed, leaves a torn last line.
                if file.readline():
                    raise TelemetryError(f"{path}:{number} is not JSON: {why}") from why
                break
            if isinstance(entry, dict):
                flat = dict(_flattened(cast(dict[str, Any], entry)))
                settings.update(
                    {name.removeprefix("config/"): x for name, x in flat.items() if name.startswith("config/")}
                )
                yield flat
    _params(path, settings)


def _params(path: Path, settings: dict[str, Any]) -> None:
    """Take the settings beside the log: RLlib's params.json, or those in the newest model that SB3 saved there."""
    beside = path.with_name("params.json")
    if beside.is_file():
        settings.update(json.loads(beside.read_text(encoding="utf-8")))
    for model in sorted(path.parent.glob("*.zip"), key=lambda p: p.stat().st_mtime, reverse=True):
        with suppress(zipfile.BadZipFile, KeyError, ValueError, OSError), zipfile.ZipFile(model) as archive:
            values: Any = json.loads(archive.read("data"))
            # Numbers only: schedules are pickled functions, and nothing is unpickled.
            known = {n: x for n, x in values.items() if n in _SB3_SETTINGS and isinstance(x, int | float)}
            settings.update({_SB3_SETTINGS[n]: x for n, x in known.items()})
            break


def _events(path: Path, settings: dict[str, Any]) -> Iterator[dict[str, Any]]:
    rows: dict[int, dict[str, Any]] = {}
    episodes: dict[str, dict[int, list[float]]] = {"charts/episodic_return": {}, "charts/episodic_length": {}}
    for step, tag, value in read_events(path):
        if isinstance(value, str):
            # CleanRL writes its arguments as a Markdown table.
            for line in value.splitlines():
                cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
                if len(cells) == 2:
                    settings[cells[0]] = cells[1]
        elif (tag := tag.removeprefix("ray/tune/")) in episodes:
            # One line per episode; they are averaged into the next row with losses.
            episodes[tag].setdefault(step, []).append(value)
        else:
            rows.setdefault(step, {})[tag] = value
    ended = {tag: [(step, x) for step in sorted(values) for x in values[step]] for tag, values in episodes.items()}
    for step in sorted(rows):
        if not any(METRICS.get(tag, "") in ("approx_kl", "value_loss", "entropy", "return") for tag in rows[step]):
            continue
        for tag, values in ended.items():
            count = bisect.bisect_right(values, step, key=itemgetter(0))
            if count:
                rows[step] |= {tag: sum(x for _, x in values[:count]) / count, "episodes": count}
            del values[:count]
        yield {**rows[step], "global_step": rows[step].get("time/total_timesteps", step)}
    _params(path, settings)


def _flattened(entry: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in entry.items():
        if isinstance(value, dict):
            yield from _flattened(cast(dict[str, Any], value), f"{prefix}{name}/")
        else:
            yield prefix + name, value


def _row(entry: Mapping[str, Any]) -> Row:
    """Return the metrics by our names; what can be derived from others is added."""
    row: Row = {}
    if "episodes" in entry:
        row["episodes"] = float(entry["episodes"])
    for name, value in entry.items():
        # RLlib's names go through the policy's id; the last part is the metric's.
        name = name.replace(" ", "_")
        ours = METRICS.get(name) or METRICS.get(name.rpartition("/")[2] if "learner" in name else "") or _BARE.get(name)
        number = _value(value)
        if ours is None or not isinstance(number, int | float) or not math.isfinite(number):
            continue
        row[ours.removeprefix("-")] = -float(number) if ours.startswith("-") else float(number)
    explained, loss = row.get("explained_variance", math.nan), row.get("value_loss", math.nan)
    if explained < 1.0 and loss >= 0.0:
        # The explained variance is 1 - error / variance of the targets.
        row["target_std"] = math.sqrt(loss / max(1.0 - explained, 1e-6))
        row["target_mean"] = 0.0
    if "approx_kl" in row:
        # The number of gradient steps is not logged; PPO takes several.
        row["minibatches"] = 10.0
    if row.get("return") == 0.0:
        row |= {"reward_mean": 0.0, "reward_std": 0.0}
    return row


def _value(value: Any) -> Any:
    """Return numbers in text as numbers."""
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    return value
