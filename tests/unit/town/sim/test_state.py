"""States of towns: starts, copies, checkpoints and new episodes."""

import numpy as np
import pytest

from surefoot.errors import CheckpointIncompatible
from surefoot.town.sim.state import COUNT, State, add_count, begin, make_randomness, replace_towns


def test_a_copy_shares_no_memory_and_a_checkpoint_restores_everything(small_town):
    state = small_town().state
    copy, again = state.copy(), State.from_arrays(state.to_arrays())
    copy.wallet[:] = 9.0
    assert state.wallet.max() == 1.0
    assert all(np.array_equal(x, state.to_arrays()[name]) for name, x in again.to_arrays().items())


def test_checkpoints_keep_the_name_of_earlier_releases_for_presence(small_town):
    arrays = small_town().state.to_arrays()
    assert arrays["here"].all()
    del arrays["here"]
    with pytest.raises(CheckpointIncompatible, match="no here"):
        State.from_arrays(arrays)


def test_towns_that_repeat_are_counted_each_time(small_town):
    state = begin(small_town().layout, 3, make_randomness(0))
    add_count(state, "use_events", np.array([0, 2, 2]))
    assert state.counts[:, COUNT["use_events"]].tolist() == [1.0, 0.0, 2.0]


def test_only_towns_that_are_over_start_again(small_town):
    layout, rng = small_town().layout, make_randomness(0)
    state = begin(layout, 2, rng)
    state.tick[:] = 7
    assert replace_towns(state, layout, np.array([True, False]), rng).tick.tolist() == [0, 7]
    assert state.tick.tolist() == [7, 7]
