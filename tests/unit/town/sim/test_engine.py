"""surefoot.town.sim.engine; tests/unit/native/test_town.py compares the two engines."""

import numpy as np
import pytest

from surefoot import native
from surefoot.town.scenarios.scenario import load_scenario
from surefoot.town.sim.engine import KernelEngine, NumpyEngine, make_engine
from surefoot.town.sim.layout import make_layout
from surefoot.town.sim.state import begin, make_randomness


def test_without_the_kernel_numpy_steps_the_town(monkeypatch) -> None:
    layout = make_layout(load_scenario("queue_conflict"))
    assert isinstance(make_engine(layout), NumpyEngine if native.kernel is None else KernelEngine)
    monkeypatch.setattr(native, "kernel", None)
    assert isinstance(make_engine(layout), NumpyEngine)


@pytest.mark.parametrize("kind", [NumpyEngine, KernelEngine])
def test_a_tick_leaves_the_old_state_alone(kind) -> None:
    if kind is KernelEngine and native.kernel is None:
        pytest.skip("the kernel is not built")
    layout = make_layout(load_scenario("market_town"))
    engine, rng = kind(layout), make_randomness(3)
    state = begin(layout, 2, rng)
    before = state.to_arrays()
    after, outcome = engine.tick(state, np.full((2, layout.agents), 2), rng)
    assert all(np.array_equal(x, before[name]) for name, x in state.to_arrays().items())
    assert after.tick.tolist() == [1, 1]
    assert outcome.reward.shape == (2, 12)
