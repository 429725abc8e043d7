"""Whatever agents do, possible or not, a town stays a town."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from surefoot.town.scenarios.scenario import load_scenario
from surefoot.town.sim.layout import REACH, make_layout
from surefoot.town.sim.state import begin, make_randomness
from surefoot.town.sim.tick import spawn_due_agents, tick

LAYOUTS = {name: make_layout(load_scenario(name)) for name in ("queue_conflict", "kitchen_breakfast", "market_town")}


@settings(max_examples=15, deadline=None)
@given(name=st.sampled_from(sorted(LAYOUTS)), seed=st.integers(0, 1000), eager=st.floats(0.0, 1.0))
def test_a_town_stays_a_town(name: str, seed: int, eager: float) -> None:
    layout, rng, chance = LAYOUTS[name], make_randomness(seed), np.random.default_rng(seed)
    state = begin(layout, 2, rng)
    for _ in range(25):
        action = chance.integers(layout.actions, size=state.present.shape)
        # Eager ones ask for objects most of the time, so that there are queues to push in.
        wants = chance.random(state.present.shape) < eager
        action = np.where(wants, np.maximum(action, layout.actions - layout.types), action)
        state, outcome = tick(layout, state, action, rng)
        check(state, layout)
        assert np.isfinite(outcome.reward).all()
        assert np.abs(outcome.reward).max() <= layout.scenario.rewards.clip
        assert (outcome.reward[~outcome.acted] == 0.0).all()
        state = spawn_due_agents(layout, state, rng)
        check(state, layout)


def check(state, layout) -> None:
    assert ((state.needs >= 0) & (state.needs <= 1)).all()
    assert (state.wallet >= 0).all()
    assert (state.meals >= 0).all()
    assert ((state.rivalry >= 0) & (state.rivalry <= 1)).all()
    assert (np.abs(state.trust) <= 1).all()
    assert layout.floor[state.cell].all()
    town, thing = np.nonzero(state.user >= 0)
    assert (state.using[town, state.user[town, thing]] == thing).all(), "who uses an object knows of it"
    assert (state.using >= 0).sum() == len(town), "an object has one user at most"
    assert not ((state.using >= 0) & (state.queued >= 0)).any(), "nobody uses and waits"
    waits = state.queued >= 0
    assert (layout.distance[state.queued[waits], state.cell[waits]] <= REACH).all()
    assert not (waits & ~state.present).any()
    others = np.arange(state.present.shape[1])[None, :, None]
    assert not ((state.tie_with == others) & (state.tie_with >= 0)).any(), "nobody has a tie with itself"
    assert (state.ties[state.tie_with < 0] == 0).all()
    known = np.sort(state.tie_with, axis=2)
    assert not ((known[:, :, 1:] == known[:, :, :-1]) & (known[:, :, 1:] >= 0)).any(), "one tie a person"
