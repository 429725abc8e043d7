"""`Scenario`: the grid, objects, agents, jobs and rules of a town, read from YAML with errors that name the line."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from surefoot.errors import ScenarioError
from surefoot.town.scenarios.affordances import AFFORDANCES, DEFAULTS, Affordance
from surefoot.town.scenarios.affordances import PROFILES as PROFILES
from surefoot.town.scenarios.yaml_reader import Lines, build, knob, need, parse_yaml, read_yaml, schema_of

NEEDS = ("hunger", "hygiene", "energy")
VARIANTS = ("features", "hybrid", "full", "compact")
PERTURBATIONS = ("price_spike", "blackout", "outage")
MODES = ("replay", "rollout", "mixed", "bc", "anneal")
FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """An object that agents can use."""

    id: str = need("Its name, such as shower_1.")
    type: str = need("A known type, or one that `affordances` defines.")
    position: tuple[int, int] = need("[x, y] on the grid.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Three needs in [0, 1]; 1 is satisfied."""

    hunger: float = knob(0.7, "Hunger.", 0, 1)
    hygiene: float = knob(0.7, "Hygiene.", 0, 1)
    energy: float = knob(0.7, "Energy.", 0, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resident:
    """The start of one agent."""

    id: str = need("Its name.")
    position: tuple[int, int] = need("[x, y] at the start.")
    needs: Needs = knob(Needs(), "Needs at the start.")
    wallet: float = knob(2.0, "Money; 1 is about one basic meal.", 0)
    job: str | None = knob(None, "One of `jobs`.")
    profile: str = knob("balanced", "balanced, socialite, industrious or stoic.")
    schedule: list[str] = knob([], "Actions, or to:OBJECT, that the script repeats tick by tick instead of its rules.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A daily shift."""

    start: int = need("First tick of the shift in the day.", 0)
    end: int = need("Tick of the day at which the shift ends; before `start` for a shift over midnight.", 0)
    location: str = need("Object that the agent must be next to.")
    wage: float = knob(0.02, "Paid per tick at work.", 0)
    lateness_penalty: float = knob(0.2, "Taken from the wallet once for a late start.", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueRules:
    """Queues: order, cooldowns and pushing."""

    cooldown: int = knob(60, "Ticks after a use in which the agent cannot use the object again.", 0)
    ghost_step_after: int = knob(3, "Pushes after which there is a conflict and the head of the queue steps back.", 1)
    age_weight: float = knob(0.1, "Places in the queue that one tick of waiting counts for.", 0)
    commit: bool = knob(True, "A use cannot be interrupted: `leave` only leaves queues.")
    guardrail: bool = knob(True, "Mask queueing behind, and chatting with, an agent to be avoided.")


@dataclass(frozen=True, slots=True, kw_only=True)
class SocialRules:
    """How rivalry, trust and familiarity change."""

    conflict: float = knob(0.15, "Rivalry added by a conflict of intensity 1.", 0, 1)
    decay: float = knob(0.005, "Rivalry lost per tick.", 0, 1)
    avoid_threshold: float = knob(0.7, "Rivalry from which an agent is to be avoided.", 0, 1)
    eviction_threshold: float = knob(0.05, "A relationship weaker than this is forgotten.", 0, 1)
    max_ties: int = knob(6, "Relationships that an agent remembers.", 1, 64)
    chafe: float = knob(0.0, "Rivalry added per tick to rivals who are near each other.", 0, 1)
    chafe_distance: int = knob(2, "Distance for `chafe`, in tiles.", 0)
    begin: dict[str, float] = knob({}, 'Rivalry at the start: {"finn-gina": 0.5}.', 0, 1)
    chat_cooldown: int = knob(30, "Ticks between two chats of one agent.", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRules:
    """Punctuality and absence."""

    grace: int = knob(5, "Ticks after the start that still count as punctual.", 0)
    absent_cutoff: int = knob(30, "Ticks after the start from which a missing agent is absent.", 0)
    absence_slack: int = knob(20, "Ticks that an agent may be away during a shift.", 0)
    late_tick_penalty: float = knob(
        0.005, "Wage withheld per tick after the grace period that the agent is not at work.", 0
    )
    absence_penalty: float = knob(0.2, "Wage withheld once for an absence.", 0)
    max_absent_shifts: int = knob(3, "Absences after which an agent is evicted.", 1)
    daily_exits: int = knob(2, "Most evictions per day.", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardRules:
    """The parts of an agent's reward per tick."""

    survival: float = knob(0.002, "Reward per tick in town.", 0)
    hunger: float = knob(0.05, "Penalty: times (1 - hunger) squared.", 0)
    hygiene: float = knob(0.03, "Penalty: times (1 - hygiene) squared.", 0)
    energy: float = knob(0.04, "Penalty: times (1 - energy) squared.", 0)
    wage: float = knob(1.0, "Times the wage paid minus the wage withheld.", 0)
    punctuality: float = knob(0.05, "Reward per tick at work after a punctual start.", 0)
    commute: float = knob(
        # Without it random agents hardly ever meet the reward of work, and learn to stay at home.
        0.1,
        "Penalty per tick from `commute_ahead` ticks before a shift to its end: times the distance to work, as a share of "
        "the town's width plus height.",
        0,
    )
    commute_ahead: int = knob(30, "Ticks before a shift; see `commute`.", 0)
    chat: float = knob(0.01, "Reward for a good chat, times (1 + 3 trust + 2 familiarity), times its quality.", 0)
    conflict: float = knob(0.03, "Penalty for pushing: times the intensity; half of it for the other agent.", 0)
    waiting: float = knob(0.004, "Penalty per tick in a queue.", 0)
    avoidance: float = knob(0.005, "Reward for distance to rivals to be avoided; being near costs four times it.", 0)
    rivalry: float = knob(0.0, "Penalty per tick: times the agent's strongest rivalry.", 0)
    faint: float = knob(1.0, "Penalty for fainting.", 0)
    eviction: float = knob(2.0, "Penalty for eviction.", 0)
    clip: float = knob(2.5, "Rewards are clipped to ± this.", 0)
    social: bool = knob(True, "Include chats and conflicts in the reward.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Perturbation:
    """An event that affects the whole town."""

    kind: str = need("price_spike, blackout or outage.")
    tick: int | None = knob(None, "First tick; without it, the event comes at random.", 0)
    duration: int = knob(20, "Length in ticks.", 1)
    factor: float = knob(2.0, "Factor of all prices during a price spike.", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PerturbationRules:
    """Events, and how often random ones occur."""

    events: list[Perturbation] = knob([], "Events at fixed ticks and random events.")
    window: int = knob(1440, "Ticks in which at most one random event starts.", 1)
    grace: int = knob(60, "No random event starts before this tick.", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LifeRules:
    """Fainting and respawning."""

    faint_at: float = knob(0.03, "Hunger at which an agent faints.", 0, 1)
    respawn_delay: int = knob(0, "Ticks until a new agent takes the place.", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """Thresholds of the script."""

    hunger_threshold: float = knob(0.4, "Look for food below this.", 0, 1)
    hygiene_threshold: float = knob(0.4, "Wash below this.", 0, 1)
    energy_threshold: float = knob(0.4, "Rest below this.", 0, 1)
    job_arrival_buffer: int = knob(5, "Ticks before a shift at which to leave for work.", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spawning:
    """Random variation of the start of an episode."""

    position: int = knob(0, "Random steps from the given position.", 0)
    needs: float = knob(0.0, "Needs start up to this much higher or lower.", 0, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRules:
    """Defaults of `surefoot town train` for this town."""

    source: str = knob("rollout", "replay, rollout, mixed, bc or anneal.")
    towns: int | None = knob(None, "Number of parallel towns (default: as many as have 192 agents in all).", 1)
    rollout_ticks: int = knob(80, "Ticks per town between two updates.", 1)
    steps: int = knob(2_000_000, "Agent steps of a run.", 1)
    settings: dict[str, Any] = knob({}, "Settings of PPO, the network and the collector, as for --set.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A town: everything that a scenario file can define. `load_scenario` reads one."""

    name: str = need("Its name.")
    description: str = knob("", "One sentence.")
    seed: int = knob(0, "Default seed.", 0)
    ticks: int = need("Length of an episode.", 1, 1_000_000)
    ticks_per_day: int = knob(1440, "Length of a day.", 1)
    grid: tuple[int, int] = knob((24, 24), "[width, height].", 1, 512)
    walls: list[str] = knob([], "Rows of text, one per row of the grid; # is a wall.")
    observations: str = knob("features", "features, hybrid, full or compact.")
    window: int = knob(11, "Side of the map that an agent observes (hybrid, full); compact has 7.", 3)
    decay: Needs = knob(Needs(hunger=0.004, hygiene=0.003, energy=0.002), "Loss of each need per tick.", 0, 1)
    objects: list[Thing] = knob([], "Objects that agents can use.")
    agents: list[Resident] = knob([], "Agents; at least one.")
    jobs: dict[str, Job] = knob({}, "Shifts by name.")
    affordances: dict[str, Affordance] = knob({}, "Changes to the shipped affordances, and new object types.")
    meals: int = knob(0, "Cooked meals in stock at the start.", 0)
    queue: QueueRules = knob(QueueRules(), "Queues.")
    rivalry: SocialRules = knob(SocialRules(), "Relationships between agents.")
    employment: JobRules = knob(JobRules(), "Punctuality.")
    rewards: RewardRules = knob(RewardRules(), "Rewards.")
    perturbations: PerturbationRules = knob(PerturbationRules(), "Events that affect the whole town.")
    lifecycle: LifeRules = knob(LifeRules(), "Fainting and respawning.")
    behavior: Behaviour = knob(Behaviour(), "The script.")
    spawn: Spawning = knob(Spawning(), "Random variation of the start.")
    training: TrainingRules = knob(TrainingRules(), "Training defaults.")
    measures: list[str] = knob([], "Measures that matter here, best first: names of `surefoot.town.sim.measure`.")

    def to_json(self) -> dict[str, Any]:
        """Return JSON values from which `from_json` makes an equal scenario."""
        return msgspec.json.decode(msgspec.json.encode(self))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Scenario:
        """Return the scenario that `to_json` was called on."""
        return from_values(dict(data), Lines(str(data.get("name", "scenario"))))

    @property
    def types(self) -> tuple[str, ...]:
        """Object types in order of first appearance; each has an action."""
        return tuple(dict.fromkeys(thing.type for thing in self.objects))

    @property
    def actions(self) -> tuple[str, ...]:
        """Names of the actions; an agent's action is an index into this, the same for all agents."""
        return ("wait", "north", "east", "south", "west", "leave", "chat", *(f"use_{kind}" for kind in self.types))

    def affordance(self, kind: str) -> Affordance:
        return self.affordances.get(kind) or AFFORDANCES[kind]


def shipped() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.yaml") if path.stem != "defaults")


def load_scenario(name: str | Path, *, auto_seed_agents: bool = False) -> Scenario:
    """Return a scenario.

    Args:
        name: Name of a shipped scenario, or path of a YAML file.
        auto_seed_agents: Add two agents to a file without any.
    """
    path = Path(name)
    if path.suffix in (".yaml", ".yml") or path.is_file():
        if not path.is_file():
            raise ScenarioError(f"there is no file {path}")
        values, lines = read_yaml(path)
        if auto_seed_agents and not values.get("agents"):
            values["agents"] = DEFAULTS["auto_agents"]
            values.setdefault("objects", DEFAULTS["auto_objects"])
        return from_values(values, lines)
    if str(name) not in shipped():
        close = difflib.get_close_matches(str(name), shipped(), n=1)
        advice = f"did you mean {close[0]}?" if close else f"pass a YAML file, or one of {', '.join(shipped())}"
        raise ScenarioError(f"there is no scenario {str(name)!r}; {advice}")
    return from_values(*read_yaml(FOLDER / f"{name}.yaml"))


def parse_scenario(text: str, source: str = "<text>") -> Scenario:
    return from_values(*parse_yaml(text, source))


def from_values(values: dict[str, Any], lines: Lines) -> Scenario:
    """Return a scenario from plain values; check each value and their consistency."""
    from surefoot.town.scenarios.check import check_scenario

    changed = values.get("affordances")
    if isinstance(changed, dict):
        # A scenario may change single fields of a shipped affordance.
        defaults = {kind: dataclasses.asdict(AFFORDANCES[kind]) for kind in changed if kind in AFFORDANCES}
        filled = {kind: {**defaults.get(kind, {}), **x} if isinstance(x, dict) else x for kind, x in changed.items()}
        values = {**values, "affordances": filled}
    scenario = build(Scenario, values, lines)
    check_scenario(scenario, lines)
    return scenario


def scenario_schema() -> dict[str, Any]:
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A town of surefoot"}
    return about | schema_of(Scenario)
