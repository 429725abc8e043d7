"""Events as sentences, and a town as JSON values for a page."""

from __future__ import annotations

from typing import Any

from surefoot.town.scenarios.scenario import Scenario
from surefoot.town.sim.events import Happening
from surefoot.town.sim.layout import Layout
from surefoot.town.sim.state import SHIFT_STATES
from surefoot.town.sim.town_loop import Frame

_SENTENCES = {
    "use_done": "{actor} is done with {thing}",
    "queue_conflict": "{actor} pushes {other} at {thing}",
    "handover": "{other} leaves {thing} to {actor}",
    "shared_meal": "{actor} and {other} eat together",
    "chat_success": "{actor} and {other} have a good chat",
    "chat_failure": "{actor} tries to chat with {other}, in vain",
    "shift_late_start": "{actor} comes late to work",
    "helped_when_late": "{other} helps out because {actor} is late",
    "shift_absent": "{actor} does not come to work",
    "shift_departed_early": "{actor} leaves work early",
    "took_my_shift": "{other} takes the shift of {actor}",
    "faint": "{actor} faints from hunger",
    "eviction": "{actor} has to leave town",
    "price_spike": "prices go up",
    "blackout": "the lights go out",
    "outage": "there is no water",
}


def sentence(happening: Happening, scenario: Scenario) -> str:
    """Return an event as a sentence."""
    names = [resident.id for resident in scenario.agents]
    things = [thing.id for thing in scenario.objects]
    who = {
        "actor": names[happening.actor] if happening.actor >= 0 else "somebody",
        "other": names[happening.other] if happening.other >= 0 else "somebody",
        "thing": things[happening.object] if happening.object >= 0 else "something",
    }
    return _SENTENCES.get(happening.kind, happening.kind.replace("_", " ")).format(**who)


def scene(layout: Layout) -> dict[str, Any]:
    """Return what never changes in a town, for a page."""
    scenario = layout.scenario
    return {
        "name": scenario.name,
        "description": scenario.description,
        "width": layout.width,
        "height": layout.height,
        "floor": [int(x) for x in layout.floor],
        "objects": [{"id": o.id, "type": o.type, "at": list(o.position)} for o in scenario.objects],
        "agents": [{"id": a.id, "job": a.job} for a in scenario.agents],
        "day": scenario.ticks_per_day,
    }


def frame_json(frame: Frame, layout: Layout) -> dict[str, Any]:
    """Return one tick, for a page."""
    state = frame.state
    people = [
        {
            "at": [int(state.cell[0, a]) % layout.width, int(state.cell[0, a]) // layout.width],
            "here": bool(state.present[0, a]),
            "needs": [round(float(x), 3) for x in state.needs[0, a]],
            "using": int(state.using[0, a]),
            "queued": int(state.queued[0, a]),
            "rivalry": round(float(state.rivalry[0, a].max()), 3),
            "wallet": round(float(state.wallet[0, a]), 2),
            "shift": SHIFT_STATES[int(state.shift[0, a])] if layout.has_job[a] else "",
        }
        for a in range(layout.agents)
    ]
    return {
        "tick": frame.tick,
        "people": people,
        "users": [int(x) for x in state.user[0]],
        "quarrels": [h.object for h in frame.happened if h.kind == "queue_conflict"],
        "says": [sentence(h, layout.scenario) for h in frame.happened if h.kind != "use_done"],
    }
