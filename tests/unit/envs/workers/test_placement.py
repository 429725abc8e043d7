"""When workers pay: the rule, what it is fed with, and who is asked."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from surefoot.envs.gym.single_envs import EnvsWorld
from surefoot.envs.make import make_world, placement_of
from surefoot.envs.workers import placement
from surefoot.envs.workers.placement import choose_workers, measure, place
from surefoot.errors import ConfigError


class Slow(gym.Env[Any, Any]):
    """Takes 2 ms a step and 6 ms a reset; an episode is three steps."""

    wait = staticmethod(time.sleep)

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-1, 1, (1,), np.float32)
        self.action_space = spaces.Discrete(2)
        self.t, self.closed, self.seeds = 0, False, []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        self.wait(0.006)
        self.t = 0
        self.seeds.append(seed)
        return np.zeros(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.wait(0.002)
        self.t += 1
        return np.zeros(1, np.float32), 0.0, self.t == 3, False, {}

    def close(self) -> None:
        self.closed = True


class Clock:
    """Goes on only while an env is slow: how busy this machine is changes no answer."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(placement, "time", clock)
    monkeypatch.setattr(Slow, "wait", clock.wait)
    return clock


@pytest.fixture
def four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "cores", lambda: 4)
    monkeypatch.setattr(placement, "free_cores", lambda: 4)


@pytest.fixture(autouse=True)
def constants(monkeypatch: pytest.MonkeyPatch) -> None:
    """Round numbers, so that the sums below can be done in the head."""
    monkeypatch.setattr(placement, "HANDSHAKE", 100e-6)
    monkeypatch.setattr(placement, "PER_WORKER", 50e-6)
    monkeypatch.setattr(placement, "SLOWDOWN", 1.0)
    monkeypatch.setattr(placement, "GAIN", 1.25)


@pytest.mark.parametrize(
    ("step", "streams", "cores", "workers"),
    [
        (100e-6, 8, 2, 1),  # 800 µs alone, 400 + 150 with one: 1.45 times as fast
        (40e-6, 8, 2, 0),  # 320 alone, 160 + 150 with one: no faster
        (75e-6, 8, 2, 1),  # 600 alone, 300 + 150: 1.33
        (60e-6, 8, 2, 0),  # 480 alone, 240 + 150: 1.23
        (1e-3, 8, 4, 3),  # 8 ms alone, 2 ms + 250 µs with three
        (1e-3, 6, 4, 2),  # two and three workers both leave shares of two, and two are woken sooner
        (100e-6, 8, 4, 3),  # 200 + 250 with three, 300 + 200 with two
        (1.0, 1, 4, 0),  # a single env cannot be shared
        (1.0, 8, 1, 0),  # nor can a single core
        (1.0, 100, 64, 16),  # no more than MOST
    ],
)
def test_the_rule_weighs_the_largest_share_and_the_handshake(
    step: float, streams: int, cores: int, workers: int
) -> None:
    assert choose_workers(step, streams, cores).workers == workers


def test_a_share_takes_longer_than_its_envs_would_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "SLOWDOWN", 1.5)
    assert choose_workers(100e-6, 8, 2).workers == 0  # 800 µs alone, 600 + 150 with one
    assert choose_workers(1e-3, 8, 2).workers == 1  # 8 ms alone, 6 ms + 150 µs: 1.3


def test_the_reason_has_the_numbers_in_it() -> None:
    yes, no = choose_workers(100e-6, 8, 2), choose_workers(10e-6, 8, 2)
    assert yes.why == (
        "envs in 2 processes: a step takes 100 µs, of all 8 envs 800 µs; it should be about 550 µs with 1 worker"
    )
    assert no.why == (
        "envs in this process: a step takes 10 µs, of all 8 envs 80 µs; it would be about 190 µs with 1 worker"
    )
    assert "no core is free" in choose_workers(1.0, 8, 1).why


@pytest.mark.usefixtures("clock")
def test_a_measurement_counts_resets_and_leaves_the_env_closed() -> None:
    made = Slow()
    assert measure(lambda: made) == pytest.approx(0.004)  # 2 ms and a third of 6
    assert made.closed
    assert made.seeds[0] not in range(1000)  # what runs are seeded with


def test_a_measurement_takes_no_longer_than_its_budget_and_a_step(clock: Clock) -> None:
    measure(Slow, steps=10_000, budget=0.05)
    assert 0.05 <= clock.now - 0.008 <= 0.05 + 0.008  # it begins with a reset and a step, and may end with both


@pytest.mark.usefixtures("four_cores")
def test_auto_measures_an_env_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def fake(build: Any) -> float:
        assert build().spec.id == "Pendulum-v1"
        return 10e-6

    monkeypatch.setattr(placement, "measure", fake)
    world = make_world("Pendulum-v1", 2, backend="gymnasium", workers="auto")
    assert isinstance(world, EnvsWorld)
    assert placement_of(world) == choose_workers(10e-6, 2, 4).why


@pytest.mark.usefixtures("four_cores")
def test_what_is_clear_without_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(build: Any) -> float:
        raise AssertionError("measured")

    monkeypatch.setattr(placement, "measure", never)
    assert "only one" in place(Slow, 1).why
    assert place(lambda: Slow(), 2).why.startswith(
        "envs in this process, not measured: the function that builds the env cannot"
    )
    assert placement_of(make_world("CartPole-v1", 4, workers="auto")) is None
    assert placement_of(make_world(Slow, 2, workers="auto")) is None
    assert placement_of(make_world("Pendulum-v1", 2, backend="gymnasium", workers=0)) is None
    monkeypatch.setattr(placement, "cores", lambda: 1)
    assert "one core" in place(Slow, 2).why


@pytest.mark.usefixtures("four_cores")
def test_an_env_that_cannot_be_measured_is_left_to_the_world_to_complain_of(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(build: Any) -> float:
        raise RuntimeError("out of licences")

    monkeypatch.setattr(placement, "measure", broken)
    world = make_world("Pendulum-v1", 2, backend="gymnasium", workers="auto")
    assert placement_of(world) == "envs in this process, not measured: out of licences"


@pytest.mark.usefixtures("four_cores")
def test_an_env_that_draws_into_a_window_is_not_opened_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Slow] = []

    class Window(Slow):
        render_mode = "human"

        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    monkeypatch.setattr(placement, "require_sendable", lambda fns: None)
    assert place(Window, 2).why == "envs in this process, not measured: it renders to a window"
    assert (made[0].seeds, made[0].closed) == ([], True)


def test_cores_that_others_want_are_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "cores", lambda: 8)
    monkeypatch.setattr(placement.os, "cpu_count", lambda: 8)
    for running, free in ((1, 8), (4, 5), (9, 1), (30, 1)):
        monkeypatch.setattr(placement, "_running", lambda running=running: running)
        assert placement.free_cores() == free

    def unknown() -> int:
        raise FileNotFoundError

    monkeypatch.setattr(placement, "_running", unknown)
    assert placement.free_cores() == 8


@pytest.mark.parametrize(("quota", "found"), [("150000 100000", 1), ("400000 100000", 4), ("max 100000", 6)])
def test_a_containers_quota_counts(monkeypatch: pytest.MonkeyPatch, quota: str, found: int) -> None:
    monkeypatch.setattr(placement.os, "sched_getaffinity", lambda pid: set(range(6)), raising=False)
    monkeypatch.setattr(Path, "read_text", lambda path: quota)
    assert placement.cores() == found


@pytest.mark.parametrize(
    ("env", "options", "sentence"),
    [
        ("CartPole-v1", {}, r"the built-in CartPole-v1 .*workers is 2.*backend='gymnasium'"),
        (Slow(), {}, r"workers=2 cannot step a Slow"),
        (EnvsWorld([Slow]), {}, r"a vector env; pass workers=2"),
    ],
)
def test_workers_that_cannot_be_had_are_refused(env: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        make_world(env, workers=2, **options)
    with pytest.raises(ConfigError, match="workers is -1"):
        make_world("CartPole-v1", workers=-1)
