"""What a town is made of: a grid, objects, agents, jobs and the numbers of its rules. Read from YAML, checked by line."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from surefoot.errors import ScenarioError
from surefoot.town.scenarios.yaml_reader import Lines, build, knob, need, parse_yaml, read_yaml, schema_of

NEEDS = ("hunger", "hygiene", "energy")
VARIANTS = ("features", "hybrid", "full", "compact")
PERTURBATIONS = ("price_spike", "blackout", "outage")
MODES = ("replay", "rollout", "mixed", "bc", "anneal")
SHIPPED = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Affordance:
    """What an object of a type is good for: how long it takes, what it does, what it needs."""

    action: str = knob("", "The word for it in stories, such as use_shower.")
    duration: int = knob(30, "Ticks that it takes.", 1, 100_000)
    hunger: float = knob(0.0, "Added to hunger when it is done (1 is satisfied).", -1, 1)
    hygiene: float = knob(0.0, "Added to hygiene.", -1, 1)
    energy: float = knob(0.0, "Added to energy.", -1, 1)
    cost: float = knob(0.0, "Money that it takes at its end, times the price level.", 0)
    makes_meals: int = knob(0, "Meals put into the town's stock.", 0)
    takes_meal: bool = knob(False, "It eats one meal of the stock, and cannot begin without one.")
    power: bool = knob(False, "It needs power: not during a blackout.")
    water: bool = knob(False, "It needs water: not during an outage.")
    meal: bool = knob(False, "It is a meal: two who eat near each other share it.")


AFFORDANCES: dict[str, Affordance] = {
    "shower": Affordance(
        action="use_shower", duration=30, hygiene=0.45, energy=-0.03, cost=0.2, power=True, water=True
    ),
    "fridge": Affordance(action="eat_meal", duration=15, hunger=0.4, energy=0.05, takes_meal=True, meal=True),
    "stove": Affordance(
        action="cook_meal", duration=40, hunger=0.1, energy=-0.05, hygiene=-0.02, cost=0.15, makes_meals=2, power=True
    ),
    "bed": Affordance(action="rest_sleep", duration=60, energy=0.8),
    "bench": Affordance(action="sit_down", duration=10, energy=0.15),
    "cafe": Affordance(action="buy_meal", duration=8, hunger=0.5, energy=0.05, cost=0.4, meal=True),
    "grocer": Affordance(action="buy_food", duration=6, cost=0.3, makes_meals=3),
    "desk": Affordance(action="work_at_desk", duration=10),
    "checkout": Affordance(action="mind_the_counter", duration=10),
}
"""What objects of a known type do unless a scenario says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """An object somebody can use."""

    id: str = need("Its name, such as shower_1.")
    type: str = need("What it is: a known type, or one that `affordances` describes.")
    position: tuple[int, int] = need("[x, y] on the grid.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Three needs in [0, 1]; 1 is satisfied."""

    hunger: float = knob(0.7, "Hunger.", 0, 1)
    hygiene: float = knob(0.7, "Hygiene.", 0, 1)
    energy: float = knob(0.7, "Energy.", 0, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resident:
    """One agent as it begins."""

    id: str = need("Its name.")
    position: tuple[int, int] = need("[x, y] where it begins.")
    needs: Needs = knob(Needs(), "What it begins with.")
    wallet: float = knob(2.0, "Money; 1 is about one basic meal.", 0)
    job: str | None = knob(None, "One of `jobs`.")
    profile: str = knob("balanced", "balanced, socialite, industrious or stoic.")
    schedule: list[str] = knob(
        [], "What the script does, tick after tick and over again: names of actions, or to:OBJECT."
    )


PROFILES: dict[str, dict[str, float]] = {
    "balanced": {},
    "socialite": {"extroversion": 0.6, "forgiveness": 0.1, "ambition": -0.1, "social": 1.2},
    "industrious": {"extroversion": -0.2, "forgiveness": -0.1, "ambition": 0.5, "work": 1.25},
    "stoic": {"extroversion": -0.3, "forgiveness": 0.5, "ambition": -0.2, "survival": 1.1},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A shift, every day the same."""

    start: int = need("First tick of the day at work.", 0)
    end: int = need("Tick of the day at which it is over.", 1)
    location: str = need("The object one must be next to.")
    wage: float = knob(0.02, "Paid each tick that one is there.", 0)
    lateness_penalty: float = knob(0.2, "Taken from the wallet once, on coming late.", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRules:
    """Who is next, and what pushing does."""

    cooldown: int = knob(60, "Ticks after a use in which the same agent may not use the same object.", 0)
    ghost_step_after: int = knob(3, "Pushes after which the head of a queue gives way.", 1)
    age_weight: float = knob(0.1, "What a tick of waiting is worth, in places.", 0)
    commit: bool = knob(True, "What was begun is finished: only a place in a queue can be left.")
    guardrail: bool = knob(True, "Nobody queues behind, or chats with, somebody to be avoided.")


@dataclass(frozen=True, slots=True, kw_only=True)
class SocialRules:
    """How rivalry, trust and familiarity come and go."""

    conflict: float = knob(0.15, "Rivalry added by a conflict of intensity 1.", 0, 1)
    decay: float = knob(0.005, "Rivalry lost each tick.", 0, 1)
    avoid_threshold: float = knob(0.7, "Rivalry from which on somebody is to be avoided.", 0, 1)
    eviction_threshold: float = knob(0.05, "A tie as weak as this is forgotten.", 0, 1)
    max_ties: int = knob(6, "Others that one remembers.", 1, 64)
    chafe: float = knob(0.0, "Rivalry added each tick to rivals who are near each other.", 0, 1)
    chafe_distance: int = knob(2, "How near that is, in tiles.", 0)
    begin: dict[str, float] = knob({}, 'Rivalry at the beginning: {"finn-gina": 0.5}.', 0, 1)
    chat_cooldown: int = knob(30, "Ticks between two chats of one agent.", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRules:
    """Punctuality and absence."""

    grace: int = knob(5, "Ticks after the start that still count as punctual.", 0)
    absent_cutoff: int = knob(30, "Ticks after the start at which one who never came is absent.", 0)
    absence_slack: int = knob(20, "Ticks one may be away during a shift.", 0)
    late_tick_penalty: float = knob(0.005, "Wage withheld each tick that a late one is still not there.", 0)
    absence_penalty: float = knob(0.2, "Wage withheld once for an absence.", 0)
    max_absent_shifts: int = knob(3, "Absences after which one has to leave town.", 1)
    daily_exits: int = knob(2, "How many may have to leave in one day.", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardRules:
    """What a tick is worth to an agent, part by part."""

    survival: float = knob(0.002, "For being there.", 0)
    hunger: float = knob(0.05, "Times (1 - hunger) squared, taken away.", 0)
    hygiene: float = knob(0.03, "Likewise.", 0)
    energy: float = knob(0.04, "Likewise.", 0)
    wage: float = knob(1.0, "Times what was paid less what was withheld.", 0)
    punctuality: float = knob(0.05, "For a tick at work of one who came in time.", 0)
    commute: float = knob(
        0.0,
        "Times the way to work that is left, in shares of the town's width and height, taken away each tick from "
        "`commute_ahead` ticks before a shift to its end.",
        0,
    )
    commute_ahead: int = knob(30, "See commute.", 0)
    chat: float = knob(0.01, "For a good chat, plus 0.3 trust and 0.2 familiarity, times its quality.", 0)
    conflict: float = knob(0.03, "Times the intensity, taken from who pushed; half of it from the other.", 0)
    waiting: float = knob(0.004, "Taken away for a tick in a queue.", 0)
    avoidance: float = knob(
        0.005, "For keeping away from a rival to be avoided; four times it is taken for being near.", 0
    )
    rivalry: float = knob(0.0, "Times one's strongest rivalry, taken away each tick.", 0)
    faint: float = knob(1.0, "Taken away on fainting.", 0)
    eviction: float = knob(2.0, "Taken away on having to leave town.", 0)
    clip: float = knob(2.5, "No tick is worth more than this, nor less than minus this.", 0)
    social: bool = knob(True, "Chats and conflicts count.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Perturbation:
    """Something that happens to the whole town."""

    kind: str = need("price_spike, blackout or outage.")
    tick: int | None = knob(None, "When it begins; left out, it comes at random.", 0)
    duration: int = knob(20, "Ticks that it lasts.", 1)
    factor: float = knob(2.0, "For a price spike: what prices are multiplied by.", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PerturbationRules:
    """What may happen, and how often."""

    events: list[Perturbation] = knob([], "What happens at a known tick, and what may happen at random.")
    window: int = knob(1440, "Ticks in which at most one random event begins.", 1)
    grace: int = knob(60, "No random event begins before this tick.", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeRules:
    """Fainting, leaving and coming back."""

    faint_at: float = knob(0.03, "Hunger at which one faints.", 0, 1)
    respawn_delay: int = knob(0, "Ticks until somebody new takes the place.", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """The script's numbers."""

    hunger_threshold: float = knob(0.4, "It looks for food below this.", 0, 1)
    hygiene_threshold: float = knob(0.4, "It washes below this.", 0, 1)
    energy_threshold: float = knob(0.4, "It rests below this.", 0, 1)
    job_arrival_buffer: int = knob(5, "Ticks before a shift at which it sets out.", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spawning:
    """How much the beginning of an episode varies."""

    position: int = knob(0, "Random steps taken from the given position.", 0)
    needs: float = knob(0.0, "Needs begin up to this much higher or lower.", 0, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRules:
    """How `surefoot town train` trains this town unless it is told otherwise."""

    source: str = knob("rollout", "replay, rollout, mixed, bc or anneal.")
    towns: int = knob(64, "Towns side by side.", 1)
    rollout_ticks: int = knob(80, "Ticks of each town between two updates.", 1)
    steps: int = knob(500_000, "Agent-steps of a whole run.", 1)
    settings: dict[str, Any] = knob({}, "Any settings of PPO, the network and the collector, as for --set.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A whole town."""

    name: str = need("Its name.")
    description: str = knob("", "One sentence.")
    seed: int = knob(0, "Where its episodes begin unless told otherwise.", 0)
    ticks: int = need("Length of an episode.", 1, 1_000_000)
    ticks_per_day: int = knob(1440, "Length of a day.", 1)
    grid: tuple[int, int] = knob((24, 24), "[width, height].", 1, 512)
    walls: list[str] = knob([], "Rows of text, one a row of the grid; # is a wall.")
    observations: str = knob("features", "features, hybrid, full or compact.")
    window: int = knob(11, "Side of the map that an agent sees (hybrid, full); compact has 7.", 3)
    decay: Needs = knob(Needs(hunger=0.004, hygiene=0.003, energy=0.002), "What each need loses in a tick.", 0, 1)
    objects: list[Thing] = knob([], "What can be used.")
    agents: list[Resident] = knob([], "Who lives here; at least one.")
    jobs: dict[str, Job] = knob({}, "Shifts by name.")
    affordances: dict[str, Affordance] = knob({}, "What object types do, where it differs from the shipped ones.")
    meals: int = knob(0, "Cooked meals in stock at the beginning.", 0)
    queue: QueueRules = knob(QueueRules(), "Queues.")
    rivalry: SocialRules = knob(SocialRules(), "Ties between agents.")
    employment: JobRules = knob(JobRules(), "Punctuality.")
    rewards: RewardRules = knob(RewardRules(), "Rewards.")
    perturbations: PerturbationRules = knob(PerturbationRules(), "What happens to the town.")
    lifecycle: LifeRules = knob(LifeRules(), "Coming and going.")
    behavior: Behaviour = knob(Behaviour(), "The script.")
    spawn: Spawning = knob(Spawning(), "How beginnings vary.")
    training: TrainingRules = knob(TrainingRules(), "How it is trained.")
    measures: list[str] = knob([], "What counts here, best first: names of `surefoot.town.sim.measure`.")

    def to_json(self) -> dict[str, Any]:
        """JSON values from which `from_json` makes an equal scenario."""
        return msgspec.json.decode(msgspec.json.encode(self))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Scenario:
        """What `to_json` wrote."""
        return from_values(dict(data), Lines(str(data.get("name", "scenario"))))

    @property
    def types(self) -> tuple[str, ...]:
        """Object types in the order in which they first appear; each has an action."""
        return tuple(dict.fromkeys(thing.type for thing in self.objects))

    @property
    def actions(self) -> tuple[str, ...]:
        """Every action by name; an agent's action is an index into this, the same for all agents and for ever."""
        return ("wait", "north", "east", "south", "west", "leave", "chat", *(f"use_{kind}" for kind in self.types))

    def affordance(self, kind: str) -> Affordance:
        """What objects of a type do here."""
        return self.affordances.get(kind) or AFFORDANCES[kind]


def shipped() -> list[str]:
    """Names of the scenarios that come along."""
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


def load_scenario(name: str | Path, *, auto_seed_agents: bool = False) -> Scenario:
    """A shipped scenario by its name, or a YAML file of your own; `auto_seed_agents` puts two into an empty one."""
    path = Path(name)
    if path.suffix in (".yaml", ".yml") or path.is_file():
        if not path.is_file():
            raise ScenarioError(f"there is no file {path}")
        values, lines = read_yaml(path)
        if auto_seed_agents and not values.get("agents"):
            values["agents"] = AUTO_AGENTS
            values.setdefault("objects", [{"id": "stove_1", "type": "stove", "position": [2, 0]}])
        return from_values(values, lines)
    if str(name) not in shipped():
        raise ScenarioError(
            f"there is no scenario {str(name)!r}; there are {', '.join(shipped())}, or give a YAML file"
        )
    return from_values(*read_yaml(SHIPPED / f"{name}.yaml"))


AUTO_AGENTS: list[dict[str, Any]] = [
    {"id": "alice", "position": [0, 0], "needs": {"hunger": 0.3, "hygiene": 0.4, "energy": 0.5}, "wallet": 2.0},
    {"id": "bob", "position": [1, 0], "needs": {"hunger": 0.6, "hygiene": 0.7, "energy": 0.8}, "wallet": 3.0},
]


def parse_scenario(text: str, source: str = "<text>") -> Scenario:
    """A scenario from YAML text."""
    return from_values(*parse_yaml(text, source))


def from_values(values: dict[str, Any], lines: Lines) -> Scenario:
    """Return a scenario from plain values; check each value, and that they are consistent."""
    from surefoot.town.scenarios.check import check_scenario

    changed = values.get("affordances")
    if isinstance(changed, dict):
        # What a scenario does not say of a shipped affordance stays as shipped.
        shipped = {kind: dataclasses.asdict(AFFORDANCES[kind]) for kind in changed if kind in AFFORDANCES}
        filled = {kind: {**shipped.get(kind, {}), **x} if isinstance(x, dict) else x for kind, x in changed.items()}
        values = {**values, "affordances": filled}
    scenario = build(Scenario, values, lines)
    check_scenario(scenario, lines)
    return scenario


def scenario_schema() -> dict[str, Any]:
    """The JSON Schema of a scenario file."""
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A town of surefoot"}
    return about | schema_of(Scenario)
