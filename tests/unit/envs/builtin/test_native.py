"""Worlds in C: the numpy definition's digits, states and sentences; what is no world is refused."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surefoot import native
from surefoot.data.spaces import Box
from surefoot.envs.api import Step
from surefoot.envs.builtin.classic import CLASSIC, IN_KERNEL, definition
from surefoot.envs.builtin.native import NativeWorld, load_library
from surefoot.envs.builtin.streams import Streams
from surefoot.envs.make import backend_of, make_world
from surefoot.errors import ConfigError, EnvError, ShapeError, UnknownEnv

pytestmark = pytest.mark.skipif(native.kernel is None, reason=native.why_not)


def looks(step: Step) -> list[Any]:
    final = None if step.final_obs is None else step.final_obs["obs"].tobytes()
    arrays = (step.view.obs["obs"], step.reward, step.terminated, step.truncated, step.valid)
    return [final, step.view.action_mask, step.stats, *((a.dtype, a.shape, a.tobytes()) for a in arrays)]


@pytest.mark.parametrize("name", IN_KERNEL)
def test_the_kernel_runs_the_classics_and_says_the_same_of_them(name: str):
    world, numpy = CLASSIC[name](3), definition(name, 3)
    assert isinstance(world, NativeWorld)
    assert isinstance(numpy, Streams)
    for of in ("name", "num_envs", "observation", "action", "inexact", "max_episode_steps"):
        assert getattr(world, of) == getattr(numpy, of)
    assert backend_of(world) == "surefoot"
    assert 'capsule object "surefoot.streams"' in repr(world.handle)


@pytest.mark.parametrize("name", IN_KERNEL)
def test_what_the_c_says_of_a_classics_spaces_is_what_its_definition_says(name: str):
    assert native.kernel is not None
    alone, task = NativeWorld(name, name, 1), definition(name, 1)
    for box, other in [(alone.observation["obs"], task.observation["obs"]), (alone.action, task.action)]:
        if isinstance(box, Box):
            assert isinstance(other, Box)
            assert np.array_equal(box.bounds(), other.bounds())
        else:
            assert box == other
    assert alone.max_episode_steps == task.max_episode_steps


@pytest.mark.parametrize("name", IN_KERNEL)
def test_a_world_before_its_first_reset_stands_as_reset_zero_leaves_it(name: str):
    world = CLASSIC[name](2)
    assert str(world.state()) == str(definition(name, 2).state())


@pytest.mark.parametrize("name", IN_KERNEL)
def test_pictures_are_the_definitions(name: str):
    world, numpy = CLASSIC[name](2), definition(name, 2)
    numpy.set_state(world.state())
    assert np.array_equal(world.render(), numpy.render())


def test_a_state_is_json_and_has_the_type_of_its_definition():
    world = CLASSIC["MountainCarContinuous-v0"](2)
    assert world.state()["task"].dtype == np.float32
    rng = json.loads(json.dumps(world.state()["rng"]))
    assert rng == np.random.PCG64(0).state | {"state": rng["state"]}
    assert CLASSIC["Pendulum-v1"](2).state()["task"].dtype == np.float64


def test_a_state_is_a_copy():
    world = CLASSIC["CartPole-v1"](2)
    before = world.state()
    said = str(before)
    world.step(np.array([0, 1]))
    assert str(before) == said


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1"])
@pytest.mark.parametrize(
    "action",
    [
        np.array([0, 2]),
        np.array([-1, 0]),
        np.array([0]),
        np.array([[0], [1]]),
        np.array([0.0, 1.0]),
        np.array([True, False]),
        np.array([0, 2**63], np.uint64),
        np.zeros((2, 2), np.float32),
        np.zeros(0, np.int64),
    ],
    ids=str,
)
def test_an_action_that_cannot_be_taken_is_refused_in_the_same_words_and_moves_nothing(name: str, action: np.ndarray):
    world, numpy = CLASSIC[name](2), definition(name, 2)
    before = str(world.state())
    with pytest.raises(EnvError) as ours:
        world.step(action)
    with pytest.raises(EnvError) as theirs:
        numpy.step(action)
    assert str(ours.value) == str(theirs.value)
    assert str(world.state()) == before


@pytest.mark.parametrize(
    ("name", "action"),
    [
        ("CartPole-v1", np.array([0, 1, 1], np.uint8)),
        ("CartPole-v1", np.array([0, 9, 1, 9, 1, 9])[::2]),
        ("CartPole-v1", np.array([0, 1, 1], ">i8")),
        ("Pendulum-v1", np.array([[0.1], [-0.7], [9.0]])),
        ("Pendulum-v1", np.array([[0.1], [9.0], [-0.7], [9.0], [2.0], [9.0]], np.float32)[::2]),
        ("Pendulum-v1", np.array([[np.nan], [np.inf], [-np.inf]], np.float32)),
        ("MountainCarContinuous-v0", np.array([[np.nan], [np.inf], [-np.inf]], np.float32)),
    ],
)
def test_actions_of_other_types_and_layouts_are_the_same_actions(name: str, action: np.ndarray):
    world, numpy = CLASSIC[name](3), definition(name, 3)
    assert looks(world.step(action)) == looks(numpy.step(action))
    assert str(world.state()) == str(numpy.state())


def test_chosen_streams_begin_anew_and_the_others_go_on():
    world, numpy = CLASSIC["CartPole-v1"](4), definition("CartPole-v1", 4)
    for each in (world, numpy):
        each.step(np.array([1, 0, 1, 0]))
    chosen = np.array([False, True, False, True])
    assert np.array_equal(world.reset_streams(chosen).obs["obs"], numpy.reset_streams(chosen).obs["obs"])
    assert world.state()["elapsed"].tolist() == [1, 0, 1, 0]
    assert str(world.state()) == str(numpy.state())
    with pytest.raises(ShapeError, match=r"streams is \[4\] int64; CartPole-v1 needs \[4\] bool"):
        world.reset_streams(np.array([0, 1, 0, 1]))


@pytest.mark.parametrize("of", ["CartPole-v1", "Pendulum-v1"])
def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(of: str):
    world = CLASSIC["CartPole-v1"](2)
    before = str(world.state())
    with pytest.raises(ShapeError, match=r"CartPole-v1 with 2 streams needs \[4, 2\] and \[2\]"):
        world.set_state(CLASSIC[of](3).state())
    with pytest.raises(ValueError):
        world.set_state(world.state() | {"rng": {"bit_generator": "MT19937"}})
    assert str(world.state()) == before


def test_a_step_keeps_nothing_of_an_earlier_ones_arrays():
    world = CLASSIC["CartPole-v1"](2)
    first = None
    for _ in range(60):
        step = world.step(np.array([1, 1]))
        if step.final_obs is not None and first is None:
            first, kept = step, looks(step)
    assert first is not None
    assert looks(first) == kept


def test_without_the_kernel_the_definition_runs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(native, "kernel", None)
    monkeypatch.setattr(native, "why_not", "it was left out")
    assert isinstance(CLASSIC["CartPole-v1"](2), Streams)
    with pytest.raises(EnvError, match=r"x\.so needs the kernel, and it was left out"):
        load_library("./x.so")


def test_an_environment_variable_turns_the_kernel_off():
    code = "from surefoot.envs.builtin.classic import CLASSIC; print(type(CLASSIC['CartPole-v1'](1)).__name__)"
    for value, kind in (("0", "Streams"), ("1", "NativeWorld")):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "SUREFOOT_NATIVE": value},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == kind


def test_buffers_of_another_size_are_refused_by_the_kernel_itself():
    kernel, world = native.kernel, CLASSIC["CartPole-v1"](2)
    assert kernel is not None
    right = [
        np.zeros(2, np.int64),
        np.zeros((2, 4), np.float32),
        np.zeros(2),
        np.zeros(2, bool),
        np.zeros(2, bool),
        None,
    ]
    for i, what in enumerate(["action", "obs", "reward", "terminated", "truncated", "final_obs"]):
        wrong = [*right[:i], np.zeros(5, np.int8), *right[i + 1 :]]
        with pytest.raises(ValueError, match=rf"{what} has (items of format 'b'|5 bytes; it must have \d+)"):
            kernel.streams_step(world.handle, *wrong)
    with pytest.raises(ValueError, match="rng has 3 bytes; it must have 32"):
        kernel.streams_seed(world.handle, b"abc")
    with pytest.raises(TypeError, match="streams_step takes 7 arguments; got 1"):
        kernel.streams_step(world.handle)
    with pytest.raises(ValueError, match="PyCapsule_GetPointer"):
        kernel.streams_observe("a string", right[1])
    with pytest.raises(ValueError, match="the kernel has no world called 'Chess'"):
        kernel.streams_new("Chess", 1)
    with pytest.raises(ValueError, match="the number of streams is 0"):
        kernel.streams_new("CartPole-v1", 0)


START = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
STEP = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
)
FLOATS = ctypes.POINTER(ctypes.c_float)


class Env(ctypes.Structure):
    """`surefoot_env`, field by field."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("name", ctypes.c_char_p),
        ("state_size", ctypes.c_int),
        ("obs_size", ctypes.c_int),
        ("obs_low", FLOATS),
        ("obs_high", FLOATS),
        ("choices", ctypes.c_int),
        ("action_size", ctypes.c_int),
        ("action_low", FLOATS),
        ("action_high", FLOATS),
        ("max_episode_steps", ctypes.c_int),
        ("start", START),
        ("step", STEP),
        ("observe", START),
        ("start_many", ctypes.c_void_p),
    )


def floats(*numbers: float) -> Any:
    return (ctypes.c_float * len(numbers))(*numbers)


def sound(**other: Any) -> Env:
    """A world with two numbers seen and three choices that does nothing; `other` changes a field."""
    fields = {"version": 1, "name": b"Nothing", "state_size": 1, "obs_size": 2, "choices": 3}
    fields |= {"start": START(lambda *_: None), "step": STEP(lambda *_: 0), "observe": START(lambda *_: None)}
    return Env(**(fields | other))


def described(env: Env) -> Any:
    assert native.kernel is not None
    return native.kernel.env_describe(ctypes.addressof(env))


def test_a_world_is_described_by_its_fields():
    assert described(sound()) == ("Nothing", 1, 2, None, None, 3, 0, None, None, 0)
    pushed = sound(choices=0, action_size=2, action_low=floats(-1, -2), action_high=floats(1, 2), max_episode_steps=7)
    assert described(pushed) == ("Nothing", 1, 2, None, None, 0, 2, (-1.0, -2.0), (1.0, 2.0), 7)
    world = NativeWorld("Nothing", ctypes.addressof(pushed), 3)
    assert world.action == Box((2,), (-1.0, -2.0), (1.0, 2.0))
    assert world.observation == {"obs": Box((2,))}
    assert world.max_episode_steps == 7
    assert NativeWorld("Nothing", ctypes.addressof(sound()), 1).max_episode_steps is None


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"version": 2}, "version is 2; this surefoot knows 1"),
        ({"version": 0}, "version is 0; this surefoot knows 1"),
        ({"name": None}, "name is empty"),
        ({"name": b""}, "name is empty"),
        ({"name": b"\xff\xfe"}, "'utf-8' codec"),
        ({"state_size": 0}, "state_size is 0; it must be from 1 to"),
        ({"state_size": -3}, "state_size is -3"),
        ({"state_size": 2**30}, "state_size is 1073741824"),
        ({"obs_size": 0}, "obs_size is 0"),
        ({"choices": -1}, "choices is -1"),
        ({"choices": 0}, "action_size is 0; it must be from 1"),
        ({"action_size": 1}, "choices is 3 and action_size is 1; one of them must be 0"),
        ({"choices": 0, "action_size": 1}, "action_low or action_high is NULL"),
        (
            {"choices": 0, "action_size": 1, "action_low": floats(1), "action_high": floats(-1)},
            r"action_low\[0\] is not below action_high\[0\]",
        ),
        (
            {"choices": 0, "action_size": 1, "action_low": floats(np.nan), "action_high": floats(1)},
            r"action_low\[0\] is not below",
        ),
        ({"obs_low": floats(0, 5), "obs_high": floats(1, 4)}, r"obs_low\[1\] is not below obs_high\[1\]"),
        ({"max_episode_steps": -1}, "max_episode_steps is -1"),
        ({"start": START()}, "start is NULL"),
        ({"step": STEP()}, "step is NULL"),
        ({"observe": START()}, "observe is NULL"),
    ],
)
def test_a_world_that_cannot_be_run_is_refused_with_what_is_wrong(wrong: dict[str, Any], sentence: str):
    env = sound(**wrong)
    with pytest.raises(EnvError, match=f"mine: .*{sentence}"):
        NativeWorld("mine", ctypes.addressof(env), 1)


def test_what_is_no_library_or_no_world_is_refused(tmp_path: Path):
    assert native.kernel is not None
    with pytest.raises(EnvError, match="there is no library"):
        load_library(tmp_path / "nothing.so")
    text = tmp_path / "text.so"
    text.write_text("this is text")
    with pytest.raises(EnvError, match=r"text\.so could not be loaded"):
        load_library(text)
    with pytest.raises(EnvError, match="does not export surefoot_env_main"):
        load_library(str(native.kernel.__file__))


def test_a_library_is_loaded_only_where_code_is_allowed():
    with pytest.raises(EnvError, match="allow_import=True if you trust it"):
        make_world("./a.so")
    with pytest.raises(EnvError, match="there is no library"):
        make_world("./a.so", allow_import=True)
    with pytest.raises(ConfigError, match="takes no env_kwargs"):
        make_world("./a.so", allow_import=True, env_kwargs={"a": 1})
    with pytest.raises(ConfigError, match="backend='gymnasium'"):
        make_world("./a.so", allow_import=True, backend="gymnasium")
    with pytest.raises(UnknownEnv, match=r"needs its path: \./a\.so"):
        make_world("a.so", allow_import=True)


DICE = r"""
#include <surefoot_env.h>

/* A stream's numbers: a throw, the two halves of 64 bits, and the sum of the choices so far. */
static void start(double *state, surefoot_rng *rng) {
    state[0] = surefoot_uniform(rng, -3.0, 5.0);
    state[1] = state[2] = state[3] = 0.0;
}
static int step(double *state, int64_t choice, const float *action, double *reward, surefoot_rng *rng) {
    const uint64_t bits = surefoot_bits(rng);
    (void)action;
    state[1] = (double)(bits >> 32);
    state[2] = (double)(bits & 0xffffffffu);
    *reward = state[3] += (double)choice;
    return state[3] >= 5.0 ? 2 : 0;
}
static void observe(const double *state, float *obs) { obs[0] = (float)state[0], obs[1] = (float)state[3]; }

const surefoot_env *surefoot_env_main(void) {
    static const float low[] = {-3.0f, 0.0f};
    static const surefoot_env dice = {.version = SUREFOOT_ENV_VERSION, .name = "Dice", .state_size = 4, .obs_size = 2,
        .obs_low = low, .choices = 4, .max_episode_steps = 9, .start = start, .step = step, .observe = observe};
    return &dice;
}
"""
NOTHING = "#include <surefoot_env.h>\nconst surefoot_env *surefoot_env_main(void) { return NULL; }\n"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], str]:
    """A C source as a library; the path of it."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    where = tmp_path_factory.mktemp("libraries")

    def build(name: str, source: str) -> str:
        (where / f"{name}.c").write_text(source)
        flags = ["-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC", f"-I{native.include_dir()}"]
        subprocess.run([compiler, *flags, str(where / f"{name}.c"), "-o", str(where / f"{name}.so")], check=True)
        return str(where / f"{name}.so")

    return build


def test_the_headers_generator_is_numpys(compiled: Callable[[str, str], str]):
    world = make_world(compiled("dice", DICE), 3, allow_import=True)
    for seed in range(50):
        bits = np.random.PCG64(seed)
        world.reset(seed)
        first = np.random.Generator(bits).uniform(-3.0, 5.0, 3)
        assert world.state()["task"][0].tolist() == first.tolist()
        for t in range(9):
            raw = bits.random_raw(3)
            world.step(np.zeros(3, np.int64))
            high, low = world.state()["task"][1:3]
            if t < 8:  # on the ninth all are cut short and begin again
                assert (raw >> np.uint64(32)).tolist() == high.tolist()
                assert (raw & np.uint64(0xFFFFFFFF)).tolist() == low.tolist()
        assert world.state()["task"][0].tolist() == np.random.Generator(bits).uniform(-3.0, 5.0, 3).tolist()
        assert world.state()["rng"] == bits.state


def test_a_world_of_ones_own_ends_by_itself_or_is_cut_short(compiled: Callable[[str, str], str]):
    world = make_world(compiled("dice", DICE), 2, allow_import=True)
    assert (world.name, world.inexact, world.render()) == ("Dice", None, None)
    assert world.observation["obs"] == Box((2,), (-3.0, 0.0), np.inf)
    steps = [world.step(np.array([0, 2])) for _ in range(9)]
    assert [s.terminated.tolist() for s in steps] == [[False, (t + 1) % 3 == 0] for t in range(9)]
    assert [s.truncated.tolist() for s in steps] == [[t == 8, False] for t in range(9)]
    assert [s.reward[1] for s in steps] == [2.0, 4.0, 6.0] * 3
    assert steps[2].final_obs is not None
    assert steps[2].final_obs["obs"][:, 1].tolist() == [0.0, 6.0]
    assert steps[2].view.obs["obs"][:, 1].tolist() == [0.0, 0.0]
    assert steps[1].final_obs is None


def test_a_world_of_ones_own_goes_on_from_its_state(compiled: Callable[[str, str], str]):
    make = load_library(compiled("dice", DICE))
    world, again = make(3), make(3)
    world.step(np.array([1, 2, 3]))
    again.set_state(world.state())
    for t in range(30):
        action = np.array([t, t + 1, t // 2]) % 4
        assert looks(world.step(action)) == looks(again.step(action))
    assert str(world.state()) == str(again.state())


def test_a_library_that_gives_no_world_is_refused(compiled: Callable[[str, str], str]):
    with pytest.raises(EnvError, match=r"null\.so: the world is NULL; surefoot_env_main must return one"):
        load_library(compiled("null", NOTHING))
