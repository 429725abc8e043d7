"""What a block of the campaign is, and what it found."""

from __future__ import annotations

import importlib.util
import os
import random
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MOST_FAULTS = 12
"""Sentences that are kept of one check; all are counted."""


@dataclass(slots=True)
class Found:
    """Counts of one check. It is green if every try was made and nothing that must be 0 is not."""

    tried: int = 0
    kills: int = 0
    acknowledged: int = 0
    lost: int = 0
    """Acknowledged, and not there afterwards."""
    unreadable: int = 0
    """Files that nothing could be read from."""
    bad_inputs: int = 0
    silent: int = 0
    """Wrong numbers that were taken without a word."""
    server_errors: int = 0
    """Answers of 500 and above that are not a refusal to store (503, 507)."""
    fault_count: int = 0
    faults: list[str] = field(default_factory=list)
    """What else was not as it must be, in sentences."""
    notes: dict[str, Any] = field(default_factory=dict)
    not_here: str = ""
    """Why nothing could be tried: then it is neither green nor red."""
    crashed: bool = False
    """The check itself broke; of a mutant that is no proof that its defect was seen."""

    def fault(self, sentence: str) -> None:
        self.fault_count += 1
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(sentence)

    @property
    def green(self) -> bool:
        bad = (self.lost, self.unreadable, self.silent, self.server_errors, self.fault_count)
        return self.tried > 0 and not any(bad) and not self.not_here

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "green": self.green}


def caught(mutant: Mapping[str, Any]) -> bool:
    """Whether a check saw the defect, by what it counts and not by breaking."""
    return not (mutant["green"] or mutant["crashed"] or mutant["not_here"])


Check = Callable[[int, str], Found]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One kind of fire. `check(count, defect)` runs it against the code as shipped, or with the one defect put in."""

    name: str
    title: str
    over: str
    """What is under fire."""
    unit: str
    """What is counted."""
    smoke: int
    count: int
    long: int
    check: Check
    mutants: Mapping[str, int]
    """{the defect in words: how many tries must be enough to catch it}."""

    def size(self, how: str) -> int:
        return {"smoke": self.smoke, "campaign": self.count, "long": self.long}[how]


def seed(number: int) -> int:
    """Of a check; `--seed` makes it another one, and with it other moments, other bits and other mutants."""
    return number + 1000 * int(os.environ.get("CAMPAIGN_SEED", "0"))


def dice(number: int) -> random.Random:
    return random.Random(seed(number))


def from_tests(path: str) -> ModuleType:
    """A module of tests/, whose machinery is shared rather than written again."""
    return load(ROOT / "tests" / path)


def load(file: Path) -> ModuleType:
    name = "campaign_" + "_".join(file.relative_to(ROOT).with_suffix("").parts)
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # Dataclasses look their module up.
    spec.loader.exec_module(module)
    return module


def is_here(module: str) -> bool:
    """True if such a module can be imported."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
