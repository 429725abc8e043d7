"""The classic worlds against Gymnasium's own, and what `Streams` promises about ends, seeds and states."""

from __future__ import annotations

import json
import math

import gymnasium as gym
import numpy as np
import pytest

from surefoot.data.spaces import Box, Discrete
from surefoot.envs.api import World
from surefoot.envs.builtin.classic import CLASSIC
from surefoot.errors import ConfigError, EnvError, ShapeError

OURS = "surefoot/CartPoleContinuous-v0"
BLIND = "surefoot/CartPoleNoVel-v0"
GYM = [name for name in CLASSIC if name not in (OURS, BLIND)]

_X = np.random.default_rng(0).uniform(-8.0, 8.0, 4096)
LIBM = np.array_equal(np.cos(_X), [math.cos(x) for x in _X])
"""True where the angles of numpy's arrays go through the same C library as its scalars'; else vector instructions may cost
an ulp."""


def same(ours: np.ndarray, theirs: np.ndarray) -> bool:
    if LIBM:
        return np.array_equal(ours, theirs)
    return np.allclose(ours, theirs, rtol=1e-12 if np.asarray(ours).dtype == np.float64 else 1e-6, atol=1e-14)


def put(world: World, task: list[list[float]] | np.ndarray, elapsed: list[int] | None = None) -> None:
    """Place every stream: `task` is [S, N]."""
    state = world.state()
    state["task"] = np.array(task)
    if elapsed is not None:
        state["elapsed"] = np.array(elapsed)
    world.set_state(state)


def some_actions(world: World, rng: np.random.Generator) -> np.ndarray:
    if isinstance(world.action, Discrete):
        return rng.integers(world.action.n, size=world.num_envs)
    assert isinstance(world.action, Box)
    # Wider than the bounds and cut, so that the bounds themselves are played often.
    wide = rng.uniform(-1.3, 1.3, (world.num_envs, *world.action.shape)).clip(-1.0, 1.0)
    return (wide * world.action.bounds()[1]).astype(np.float32)


def pumping(world: World, obs: np.ndarray) -> np.ndarray:
    """Push the way it already moves: takes the hill car and the acrobot to their goals."""
    moving = np.where(obs[:, -1] >= 0, 1, -1)
    return moving + 1 if isinstance(world.action, Discrete) else moving[:, None].astype(np.float32)


class Twin:
    """Gymnasium's env that follows one stream of ours."""

    def __init__(self, name: str, world: World, stream: int) -> None:
        self.env, self.world, self.stream = gym.make(name), world, stream
        self.follow()

    def state(self) -> np.ndarray:
        return self.world.state()["task"][:, self.stream]

    def follow(self) -> None:
        self.env.reset(seed=0)
        self.env.unwrapped.state = self.state()

    def check(self, action: np.ndarray, step) -> None:
        i = self.stream
        obs, reward, terminated, truncated, _ = self.env.step(action[i])
        assert step.terminated[i] == terminated
        assert step.truncated[i] == (truncated and not terminated)
        assert same(step.reward[i], np.float64(reward))
        if terminated or truncated:
            assert same(step.final_obs["obs"][i], obs)
            self.follow()
        else:
            assert same(step.view.obs["obs"][i], obs)
            assert same(self.state(), np.array(self.env.unwrapped.state))
            self.env.unwrapped.state = self.state()


@pytest.mark.filterwarnings("ignore:.*CartPole-v0.*:DeprecationWarning")
@pytest.mark.parametrize("name", GYM)
def test_a_long_random_run_has_gymnasiums_digits(name: str) -> None:
    world = CLASSIC[name](2)
    world.reset(seed=5)
    twins = [Twin(name, world, i) for i in range(2)]
    rng = np.random.default_rng(1)
    ends = 0
    for _ in range(1100):
        action = some_actions(world, rng)
        step = world.step(action)
        for twin in twins:
            twin.check(action, step)
        ends += int((step.terminated | step.truncated).sum())
    assert ends >= 2


@pytest.mark.parametrize("name", ["MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1"])
def test_a_run_that_reaches_the_goal_has_gymnasiums_digits(name: str) -> None:
    world = CLASSIC[name](2)
    obs = world.reset(seed=5).obs["obs"]
    twins = [Twin(name, world, i) for i in range(2)]
    goals = 0
    for _ in range(600):
        action = pumping(world, obs)
        step = world.step(action)
        for twin in twins:
            twin.check(action, step)
        obs = step.view.obs["obs"]
        goals += int(step.terminated.sum())
    assert goals >= 2


@pytest.mark.parametrize("name", ["MountainCar-v0", "MountainCarContinuous-v0"])
def test_the_goal_is_where_gymnasiums_is(name: str) -> None:
    world = CLASSIC[name](60)
    near, slow = np.linspace(0.4, 0.52, 30), np.linspace(-0.003, 0.003, 30)
    put(world, np.array([np.r_[near, np.full(30, 0.55)], np.r_[np.full(30, 0.005), slow]]))
    twins = [Twin(name, world, i) for i in range(60)]
    action = np.full(60, 1) if name == "MountainCar-v0" else np.zeros((60, 1), np.float32)
    step = world.step(action)
    for twin in twins:
        twin.check(action, step)
    assert 0 < step.terminated[:30].sum() < 30
    assert 0 < step.terminated[30:].sum() < 30


@pytest.mark.filterwarnings("ignore:.*CartPole-v0.*:DeprecationWarning")
@pytest.mark.parametrize("name", GYM)
def test_the_spaces_are_gymnasiums(name: str) -> None:
    theirs, world = gym.make(name), CLASSIC[name](1)
    low, high = world.observation["obs"].bounds()
    assert np.array_equal(low, theirs.observation_space.low)
    assert np.array_equal(high, theirs.observation_space.high)
    if isinstance(world.action, Discrete):
        assert world.action.n == theirs.action_space.n
    else:
        assert isinstance(world.action, Box)
        assert np.array_equal(world.action.bounds(), (theirs.action_space.low, theirs.action_space.high))


@pytest.mark.parametrize("name", CLASSIC)
def test_what_a_step_hands_out_has_the_promised_types(name: str) -> None:
    world = CLASSIC[name](3)
    first = world.reset(seed=0)
    step = world.step(some_actions(world, np.random.default_rng(0)))
    for obs in (first.obs["obs"], step.view.obs["obs"]):
        assert obs.dtype == np.float32
        assert obs.shape == (3, *world.observation["obs"].shape)
        assert obs.flags.c_contiguous
    assert (step.reward.dtype, step.reward.shape) == (np.float64, (3,))
    for flag in (step.terminated, step.truncated, step.valid):
        assert (flag.dtype, flag.shape) == (np.bool_, (3,))
    assert step.valid.all()
    assert step.final_obs is None
    assert world.inexact is None
    assert world.name == name


@pytest.mark.parametrize("name", CLASSIC)
def test_what_was_handed_out_is_never_overwritten(name: str) -> None:
    world = CLASSIC[name](4)
    views, rng = [world.reset(seed=0)], np.random.default_rng(0)
    steps, copies = [], [views[0].obs["obs"].copy()]
    for _ in range(40):
        step = world.step(some_actions(world, rng))
        steps.append(step)
        copies += [a.copy() for a in (step.view.obs["obs"], step.reward, step.terminated, step.truncated, step.valid)]
    kept = [views[0].obs["obs"]]
    for step in steps:
        kept += [step.view.obs["obs"], step.reward, step.terminated, step.truncated, step.valid]
    assert all(np.array_equal(a, b) for a, b in zip(kept, copies, strict=True))
    assert len({a.__array_interface__["data"][0] for a in kept}) == len(kept)


def test_a_fallen_pole_shows_its_fall_and_then_a_new_start() -> None:
    world = CLASSIC["CartPole-v1"](2)
    put(world, [[0.0, 0.0], [0.0, 0.0], [0.0, 0.2], [0.0, 3.0]])
    step = world.step(np.array([1, 0]))
    assert step.terminated.tolist() == [False, True]
    assert step.final_obs is not None
    # θ + τ θ′ = 0.2 + 0.02 · 3
    assert step.final_obs["obs"][1, 2] == pytest.approx(0.26)
    assert np.abs(step.view.obs["obs"][1]).max() <= 0.05
    assert np.array_equal(step.view.obs["obs"][0], step.final_obs["obs"][0])
    assert world.state()["elapsed"].tolist() == [1, 0]


@pytest.mark.parametrize("name", CLASSIC)
def test_an_episode_is_cut_at_the_registered_limit_and_not_before(name: str) -> None:
    limit = gym.spec(name).max_episode_steps if name in GYM else 500
    world = CLASSIC[name](3)
    calm = world.state()["task"]
    put(world, calm, [limit - 2, 0, limit - 1])
    still = np.ones(3, np.int64) if isinstance(world.action, Discrete) else np.zeros((3, 1), np.float32)
    first, second = world.step(still), world.step(still)
    assert first.truncated.tolist() == [False, False, True]
    assert second.truncated.tolist() == [True, False, False]
    assert world.state()["elapsed"].tolist() == [0, 2, 1]


def test_streams_of_different_age_are_each_cut_at_their_own_time() -> None:
    world = CLASSIC["Pendulum-v1"](3)
    put(world, world.state()["task"], [0, 150, 199])
    cuts = np.array([world.step(np.zeros((3, 1), np.float32)).truncated for _ in range(450)])
    assert [(np.flatnonzero(column) + 1).tolist() for column in cuts.T] == [[200, 400], [50, 250, 450], [1, 201, 401]]


def test_a_fall_on_the_last_step_is_terminated_and_not_truncated() -> None:
    world = CLASSIC["CartPole-v1"](2)
    put(world, [[0.0, 0.0], [0.0, 0.0], [0.0, 0.2], [0.0, 3.0]], [499, 499])
    step = world.step(np.array([1, 1]))
    assert step.terminated.tolist() == [False, True]
    assert step.truncated.tolist() == [True, False]


REACH = {
    "CartPole-v0": ([-0.05] * 4, [0.05] * 4),
    "CartPole-v1": ([-0.05] * 4, [0.05] * 4),
    "Acrobot-v1": ([-0.1] * 4, [0.1] * 4),
    "MountainCar-v0": ([-0.6, 0.0], [-0.4, 0.0]),
    "MountainCarContinuous-v0": ([-0.6, 0.0], [-0.4, 0.0]),
    "Pendulum-v1": ([-math.pi, -1.0], [math.pi, 1.0]),
    OURS: ([-0.1, -0.25, -0.1, -0.25], [0.1, 0.25, 0.1, 0.25]),
    BLIND: ([-0.05] * 4, [0.05] * 4),
}


@pytest.mark.parametrize("name", CLASSIC)
def test_starts_are_uniform_between_their_bounds(name: str) -> None:
    world = CLASSIC[name](4000)
    world.reset(seed=0)
    starts = world.state()["task"].astype(np.float64)
    low, high = (np.array(bound)[:, None] for bound in REACH[name])
    assert (starts >= low - 1e-7).all()
    assert (starts <= high + 1e-7).all()
    # A tenth of the starts in each tenth of the way, within 5 standard deviations of √(4000 · 0.1 · 0.9) = 19.
    for row, a, b in zip(starts, low[:, 0], high[:, 0], strict=True):
        if a < b:
            counts, _ = np.histogram(row, bins=10, range=(a - 1e-7, b + 1e-7))
            assert np.abs(counts - 400).max() < 95


@pytest.mark.parametrize("name", CLASSIC)
def test_a_seed_says_everything_and_another_seed_something_else(name: str) -> None:
    def run(seed: int) -> np.ndarray:
        world = CLASSIC[name](3)
        seen = [world.reset(seed).obs["obs"]]
        rng = np.random.default_rng(9)
        seen += [world.step(some_actions(world, rng)).view.obs["obs"] for _ in range(60)]
        return np.array(seen)

    assert np.array_equal(run(4), run(4))
    assert not np.array_equal(run(4)[0], run(5)[0])


def test_reset_forgets_what_was_before() -> None:
    world = CLASSIC["CartPole-v1"](2)
    fresh = world.reset(seed=3).obs["obs"]
    for _ in range(50):
        world.step(np.ones(2, np.int64))
    assert np.array_equal(world.reset(seed=3).obs["obs"], fresh)
    assert world.state()["elapsed"].tolist() == [0, 0]


def test_streams_begin_anew_only_where_asked() -> None:
    world = CLASSIC["Pendulum-v1"](3)
    world.reset(seed=0)
    before = world.step(np.zeros((3, 1), np.float32)).view.obs["obs"]
    view = world.reset_streams(np.array([False, True, False]))
    assert view is not None
    assert (view.obs["obs"] == before).all(axis=1).tolist() == [True, False, True]
    assert world.state()["elapsed"].tolist() == [1, 0, 1]


def test_the_generators_state_survives_json() -> None:
    world = CLASSIC["CartPole-v1"](2)
    world.reset(seed=1)
    state = world.state()
    state["rng"] = json.loads(json.dumps(state["rng"]))
    again = CLASSIC["CartPole-v1"](2)
    again.set_state(state)
    first, second = (w.reset_streams(np.ones(2, bool)) for w in (world, again))
    assert first is not None
    assert second is not None
    assert np.array_equal(first.obs["obs"], second.obs["obs"])


@pytest.mark.parametrize(
    "action",
    [np.zeros(3, np.int64), np.zeros(2), np.array([0, 2]), np.array([-1, 0]), np.zeros((2, 1), np.int64)],
    ids=["too many", "floats", "too high", "negative", "a column"],
)
def test_an_action_that_cannot_be_is_refused_and_nothing_moves(action: np.ndarray) -> None:
    world = CLASSIC["CartPole-v1"](2)
    before = world.state()
    with pytest.raises(EnvError, match=r"CartPole-v1 takes actions \[2\] int64, each from 0 to below 2; got "):
        world.step(action)
    assert np.array_equal(world.state()["task"], before["task"])
    assert world.state()["elapsed"].tolist() == [0, 0]


def test_a_continuous_action_of_the_wrong_shape_is_refused() -> None:
    with pytest.raises(EnvError, match=r"Pendulum-v1 takes actions \[2, 1\] float32; got \[2\] float32"):
        CLASSIC["Pendulum-v1"](2).step(np.zeros(2, np.float32))


def test_a_state_of_another_size_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"task \[4, 3\] and elapsed \[3\]; CartPole-v1 with 2 streams needs \[4, 2\]"):
        CLASSIC["CartPole-v1"](2).set_state(CLASSIC["CartPole-v1"](3).state())


def test_a_world_without_streams_is_refused() -> None:
    with pytest.raises(ConfigError, match="num_envs is 0"):
        CLASSIC["CartPole-v1"](0)


def isaac_by_mass_matrix(state: np.ndarray, force: float) -> np.ndarray:
    """The same 0.0166 s by solving the two balances as a linear system."""
    x, x_dot, theta, theta_dot = state
    moment, inertia = 0.47, 1 / 12 * (0.06**2 + 1) + 0.47**2
    for _ in range(2):
        cos, sin = math.cos(theta), math.sin(theta)
        mass = np.array([[2.0, moment * cos], [moment * cos, inertia]])
        x_acc, theta_acc = np.linalg.solve(mass, [force + moment * theta_dot**2 * sin, moment * 9.81 * sin])
        x_dot, theta_dot = x_dot + 0.0083 * x_acc, theta_dot + 0.0083 * theta_acc
        x, theta = x + 0.0083 * x_dot, theta + 0.0083 * theta_dot
    return np.array([x, x_dot, theta, theta_dot])


def test_isaacs_cart_moves_as_its_mass_matrix_says() -> None:
    world = CLASSIC[OURS](2)
    states = np.array([[0.3, -0.5, 0.2, 0.4], [-1.0, 1.0, -0.7, -1.5]]).T
    put(world, states)
    step = world.step(np.array([[0.1], [-0.05]], np.float32))
    wanted = [isaac_by_mass_matrix(states[:, i], 400 * float(np.float32(a))) for i, a in enumerate((0.1, -0.05))]
    assert np.allclose(world.state()["task"].T, wanted, rtol=1e-12)
    _, x_dot, theta, theta_dot = wanted[1]
    assert step.reward[1] == pytest.approx(1 - theta**2 - 0.01 * abs(x_dot) - 0.005 * abs(theta_dot))


def test_isaacs_cart_pays_minus_two_where_it_is_lost() -> None:
    world = CLASSIC[OURS](4)
    put(world, [[3.0, 0.0, 0.0, -2.9], [1.0, 0.0, 0.0, -1.0], [0.0, 1.57, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]])
    step = world.step(np.zeros((4, 1), np.float32))
    assert step.terminated.tolist() == [True, True, False, False]
    assert step.reward[:2].tolist() == [-2.0, -2.0]
    assert step.reward[2] == 1.0  # at rest and upright
    assert step.reward[3] == pytest.approx(0.99)  # upright, at 1 m/s


def test_isaacs_pole_can_be_held_for_the_whole_episode() -> None:
    world = CLASSIC[OURS](8)
    obs, held = world.reset(seed=0).obs["obs"], 0.0
    for _ in range(500):
        newtons = obs @ np.array([3.0, 6.0, 60.0, 14.0])
        step = world.step((newtons[:, None] / 400).clip(-1, 1).astype(np.float32))
        assert not step.terminated.any()
        obs, held = step.view.obs["obs"], held + step.reward.mean()
    assert step.truncated.all()
    assert held > 495


def test_a_positive_push_moves_isaacs_cart_to_the_right_and_tilts_the_pole_to_the_left() -> None:
    world = CLASSIC[OURS](1)
    put(world, [[0.0], [0.0], [0.0], [0.0]])
    world.step(np.ones((1, 1), np.float32))
    x, x_dot, theta, theta_dot = world.state()["task"][:, 0]
    assert x > 0
    assert x_dot > 0
    assert theta < 0
    assert theta_dot == -8.0  # the hinge turns no faster


@pytest.mark.parametrize("name", CLASSIC)
def test_the_picture_shows_the_first_stream(name: str) -> None:
    world = CLASSIC[name](2)
    world.reset(seed=0)
    picture = world.render()
    assert picture is not None
    assert (picture.shape, picture.dtype) == ((300, 400, 3), np.uint8)
    white = (picture == 255).all(axis=2).mean()
    assert 0.2 < white < 0.99
    state = world.state()
    moved = state["task"].copy()
    moved[:, 1] += 0.1
    put(world, moved)
    assert np.array_equal(world.render(), picture)
    moved[0, 0] += 0.1
    put(world, moved)
    assert not np.array_equal(world.render(), picture)


def test_an_upright_pole_is_drawn_straight_above_its_cart() -> None:
    world = CLASSIC["CartPole-v1"](1)
    put(world, [[0.0], [0.0], [0.0], [0.0]])
    picture = world.render()
    assert picture is not None
    rows, columns = np.nonzero((picture == (202, 152, 101)).all(axis=2))
    assert columns.mean() == pytest.approx(199.5, abs=0.5)
    # 1 m of 5 m in 400 pixels; the cart's top is 0.15 m above the track and the picture's middle at 0.4 m.
    assert np.ptp(rows) == pytest.approx(80, abs=5)
    assert rows.max() == pytest.approx(150 + (0.4 - 0.15) * 80, abs=5)


def test_a_cartpole_without_velocities_is_cartpole_and_shows_where_things_are() -> None:
    blind, whole = CLASSIC[BLIND](3), CLASSIC["CartPole-v1"](3)
    low, high = blind.observation["obs"].bounds()
    assert blind.observation["obs"].shape == (2,)
    rng, one, two = np.random.default_rng(0), blind.reset(4), whole.reset(4)
    ended = 0
    for _ in range(300):
        assert np.array_equal(one.obs["obs"], two.obs["obs"][:, [0, 2]])
        assert ((low <= one.obs["obs"]) & (one.obs["obs"] <= high)).all()
        action = rng.integers(0, 2, 3)
        ours, theirs = blind.step(action), whole.step(action)
        assert np.array_equal(ours.terminated, theirs.terminated)
        assert np.array_equal(ours.reward, theirs.reward)
        one, two, ended = ours.view, theirs.view, ended + int(ours.terminated.sum())
    assert ended > 10
