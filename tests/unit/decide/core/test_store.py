"""Records of decisions, and the stores in which they wait to be learned from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from surefoot.decide.core.store import JournalStore, MemoryStore
from surefoot.errors import JournalError

from .store_cases import agent


@pytest.mark.parametrize("kind", ["memory", "journal"])
def test_what_is_finished_is_told_after_a_position(encoder, kind: str, tmp_path: Path):
    store = MemoryStore() if kind == "memory" else JournalStore(tmp_path / "d.sqlite")
    made = agent(encoder, store)
    for n in range(5):
        made.outcome(made.decide(f"rain {n}", id=f"d{n}").id, 1.0)
    first = store.finished(0)
    assert [each.record.id for each in first] == [f"d{n}" for n in range(5)]
    assert [each.record.id for each in store.finished(first[2].position)] == ["d3", "d4"]


def test_an_agent_on_a_journal_learns_what_an_earlier_one_left(encoder, tmp_path: Path):
    made, plain = agent(encoder, JournalStore(tmp_path / "d.sqlite")), agent(encoder)
    for one in (made, plain):
        for n in range(6):
            record = one.decide(f"rain {n}")
            one.outcome(record.id, float(record.name == "music"))
    made.store.journal.close()
    with pytest.raises(JournalError):
        made.outcome(made.decide("rain").id, 1.0)
    again = agent(encoder, JournalStore(tmp_path / "d.sqlite"))
    assert again.unlearned == 6
    again.learn()
    plain.learn()
    assert np.array_equal(again.chooser.model.theta(), plain.chooser.model.theta())
    assert (again.unlearned, again.learn()) == (0, None)


def test_within_the_grace_time_the_second_outcome_replaces_the_first(encoder):
    store = JournalStore(":memory:", grace=60.0)
    record = agent(encoder).choose("rain")
    store.add(record, 1.0)
    store.add(record, 0.0)
    assert store.finished(0) == []
    store.grace = 0.0
    assert [each.reward for each in store.finished(0)] == [0.0]
