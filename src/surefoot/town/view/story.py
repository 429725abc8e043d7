"""Events as sentences, and the page that plays a film of a town."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.town.scenarios.scenario import NEEDS, PERTURBATIONS, Scenario
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


COLUMNS = ("x", "y", "here", *NEEDS, "using", "queued", "wallet", "shift", "rivalry", "score")
"""Numbers of one agent in a shot; needs in percent, `using` and `queued` are objects or -1, `score` is the return so far."""
GRAVE = frozenset({"queue_conflict", "shift_absent", "shift_late_start", "faint", "eviction", *PERTURBATIONS})
"""Events that a page shows in bold."""


def shots(frames: Iterable[Frame], layout: Layout) -> list[dict[str, Any]]:
    """Return the ticks of a film, for a page."""
    score, taken = np.zeros(layout.agents), list[dict[str, Any]]()
    for frame in frames:
        score += frame.reward
        taken.append(_shot(frame, layout, score))
    return taken


def _shot(frame: Frame, layout: Layout, score: np.ndarray) -> dict[str, Any]:
    state = frame.state
    y, x = np.divmod(state.cell[0], layout.width)
    table = [
        x,
        y,
        state.present[0].astype(int),
        *(100.0 * state.needs[0]).round().astype(int).T,
        state.using[0],
        state.queued[0],
        state.wallet[0].round(2),
        np.where(layout.has_job, state.shift[0], -1),
        state.rivalry[0].max(axis=1).round(2),
        score.round(2),
    ]
    return {
        "tick": frame.tick,
        "score": round(float(score.mean()), 3),
        "people": [list(row) for row in zip(*(column.tolist() for column in table), strict=True)],
        "quarrels": [h.object for h in frame.happened if h.kind == "queue_conflict"],
        "says": [
            [sentence(h, layout.scenario), [a for a in (h.actor, h.other) if a >= 0], h.kind in GRAVE]
            for h in frame.happened
            if h.kind != "use_done"
        ],
    }


def film_page(layout: Layout, takes: Mapping[str, Iterable[Frame]]) -> str:
    """Return a page that plays a town under one policy, or under several side by side.

    Args:
        layout: The town.
        takes: The ticks of each policy, by its name.
    """
    film = {
        "scene": scene(layout),
        "columns": COLUMNS,
        "shifts": SHIFT_STATES,
        "takes": [{"title": title, "shots": shots(frames, layout)} for title, frames in takes.items()],
    }
    # A "</script>" in the text of an event would end the script element that contains the data.
    text = json.dumps(film, separators=(",", ":")).replace("</", "<\\/")
    return Path(__file__).with_name("page.html").read_text("utf-8").replace("{{FILM}}", text)
