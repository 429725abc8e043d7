"""Workers are killed and stopped: training goes on, and what was lost with them is never used."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surefoot.data.rollout import Rollout
from surefoot.data.spaces import Discrete
from surefoot.envs.api import Step
from surefoot.envs.gym.single_envs import EnvsWorld
from surefoot.envs.make import make_world
from surefoot.envs.workers import env_workers, worker_pool, worker_process
from surefoot.envs.workers.process_world import ProcessWorld, WorkerTraceback
from surefoot.errors import EnvError, WorkersLost
from surefoot.learn.checkpoint.checkpoint import load_checkpoint
from surefoot.nets.actor_critic import ActorCritic
from surefoot.telemetry.reader import read_all
from surefoot.telemetry.schema import EventRecord, UpdateRecord
from surefoot.train.collect.collector import Collector
from surefoot.train.facade import PPO
from surefoot.train.run import create_run, resume_run
from surefoot.train.rundir.resume_check import fingerprint
from surefoot.train.rundir.rundir import RunDir
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
def world_of(envs: Any) -> Iterator[Callable[..., ProcessWorld]]:
    made: list[ProcessWorld] = []

    def make(name: str, streams: int = 4, workers: int = 1) -> ProcessWorld:
        made.append(ProcessWorld([getattr(envs, name)] * streams, workers))
        return made[-1]

    yield make
    for world in made:
        world.close()


def kill(world: ProcessWorld, worker: int = 0, sign: int = signal.SIGKILL) -> int:
    pid = world.worker_pids[worker]
    os.kill(pid, sign)
    return pid


def nothing(world: ProcessWorld) -> np.ndarray:
    return np.zeros((world.num_envs, *((2,) if world.name == "Pocket" else ())), np.int64)


def until_whole(world: ProcessWorld, action: np.ndarray | None = None) -> list[Step]:
    """Steps up to the first in which all streams take part again."""
    steps = [world.step(nothing(world) if action is None else action)]
    while not steps[-1].valid.all():
        steps.append(world.step(nothing(world)))
    return steps


HOW = {
    "killed": (0, "was ended by SIGKILL"),
    "segfault": (0, "was ended by SIGSEGV"),
    "exits": (2, "ended with exit code 7"),
    "stopped": (0, "gave no answer in 1 s"),
    "hangs": (3, "gave no answer in 1 s"),
}


@pytest.mark.parametrize("how", HOW)
def test_a_worker_that_dies_or_hangs_is_replaced_and_its_step_never_happened(how: str, world_of: Any) -> None:
    world, (act, told) = world_of("Troubled"), HOW[how]
    world.worker_timeout = 1.0
    before = world.reset(0).obs["obs"].copy()
    for name, sign in (("killed", signal.SIGKILL), ("segfault", signal.SIGSEGV), ("stopped", signal.SIGSTOP)):
        if how == name:
            kill(world, sign=sign)
    old, began = world.worker_pids[0], time.monotonic()
    first, *others = until_whole(world, np.array([0, 0, 0, act]))
    assert first.valid.tolist() == [True, True, False, False]
    assert (first.reward[2:] == 0).all()
    assert not (first.terminated | first.truncated).any()
    for ghost in [first, *others][:-2]:  # nothing else is shown until the new envs are there
        assert np.array_equal(ghost.view.obs["obs"][2:], before[2:])
    now = others[-1].view.obs["obs"][:, 0]
    assert now.tolist() == [os.getpid() % 2**20] * 2 + [world.worker_pids[0] % 2**20] * 2
    assert not Path(f"/proc/{old}").exists()
    assert world.losses == 1
    (sentence,) = world.take_losses()
    assert sentence.startswith(f"worker 1 of Troubled, with envs 2 to 3, {told} at step 1 since its reset")
    assert world.take_losses() == []
    assert time.monotonic() - began < 30  # the time limit of "auto"


def test_training_does_not_wait_for_a_new_worker_that_is_slow_to_come(
    world_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = world_of("Troubled")
    world.reset(0)
    monkeypatch.setattr(
        worker_process, "_PROGRAM", f"import time; time.sleep(4 * {env_workers.GRACE}); {worker_process._PROGRAM}"
    )
    kill(world)
    began = time.monotonic()
    world.step(nothing(world))
    second = world.step(nothing(world))
    assert second.valid.tolist() == [True, True, False, False]
    assert time.monotonic() - began < 4 * env_workers.GRACE
    until_whole(world)


def test_nothing_that_a_lost_worker_wrote_is_used(world_of: Any) -> None:
    world = world_of("Pocket")
    before = world.reset(0)
    os.kill(world.worker_pids[0], signal.SIGKILL)
    os.waitid(os.P_PID, world.worker_pids[0], os.WEXITED | os.WNOWAIT)
    board = world._board
    board.reward[2:], board.reports[2:] = np.nan, 1.0
    board.terminated[2:] = board.ended[1] = board.reported[1] = True
    for part in (*board.obs.values(), *board.final.values()):
        part[2:] = 77
    steps = until_whole(world)
    for ghost in steps[:-2]:
        for name, part in ghost.view.obs.items():
            assert np.array_equal(part[2:], before.obs[name][2:])
    for step in steps[:-1]:
        assert not (step.terminated | step.truncated)[2:].any()
        assert (step.reward[2:] == 0).all()
        shown = [*step.view.obs.values(), *(step.final_obs or {}).values()]
        assert not any((part[2:] == 77).any() for part in shown)
        assert np.isnan(step.stats.get("success", np.full(4, np.nan))[2:]).all()


def test_the_other_streams_do_not_notice(world_of: Any, envs: Any) -> None:
    world, alone = world_of("Pocket", 6, 2), EnvsWorld([envs.Pocket] * 6)
    world.reset(3)
    alone.reset(3)
    kill(world, 0)  # envs 2 and 3
    kept = [0, 1, 4, 5]
    for t in range(60):
        one, many = alone.step(nothing(world)), world.step(nothing(world))
        assert np.array_equal(one.reward[kept], many.reward[kept])
        assert np.array_equal(one.view.obs["wind"][kept], many.view.obs["wind"][kept])
        assert many.valid[kept].all()
        if t == 0:
            assert not many.valid[[2, 3]].any()
    assert world.losses == 1


def test_new_episodes_have_seeds_that_no_other_had_and_that_follow_from_the_runs(world_of: Any) -> None:
    def begun(seed: int) -> np.ndarray:
        """What was seen first: by four envs, and by two that replaced two of them, two times."""
        world = world_of("Pocket")
        first = [world.reset(seed).obs["wind"]]
        for _ in range(2):
            kill(world)
            settled = world.settle()
            while settled is None:  # a signal takes its time
                settled = world.settle()
            assert settled[1].tolist() == [False, False, True, True]
            first.append(settled[0].obs["wind"][2:])
        return np.concatenate(first)

    one = begun(0)
    assert len(np.unique(one)) == one.size == 16
    assert np.array_equal(one, begun(0))


def check_numbers(rollouts: list[Rollout]) -> set[int]:
    """Which envs there were. Each of their steps is in the valid rows once at most, and in order, from the first on."""
    next_step: dict[int, int] = {}
    for rollout in rollouts:
        for stream in range(rollout.valid.shape[1]):
            for number, step in rollout.obs["obs"][rollout.valid[:, stream], stream].astype(int):
                assert next_step.get(int(number), 0) == step, f"env {number}, stream {stream}"
                next_step[int(number)] = int(step) + 1
    return set(next_step)


@pytest.mark.parametrize("path", ["auto", "torch"])
def test_no_step_is_used_twice_and_none_is_left_out(path: str, world_of: Any) -> None:
    world = world_of("Numbered", 6, 2)
    world.worker_timeout = 1.0
    policy = ActorCritic(world.observation, world.action)
    walker = Collector(world, policy, steps=64, gamma=0.99, path=path)
    taken = world.step

    def step(action: np.ndarray) -> Step:
        """A worker is killed or stopped in the middle of a rollout, and two at once."""
        nonlocal calm
        calm = 0 if world._workers.away else calm + 1
        if trouble and calm == 70:
            calm = 0
            for worker, sign in trouble.pop():
                kill(world, worker, sign)
        return taken(action)

    calm = 0
    trouble = [[(0, signal.SIGKILL), (1, signal.SIGKILL)], [(1, signal.SIGSTOP)], [(0, signal.SIGKILL)]]
    world.step = step
    rollouts = [walker.collect()]
    while trouble or not rollouts[-1].valid.all():
        rollouts.append(walker.collect())
    assert world.losses == 4
    assert len(check_numbers(rollouts)) == 6 + 2 * 4
    assert walker.env_steps == sum(rollout.samples for rollout in rollouts)
    whole = [episode.length for episode in walker.episodes.take_fresh()]
    running = walker.episodes.lengths.sum()
    lost = walker.env_steps - sum(whole) - running
    assert lost >= 0
    for rollout in rollouts:
        gone = ~rollout.valid
        assert not (rollout.terminated | rollout.truncated)[gone].any()
        assert rollout.start[1:][gone[:-1]].all()
        # The last step before a loss is worth what the critic expected where it stood.
        before = rollout.valid[:-1] & gone[1:] & ~rollout.ended[:-1]
        assert np.array_equal(rollout.next_value[:-1][before], rollout.value[1:][before])


def test_an_env_that_fails_is_still_an_error_and_not_a_loss(world_of: Any) -> None:
    world = world_of("Troubled")
    world.reset(0)
    with pytest.raises(EnvError, match=r"env 3 of Troubled at step 1 .*infinitely long") as caught:
        world.step(np.array([0, 0, 0, 1]))
    assert isinstance(caught.value.__cause__, WorkerTraceback)
    assert world.losses == 0


def test_a_worker_that_dies_again_and_again_ends_it(world_of: Any) -> None:
    world, deadly = world_of("Troubled"), np.array([0, 0, 0, 2])
    world.reset(0)
    for _ in range(worker_pool.TRIES - 1):
        until_whole(world, deadly)
    told = r"worker 1 of Troubled, with envs 2 to 3, ended with exit code 7 .*5th time in a row"
    with pytest.raises(WorkersLost, match=told):
        world.step(deadly)
    with pytest.raises(WorkersLost, match=told):
        world.reset(0)
    assert set(world.state()) == {"restart_seed"}


def test_a_worker_that_lived_long_is_replaced_as_often_as_it_takes(
    world_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_pool, "TRIES", 2)
    monkeypatch.setattr(env_workers, "EARLY_STEPS", 2)
    monkeypatch.setattr(env_workers, "EARLY_SECONDS", 0.0)
    world = world_of("Troubled")
    world.reset(0)
    for _ in range(worker_pool.TRIES + 1):
        for _ in range(3):
            world.step(nothing(world))
        until_whole(world, np.array([0, 0, 0, 2]))
    assert world.losses == worker_pool.TRIES + 1


def test_a_worker_whose_envs_cannot_be_built_again_ends_it_with_the_reason(
    world_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = world_of("once")
    world.reset(0)
    monkeypatch.setenv("SUREFOOT_TEST_LICENCE", "gone")
    kill(world)
    with pytest.raises(WorkersLost, match=r"worker 1 .*could not be replaced: .*no licence") as caught:
        until_whole(world)
    assert "process_envs.py" in str(caught.value.__cause__)


def test_a_worker_that_dies_while_its_envs_are_built_is_an_error_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_process, "_PROGRAM", "raise SystemExit(3)")
    with pytest.raises(WorkersLost, match=r"worker 1 of CartPole-v1, with env 1, ended with exit code 3 before"):
        make_world("CartPole-v1", 2, backend="gymnasium", workers=1)


def test_a_death_is_noticed_though_a_child_keeps_the_pipe_open_and_the_child_ends_too(world_of: Any) -> None:
    world = world_of("WithChild", 2)
    child = int(world.reset(0).obs["obs"][1, 0])
    kill(world)
    began = time.monotonic()
    until_whole(world)
    assert time.monotonic() - began < 20
    state = Path(f"/proc/{child}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize("how", ["reset", "set_state"])
def test_what_begins_anew_anyway_is_exact_after_a_loss(how: str, world_of: Any, envs: Any) -> None:
    world, alone = world_of("Pocket"), EnvsWorld([envs.Pocket] * 4)
    for each in (world, alone):
        each.reset(1)
        each.step(nothing(world))
    state = alone.state()
    kill(world)
    for each in (alone, world):
        each.reset(7) if how == "reset" else each.set_state(state)
    for _ in range(20):
        one, many = alone.step(nothing(world)), world.step(nothing(world))
        assert many.valid.all()
        assert np.array_equal(one.view.obs["wind"], many.view.obs["wind"])
    assert world.losses == 1


def test_streams_that_are_reset_while_their_worker_is_lost_have_a_ghost_row_next(world_of: Any) -> None:
    world = world_of("Pocket")
    before = world.reset(0)
    kill(world)
    view = world.reset_streams(np.array([True, False, True, False]))
    assert (view.obs["wind"][2] == 0).all()
    assert np.array_equal(view.obs["wind"][3], before.obs["wind"][3])
    assert not np.array_equal(view.obs["wind"][0], before.obs["wind"][0])
    assert world.step(nothing(world)).valid.tolist() == [True, True, False, False]
    until_whole(world)


def a_spec(env: str = "Pendulum-v1", **settings: Any) -> RunSpec:
    small = {
        "envs": 4,
        "rollout_steps": 16,
        "minibatch_size": 32,
        "norm_reward": True,
        "workers": 1,
        "worker_timeout": 1.0,
    }
    probe = make_world(env, backend="gymnasium")
    return make_spec(
        env,
        probe.action,
        settings=small | settings,
        preset_name="sb3",
        backend="gymnasium",
        total_steps=256,
        checkpoint_every=10**6,
        eval_every=0,
    )


@pytest.mark.parametrize(
    ("sign", "moment"),
    [(signal.SIGKILL, "before saving"), (signal.SIGSTOP, "before saving"), (signal.SIGKILL, "in a rollout")],
)
def test_a_state_taken_after_a_loss_goes_on_to_the_last_bit(sign: int, moment: str) -> None:
    living, resumed = Training(a_spec()), Training(a_spec(workers=0))
    try:
        assert isinstance(living.world, ProcessWorld)
        assert living.world.worker_timeout == 1.0
        living.update()
        kill(living.world, sign=sign)
        if moment == "in a rollout":
            assert living.update().stats["worker_restarts"] == 1.0
        state = living.state()
        if moment == "before saving":
            assert living.collector.start.tolist() == [False, False, True, True]
            assert living.collector.episodes.lengths.tolist() == [16, 16, 0, 0]
        resumed.set_state(state)
        reports = [training.update().metrics() for training in (living, resumed)]
        assert reports[0] == reports[1]
        assert fingerprint(living.state()) == fingerprint(resumed.state())
        assert living.world.inexact is None
    finally:
        living.close()


def test_a_run_writes_down_who_was_lost_and_why(tmp_path: Path) -> None:
    directory = RunDir(tmp_path)
    run = create_run(directory, a_spec())
    moments = []
    for moment in run.moments():
        if not moments:
            assert isinstance(run.training.world, ProcessWorld)
            kill(run.training.world)
        moments.append(moment)
    run.close("finished")
    told = [note for moment in moments for note in moment.notes if note.startswith("worker 1 of Pendulum-v1")]
    assert told == [note for note in told if "with envs 2 to 3, was ended by SIGKILL at step 17" in note] != []
    records = read_all(directory.path).records
    assert [r.message for r in records if isinstance(r, EventRecord) and r.name == "worker_lost"] == told
    assert [r.m["worker_restarts"] for r in records if isinstance(r, UpdateRecord) and "worker_restarts" in r.m] == [
        1.0
    ]
    assert moments[-1].env_steps >= 256


def test_a_run_whose_workers_cannot_be_kept_alive_saves_what_it_learned_and_can_be_resumed(tmp_path: Path) -> None:
    directory = RunDir(tmp_path)
    run = create_run(directory, replace(a_spec(), total_steps=10**6))
    world = run.training.world
    assert isinstance(world, ProcessWorld)
    with pytest.raises(WorkersLost, match="5th time in a row"):
        for _ in run.moments():
            taken = world.step

            def step(action: np.ndarray, taken: Any = taken) -> Step:
                if not world._workers.away:
                    kill(world)
                return taken(action)

            world.step = step
    run.close("error")
    assert load_checkpoint(directory.checkpoints).step == run.training.learner.updates >= 1
    again, _ = resume_run(directory, total_steps=256)
    assert again.training.collector.start.all()
    assert not again.training.collector.episodes.lengths.any()
    again.training.update()
    again.close("finished")


def test_a_model_says_in_the_log_who_was_lost(caplog: pytest.LogCaptureFixture) -> None:
    world = make_world("Pendulum-v1", 2, backend="gymnasium", workers=1)
    assert isinstance(world, ProcessWorld)
    model = PPO("MlpPolicy", world, n_steps=16)
    kill(world)
    with caplog.at_level(logging.WARNING, "surefoot"):
        model.learn(32)
    assert [r.getMessage() for r in caplog.records if "was ended by SIGKILL" in r.getMessage()] != []
    world.close()


def test_the_spare_process_ends_with_the_world(world_of: Any) -> None:
    world = world_of("Troubled")
    world.reset(0)
    kill(world)
    until_whole(world)
    spare = world._workers.pool.spare
    assert spare is not None
    kill(world)
    until_whole(world)
    assert world.worker_pids == [spare.process.pid]
    another = world._workers.pool.spare
    assert another is not None
    world.close()
    for pid in (spare.process.pid, another.process.pid):
        assert not Path(f"/proc/{pid}").exists()


def test_the_knob_is_in_the_config() -> None:
    action = Discrete(2)
    assert make_spec("CartPole-v1", action).collect.worker_timeout == "auto"
    assert make_spec("CartPole-v1", action, settings={"worker_timeout": "2.5"}).collect.worker_timeout == 2.5
