"""Envs in several processes do what they do in one, and fail in sentences."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from surefoot.data.spaces import Box, Discrete, Hybrid
from surefoot.envs.api import Step, View, World
from surefoot.envs.gym.single_envs import EnvsWorld
from surefoot.envs.make import make_world
from surefoot.envs.workers import worker_process
from surefoot.envs.workers.process_world import ProcessWorld, WorkerTraceback
from surefoot.errors import CheckpointIncompatible, EnvError, ShapeError, SurefootError
from surefoot.train.facade import PPO
from surefoot.train.interop.sb3_functions import make_vec_env
from surefoot.train.rundir.resume_check import fingerprint
from surefoot.train.spec import RunSpec, make_spec
from surefoot.train.training import Training

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def envs(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of test envs, importable by its name here and, as workers get this process's path, there."""
    monkeypatch.syspath_prepend(HERE)
    import process_envs

    return process_envs


@pytest.fixture
def troubled(envs: Any) -> Iterator[ProcessWorld]:
    world = ProcessWorld([envs.Troubled] * 4, 1)
    yield world
    world.close()


def pids(world: ProcessWorld) -> list[int]:
    return world.worker_pids


def alive(pid: int) -> bool:
    """True for a running process and for a zombie."""
    return Path(f"/proc/{pid}").exists()


def actions(world: World, rng: np.random.Generator) -> np.ndarray:
    match world.action:
        case Box():
            return rng.uniform(-1, 1, (world.num_envs, *world.action.shape)).astype(np.float32)
        case Discrete():
            return rng.integers(world.action.start, world.action.start + world.action.n, world.num_envs)
        case _:
            chosen = np.stack([rng.integers(0, world.action.nvec) for _ in range(world.num_envs)])
            if not isinstance(world.action, Hybrid):
                return chosen
            low, high = world.action.box.bounds()
            numbers = rng.uniform(low, high, (world.num_envs, *low.shape))
            return np.concatenate([chosen, numbers], axis=1).astype(np.float32)


def assert_same_arrays(one: dict[str, np.ndarray], two: dict[str, np.ndarray]) -> None:
    assert list(one) == list(two)
    for name, array in one.items():
        assert array.dtype == two[name].dtype
        assert np.array_equal(array, two[name], equal_nan=array.dtype.kind == "f"), name


def assert_same_view(one: View, two: View) -> None:
    assert_same_arrays(one.obs, two.obs)
    assert (one.action_mask is None) == (two.action_mask is None)
    if one.action_mask is not None and two.action_mask is not None:
        assert np.array_equal(one.action_mask, two.action_mask)


def assert_same_step(one: Step, two: Step) -> None:
    assert_same_view(one.view, two.view)
    flat = [
        {"r": s.reward, "terminated": s.terminated, "truncated": s.truncated, "valid": s.valid, **s.stats}
        for s in (one, two)
    ]
    assert_same_arrays(*flat)
    assert (one.final_obs is None) == (two.final_obs is None)
    assert_same_arrays(one.final_obs or {}, two.final_obs or {})


def same(one: Any, two: Any) -> bool:
    """Equal to the last bit, types included."""
    if isinstance(one, dict):
        return isinstance(two, dict) and one.keys() == two.keys() and all(same(one[k], two[k]) for k in one)
    if isinstance(one, list):
        return isinstance(two, list) and len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, np.ndarray):
        return one.dtype == two.dtype and np.array_equal(one, two)
    return type(one) is type(two) and one == two


CASES = {
    "CartPole": (lambda envs: by_id("CartPole-v1"), 5, 2),
    "Pendulum": (lambda envs: by_id("Pendulum-v1"), 3, 1),
    "a Dict": (lambda envs: envs.Pocket, 4, 1),
    "masks": (lambda envs: envs.Masked, 4, 1),
    "a nest": (lambda envs: envs.Nested, 3, 1),
}


def by_id(name: str) -> Callable[[], Any]:
    from surefoot.envs.make import _builder

    return _builder(name, {}, None, False)


@pytest.mark.parametrize("case", CASES)
def test_a_walk_and_its_state_are_those_of_one_process(case: str, envs: Any) -> None:
    find, n, workers = CASES[case]
    build, rng = find(envs), np.random.default_rng(0)
    one, many = EnvsWorld([build] * n), ProcessWorld([build] * n, workers)
    try:
        assert (one.name, one.num_envs, one.inexact) == (many.name, many.num_envs, many.inexact)
        assert (one.observation, one.action) == (many.observation, many.action)
        assert one.state().keys() == many.state().keys() == {"restart_seed"}
        assert_same_view(one.reset(7), many.reset(7))
        ended = 0
        for t in range(500):
            action = actions(one, rng)
            step = one.step(action.copy())
            assert_same_step(step, many.step(action.copy()))
            ended += int((step.terminated | step.truncated).sum())
            if t % 100 == 99:
                some = rng.random(n) < 0.5
                here, there = one.reset_streams(some), many.reset_streams(some)
                assert here is not None
                assert there is not None
                assert_same_view(here, there)
        assert ended > 5
        kept_by_one, kept_by_many = one.state(), many.state()
        assert same(kept_by_one, kept_by_many)
        for world in (one, many):  # somewhere else, so that going back is a way
            world.step(action)
        assert_same_view(one.set_state(kept_by_many), many.set_state(kept_by_one))
        for _ in range(30):
            action = actions(one, rng)
            assert_same_step(one.step(action.copy()), many.step(action.copy()))
        assert same(one.state(), many.state())
    finally:
        one.close()
        many.close()


def test_an_env_that_cannot_be_kept_begins_again_with_the_seed_of_one_process(
    troubled: ProcessWorld, envs: Any
) -> None:
    one = EnvsWorld([envs.Troubled] * 4)
    assert troubled.inexact == one.inexact is not None
    for world in (one, troubled):
        world.reset(3)
        world.step(np.zeros(4, np.int64))
    assert troubled.state() == one.state()
    troubled.set_state(one.state())
    assert troubled.state() != one.state()


def test_each_process_has_its_share_and_no_worker_loads_torch(troubled: ProcessWorld) -> None:
    place, torch = troubled.reset(0).obs["obs"].T
    assert place.tolist() == [os.getpid() % 2**20] * 2 + [pids(troubled)[0] % 2**20] * 2
    assert torch[2:].tolist() == [0.0, 0.0]
    assert troubled.workers == 1


def test_nothing_that_was_given_out_changes_later(envs: Any) -> None:
    world = ProcessWorld([envs.Pocket] * 4, 1)
    try:
        world.reset(0)
        rng = np.random.default_rng(0)
        step = world.step(actions(world, rng))
        while step.final_obs is None:
            step = world.step(actions(world, rng))
        arrays = [*step.view.obs.values(), *step.final_obs.values(), step.reward, step.terminated, step.truncated]
        before = [array.copy() for array in arrays]
        for _ in range(20):
            world.step(actions(world, rng))
        assert all(map(np.array_equal, arrays, before))
    finally:
        world.close()


@pytest.mark.parametrize("env", [1, 3])
def test_an_env_that_fails_is_named_and_the_world_can_begin_again(troubled: ProcessWorld, env: int) -> None:
    troubled.reset(0)
    troubled.step(np.zeros(4, np.int64))
    action = np.zeros(4, np.int64)
    action[env] = 1
    with pytest.raises(EnvError, match=rf"env {env} of Troubled at step 2 .*infinitely long") as caught:
        troubled.step(action)
    if env == 3:
        assert isinstance(caught.value.__cause__, WorkerTraceback)
        assert "process_envs.py" in str(caught.value.__cause__)
    else:
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
    troubled.reset(0)
    assert troubled.step(np.zeros(4, np.int64)).reward.tolist() == [0.0] * 4


def test_of_two_envs_that_fail_the_first_is_named(troubled: ProcessWorld) -> None:
    troubled.reset(0)
    with pytest.raises(EnvError, match=r"env 0 of Troubled at step 1"):
        troubled.step(np.ones(4, np.int64))
    with pytest.raises(EnvError, match=r"env 3 of Troubled at step 1"):
        troubled.step(np.array([0, 0, 0, 1]))


def test_wrong_calls_are_refused_as_in_one_process(troubled: ProcessWorld, envs: Any) -> None:
    def complaint(world: World, call: Callable[[World], Any]) -> tuple[type, str]:
        with pytest.raises(SurefootError) as caught:
            call(world)
        return caught.type, str(caught.value)

    one = EnvsWorld([envs.Troubled] * 4)
    calls: list[Callable[[World], Any]] = [
        lambda world: world.step(np.zeros(4, np.int64)),
        lambda world: (world.reset(0), world.step(np.zeros(3, np.int64))),
        lambda world: world.step(np.zeros((4, 2), np.int64)),
        lambda world: world.set_state({"envs": [{}]}),
    ]
    said = [complaint(one, call) for call in calls]
    assert said == [complaint(troubled, call) for call in calls]
    assert [kind for kind, _ in said] == [EnvError, ShapeError, EnvError, CheckpointIncompatible]


def test_a_picture_is_of_the_first_stream(troubled: ProcessWorld) -> None:
    assert troubled.render() is None
    troubled.reset(0)
    picture = troubled.render()
    assert picture is not None
    assert picture.tolist() == np.full((2, 2, 3), 5).tolist()


def test_workers_leave_ctrl_c_to_their_parent(troubled: ProcessWorld) -> None:
    troubled.reset(0)
    (pid,) = pids(troubled)
    assert os.getpgid(pid) != os.getpgid(0)
    for sign in (signal.SIGINT, signal.SIGTERM):
        os.kill(pid, sign)
    troubled.step(np.zeros(4, np.int64))


def test_an_answer_that_was_not_waited_for_is_not_taken_for_the_next(envs: Any) -> None:
    one, many = EnvsWorld([envs.Pocket] * 2), ProcessWorld([envs.Pocket] * 2, 1)
    try:
        worker = many._workers.workers[0]
        many.reset(0)
        worker.ask("step")
        worker.ask("state")
        assert_same_view(one.reset(5), many.reset(5))
        action = np.zeros((2, 2), np.int64)
        assert_same_step(one.step(action), many.step(action))
    finally:
        many.close()


def test_closing_ends_the_workers_and_frees_what_they_shared(envs: Any) -> None:
    gc.collect()
    open_before = len(os.listdir("/proc/self/fd"))
    world = ProcessWorld([envs.Pocket] * 3, 2)
    ids = pids(world)
    assert len(ids) == 2
    assert all(map(alive, ids))
    began = time.monotonic()
    world.close()
    assert time.monotonic() - began < worker_process._PATIENCE  # they went by themselves
    assert not any(map(alive, ids))
    world.close()
    with pytest.raises(EnvError, match="is closed"):
        world.reset(0)
    del world
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == open_before


def test_a_worker_that_hangs_in_a_step_does_not_outlive_its_world(
    troubled: ProcessWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_process, "_PATIENCE", 0.1)
    troubled.reset(0)
    troubled._board.action[:] = 3
    troubled._workers.workers[0].ask("step")
    time.sleep(0.1)
    troubled.close()
    assert not any(map(alive, pids(troubled)))


def test_a_world_that_is_forgotten_ends_its_workers(envs: Any) -> None:
    world = ProcessWorld([envs.Pocket] * 2, 1)
    ids = pids(world)
    del world
    gc.collect()
    assert not any(map(alive, ids))


def test_workers_end_with_a_parent_that_is_killed() -> None:
    program = (
        "import sys, os, signal; sys.path.insert(0, sys.argv[1]); import process_envs\n"
        "from surefoot.envs.workers.process_world import ProcessWorld\n"
        "world = ProcessWorld([process_envs.Pocket] * 2, 1); world.reset(0)\n"
        "print(*world.worker_pids, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(HERE)], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    pid, until = int(done.stdout), time.monotonic() + 10
    while _running(pid) and time.monotonic() < until:
        time.sleep(0.01)
    assert not _running(pid)


def _running(pid: int) -> bool:
    """False for a zombie, too: whoever took the orphan in may not collect it at once."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_script_without_a_main_guard_is_not_run_twice(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "print('begun', flush=True)\n"
        "from surefoot.envs.make import make_world\n"
        "world = make_world('CartPole-v1', 2, backend='gymnasium', workers=1)\n"
        "world.reset(0); print(world.workers)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("begun\n1\n", "")


def test_an_env_that_cannot_be_built_says_why_and_leaves_nothing_behind(envs: Any) -> None:
    gc.collect()
    open_before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(EnvError, match="no licence"):
        make_world(envs.unbuildable, 2, workers=1)
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == open_before


def test_workers_do_not_change_a_digit_and_a_run_may_go_on_without_them() -> None:
    def spec(workers: int) -> RunSpec:
        settings = {"envs": 4, "rollout_steps": 16, "minibatch_size": 32, "norm_reward": True, "workers": workers}
        action = Box((1,), -2.0, 2.0)
        return make_spec("Pendulum-v1", action, settings=settings, preset_name="sb3", backend="gymnasium")

    alone, helped = Training(spec(0)), Training(spec(1))
    try:
        assert isinstance(helped.world, ProcessWorld)
        assert helped.world.workers == 1
        for _ in range(2):
            assert alone.update().metrics() == helped.update().metrics()
        went_on = Training(spec(0))
        went_on.set_state(helped.state())
        helped.set_state(alone.state())
        reports = [training.update().metrics() for training in (alone, helped, went_on)]
        assert reports[0] == reports[1] == reports[2]
        assert fingerprint(alone.state()) == fingerprint(helped.state()) == fingerprint(went_on.state())
        assert isinstance(alone.make(2), EnvsWorld)  # evaluations have no workers
    finally:
        helped.close()


def test_workers_step_the_envs_of_a_model_and_leave_its_digits_alone(capsys: pytest.CaptureFixture[str]) -> None:
    def learned(workers: int) -> PPO:
        env = "MountainCarContinuous-v0"
        world = make_vec_env(env, 2, backend="gymnasium", workers=workers)
        return PPO("MlpPolicy", world, n_steps=16, verbose=workers).learn(32)

    alone, helped = learned(0), learned(1)
    world = helped.get_env()
    assert isinstance(world, ProcessWorld)
    assert "envs in 2 processes, as requested" in capsys.readouterr().out
    assert all(torch.equal(x, alone.policy.state_dict()[name]) for name, x in helped.policy.state_dict().items())
    assert helped.spaces.gym_action == alone.spaces.gym_action
    world.close()


def test_nested_actions_are_learned_alike_in_one_process_and_in_two(envs: Any) -> None:
    def learned(workers: int) -> PPO:
        world = make_world(envs.Nested, 3, workers=workers)
        settings: dict[str, Any] = {"n_steps": 16, "batch_size": 16, "n_epochs": 2, "preset": "sb3"}
        return PPO("MlpPolicy", world, **settings, policy_kwargs={"memory": "gru", "memory_size": 8}).learn(3 * 16 * 3)

    alone, helped = learned(0), learned(1)
    try:
        assert isinstance(helped.get_env(), ProcessWorld)
        ours, theirs = alone.policy.state_dict(), helped.policy.state_dict()
        assert all(torch.equal(x, theirs[name]) for name, x in ours.items())
        for model in (alone, helped):
            action, _ = model.predict(np.zeros(2, np.float32))
            assert envs.Nested().action_space.contains(action)
    finally:
        for model in (alone, helped):
            world = model.get_env()
            assert world is not None
            world.close()
