"""`surefoot check`, `knobs`, `presets` and `include`: what there is, before anything is trained."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

import tyro

from surefoot.cli.options import PrintJson


@dataclass(frozen=True, kw_only=True)
class CheckArgs:
    """Look at an environment the way training will, and say what is wrong with it and what would work.

        surefoot check CartPole-v1
        surefoot check my_env:Guess --episodes 10

    Exit code 1 if something would break training; advice alone is 0.
    """

    env: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="ENV")]
    """A Gymnasium id, or an env of your own: module:function, or ./library.so for one in C."""
    episodes: int = 3
    """How many to play while looking."""

    def run(self) -> int:
        from surefoot.envs.check import check_env
        from surefoot.train.worlds import single_env

        findings = check_env(single_env(self.env), episodes=self.episodes)
        for finding in findings:
            print(f"{finding.level}: {finding.what} → {finding.fix}")
        if not findings:
            print(f"{self.env}: nothing to complain about")
        return 1 if any(finding.level == "error" for finding in findings) else 0


@dataclass(frozen=True, kw_only=True)
class KnobsArgs:
    """List every setting that --set and --config take.

    surefoot knobs
    surefoot knobs clip
    """

    words: tyro.conf.Positional[tuple[str, ...]] = ()
    """Show only settings whose name or other names contain one of these."""
    as_json: PrintJson = False

    def run(self) -> int:
        rows = [
            row
            for row in all_knobs()
            if not self.words or any(word in name for word in self.words for name in [row["name"], *row["aliases"]])
        ]
        if self.as_json:
            print(json.dumps(rows))
            return 0
        from rich.console import Console
        from rich.table import Table

        table = Table(show_lines=True)
        for column in ("setting", "default", "what it does", "also called"):
            table.add_column(column, ratio=3 if column == "what it does" else 1)
        for row in rows:
            told = f"{row['help']}\n[dim]{row['legal']}[/dim]"
            table.add_row(
                f"[bold]{row['name']}[/bold]\n{row['config']}", str(row["default"]), told, ", ".join(row["aliases"])
            )
        Console(highlight=False).print(table)
        return 0


def all_knobs() -> list[dict[str, Any]]:
    """One row a setting, of all three configs."""
    from surefoot.learn.config import PPOConfig
    from surefoot.nets.config import NetConfig
    from surefoot.train.config import CollectConfig

    return [
        {"config": config.__name__, **row}
        for config in (PPOConfig, NetConfig, CollectConfig)
        for row in config.describe()
    ]


@dataclass(frozen=True, kw_only=True)
class PresetsArgs:
    """List the shipped settings, and which worlds get them by default.

    surefoot presets
    """

    def run(self) -> int:
        from rich.console import Console
        from rich.table import Table

        from surefoot.learn.presets import FAMILIES, all_presets

        table = Table()
        for column in ("preset", "for", "what it is", "steps"):
            table.add_column(column)
        for name, preset in all_presets().items():
            worlds = ", ".join(pattern for pattern, chosen in FAMILIES if chosen == name)
            steps = "" if preset.total_steps is None else f"{preset.total_steps:,}"
            table.add_row(name, worlds, preset.summary, steps)
        Console(highlight=False).print(table)
        return 0


@dataclass(frozen=True, kw_only=True)
class IncludeArgs:
    """Print the directory of surefoot_env.h, for compiling a world in C: cc -I "$(surefoot include)" …"""

    def run(self) -> int:
        from surefoot.native import include_dir

        print(include_dir())
        return 0
