"""What objects do, and the shipped object types and personalities (defaults.yaml)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from surefoot.data.shipped_yaml import read_shipped
from surefoot.town.scenarios.yaml_reader import knob


@dataclass(frozen=True, slots=True, kw_only=True)
class Affordance:
    """What using an object of a type does, costs and needs."""

    action: str = knob("", "Its name in event texts, such as use_shower.")
    duration: int = knob(30, "Ticks of one use.", 1, 100_000)
    hunger: float = knob(0.0, "Added to hunger at the end of a use (1 is satisfied).", -1, 1)
    hygiene: float = knob(0.0, "Added to hygiene.", -1, 1)
    energy: float = knob(0.0, "Added to energy.", -1, 1)
    cost: float = knob(0.0, "Money paid at the end of a use, times the price level.", 0)
    makes_meals: int = knob(0, "Meals put into the town's stock.", 0)
    takes_meal: bool = knob(False, "A use takes one meal from the stock and cannot start without one.")
    power: bool = knob(False, "Needs power: not usable during a blackout.")
    water: bool = knob(False, "Needs water: not usable during an outage.")
    meal: bool = knob(False, "Is a meal: two agents who eat near each other share it.")


DEFAULTS: dict[str, Any] = read_shipped("surefoot.town.scenarios", "defaults.yaml")
AFFORDANCES = {name: Affordance(**fields) for name, fields in DEFAULTS["affordances"].items()}
"""What objects of a known type do unless a scenario changes it."""
PROFILES: dict[str, dict[str, float]] = DEFAULTS["profiles"]
