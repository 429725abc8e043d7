"""Events of a tick, by town."""

import numpy as np

from surefoot.town.sim.events import Happening, Happenings


def test_events_are_returned_per_town_with_defaults_filled_in():
    happened = Happenings()
    happened.add("chat_success", np.array([0, 1, 0]), np.array([3, 4, 5]), value=np.array([0.5, 0.25, 1.0]))
    happened.add("blackout", np.array([1]))
    assert happened.of(0) == [
        Happening("chat_success", 0, 3, -1, -1, 0.5),
        Happening("chat_success", 0, 5, -1, -1, 1.0),
    ]
    assert [event.kind for event in happened.of(1)] == ["chat_success", "blackout"]


def test_an_empty_selection_adds_nothing():
    happened = Happenings()
    happened.add("faint", np.array([], int))
    assert happened.parts == []
