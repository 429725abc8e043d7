"""Fixed behaviours: the script and random actions. Both choose only allowed actions."""

from __future__ import annotations

import numpy as np

from surefoot.town.scenarios.scenario import NEEDS
from surefoot.town.sim.jobs import shift_now
from surefoot.town.sim.layout import CHAT, EAST, NORTH, SOUTH, USE, WAIT, WEST, Layout
from surefoot.town.sim.relationships import tie_distance
from surefoot.town.sim.state import State


def random_actions(mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a uniformly random allowed action per row of `mask` […, actions]."""
    upto = mask.cumsum(axis=-1, dtype=np.int8)
    drawn = (rng.random(mask.shape[:-1], np.float32) * upto[..., -1]).astype(np.int8)
    return (upto <= drawn[..., None]).sum(axis=-1)


class Script:
    """Rules in the order of the original town's script: finish a use, work, serve the lowest need, chat, avoid rivals, wait.

    Like that one, it requests the object it waits for in every tick, so it pushes. An agent with a schedule follows that
    instead.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        scenario, types = layout.scenario, layout.scenario.types
        self.threshold = np.array([getattr(scenario.behavior, f"{need}_threshold") for need in NEEDS])
        serves = np.array([[scenario.affordance(kind).__getattribute__(need) for kind in types] for need in NEEDS])
        self.serves = serves.reshape(3, len(types))
        """[needs, types]: how much a type of object helps a need."""
        names = list(scenario.actions)
        ids = [thing.id for thing in scenario.objects]
        self.schedule: dict[int, np.ndarray] = {
            i: np.array([-1 - ids.index(s[3:]) if s.startswith("to:") else names.index(s) for s in a.schedule])
            for i, a in enumerate(scenario.agents)
            if a.schedule
        }

    def __call__(self, state: State, mask: np.ndarray) -> np.ndarray:
        layout = self.layout
        choice = np.full(state.present.shape, WAIT, np.int64)
        free = state.present & (state.using < 0)
        waits = free & (state.queued >= 0)
        choice[waits] = USE + layout.kind[state.queued[waits]]
        self._work(state, choice, free & ~waits)
        self._needs(state, mask, choice, free & ~waits)
        self._choose_chats(state, mask, choice, free & ~waits)
        for agent, steps in self.schedule.items():
            step = steps[state.tick % len(steps)]
            goes = layout.toward[np.maximum(-1 - step, 0), state.cell[:, agent]]
            choice[:, agent] = np.where(step < 0, goes, step)
        possible = np.take_along_axis(mask, choice[:, :, None], axis=2)[:, :, 0]
        return np.where(possible, choice, WAIT)

    def _work(self, state: State, choice: np.ndarray, free: np.ndarray) -> None:
        layout, scenario = self.layout, self.layout.scenario
        ahead = layout.shift_ahead.take(state.tick % scenario.ticks_per_day, axis=0)
        goes = (shift_now(state, layout)[1] | (ahead <= scenario.behavior.job_arrival_buffer)) & free
        choice[goes] = layout.toward[layout.job_object, state.cell][goes]
        # At work it stays: -1 marks agents that have decided to wait.
        settled = goes & (choice == WAIT)
        choice[settled] = -1

    def _needs(self, state: State, mask: np.ndarray, choice: np.ndarray, free: np.ndarray) -> None:
        layout = self.layout
        idle = free & (choice == WAIT)
        choice[choice == -1] = WAIT
        for town, agent in zip(*np.nonzero(idle), strict=True):
            lack = self.threshold - state.needs[town, agent]
            for need in np.argsort(-lack):
                if lack[need] <= 0 or not layout.types:
                    break
                action = self._serve(state, mask[town, agent], int(town), int(agent), int(need))
                if action != WAIT:
                    choice[town, agent] = action
                    break

    def _serve(self, state: State, mask: np.ndarray, town: int, agent: int, need: int) -> int:
        """Return an action towards the object that helps a need most; meals in stock before cooking."""
        layout, cell = self.layout, state.cell[town, agent]
        kinds = [k for k in np.argsort(-self.serves[need]) if self.serves[need, k] > 0]
        if need == 0 and state.meals[town] == 0:
            kinds = [k for k in kinds if not layout.takes[k]]
        for k in kinds:
            thing = layout.nearest[k, cell]
            if state.ready_at[town, agent, thing] > state.tick[town] or state.wallet[town, agent] < layout.cost[k]:
                continue
            if layout.reach[k, cell] >= 0:
                return USE + int(k) if mask[USE + k] else WAIT
            return int(layout.toward[thing, cell])
        return WAIT

    def _choose_chats(self, state: State, mask: np.ndarray, choice: np.ndarray, free: np.ndarray) -> None:
        idle = free & (choice == WAIT)
        talks = idle & mask[:, :, CHAT] & (self.layout.character[:, 0] >= 0.2)
        choice[talks] = CHAT
        strong = (state.rivalry >= self.layout.scenario.rivalry.avoid_threshold) & (state.tie_with >= 0)
        if not np.count_nonzero(strong):
            return
        close = strong & (tie_distance(state, self.layout) <= 1)
        for town, agent in zip(*np.nonzero(close.any(axis=2) & idle & ~talks), strict=True):
            rival = int(state.tie_with[town, agent, int(close[town, agent].argmax())])
            (y, x), (ry, rx) = (divmod(int(state.cell[town, a]), self.layout.width) for a in (agent, rival))
            steps = [EAST if x >= rx else WEST, SOUTH if y >= ry else NORTH]
            choice[town, agent] = next((step for step in steps if mask[town, agent, step]), WAIT)
