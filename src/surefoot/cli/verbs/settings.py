"""`surefoot check`, `knobs`, `presets` and `include`: environments, settings and presets before training."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import tyro

from surefoot.cli.options import EnvName


@dataclass(frozen=True, kw_only=True)
class CheckArgs:
    """Check an environment as training would use it, and print problems with their fixes.

        surefoot check CartPole-v1
        surefoot check my_env:Guess --episodes 10

    Exit code 1 if a problem would break training; 0 if there is only advice.
    """

    env: EnvName
    episodes: int = 3
    """Episodes to play during the check."""

    def run(self) -> int:
        from surefoot.envs.check import check_env
        from surefoot.train.worlds import single_env

        findings = check_env(single_env(self.env), episodes=self.episodes)
        for finding in findings:
            print(f"{finding.level}: {finding.what} → {finding.fix}")
        if not findings:
            print(f"{self.env}: no problems found")
        return 1 if any(finding.level == "error" for finding in findings) else 0


@dataclass(frozen=True, kw_only=True)
class KnobsArgs:
    """List the settings that --set and --config accept, with defaults, legal values and other names.

    surefoot knobs
    surefoot knobs clip
    surefoot knobs --lm
    """

    words: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="WORD...")] = ()
    """Show only settings with one of these words in their name or other names."""
    lm: bool = False
    """Show the settings of `surefoot lm ppo` and `lm dpo` instead; they accept PPO's settings as well."""
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        rows = [
            row
            for row in (language_knobs() if self.lm else all_knobs())
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
            meaning = f"{row['help']}\n[dim]{row['legal']}[/dim]"
            table.add_row(
                f"[bold]{row['name']}[/bold]\n{row['config']}", str(row["default"]), meaning, ", ".join(row["aliases"])
            )
        Console(highlight=False).print(table)
        return 0


def all_knobs() -> list[dict[str, Any]]:
    """Return one row per setting of the three configs."""
    from surefoot.learn.config import PPOConfig
    from surefoot.nets.config import NetConfig
    from surefoot.train.config import CollectConfig

    return [
        {"config": config.__name__, **row}
        for config in (PPOConfig, NetConfig, CollectConfig)
        for row in config.describe()
    ]


def language_knobs() -> list[dict[str, Any]]:
    """Return one row per setting of a language run."""
    from surefoot.lm.config import LMConfig

    return [{"config": LMConfig.__name__, **row} for row in LMConfig.describe()]


@dataclass(frozen=True, kw_only=True)
class PresetsArgs:
    """List the shipped presets and the environments that use them by default.

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
    """Print the directory of surefoot_env.h, to compile an environment in C: cc -I "$(surefoot include)" …"""

    def run(self) -> int:
        from surefoot.native import include_dir

        print(include_dir())
        return 0
