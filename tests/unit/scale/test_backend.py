"""Rollouts made elsewhere: one contract for every backend, and pieces that fit together."""

from __future__ import annotations

import importlib.util
import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from surefoot.errors import ConfigError, EnvError
from surefoot.learn.config import PPOConfig
from surefoot.nets.actor_critic import ActorCritic
from surefoot.nets.config import NetConfig
from surefoot.scale.backend import Piece, join, shares
from surefoot.scale.backend_check import check_backend
from surefoot.scale.backend_spec import WORLDS, BackendSpec
from surefoot.scale.local_backend import local_backend
from surefoot.scale.remote_training import FarTraining
from surefoot.scale.rollout_worker import RolloutWorker
from surefoot.train.config import CollectConfig
from surefoot.train.rundir.resume_check import fingerprint
from surefoot.train.spec import RunSpec
from surefoot.train.training import world_maker


def a_spec(env: str = "CartPole-v1", **more: Any) -> RunSpec:
    ppo = {"rollout_steps": 16, "envs": 5, "minibatch_size": 40, "epochs": 2, "lr": 3e-3, "device": "cpu"}
    fixed = {name: more.pop(name) for name in ("rollouts", "overlap", "total_steps") if name in more}
    return RunSpec(
        env=env,
        preset="sb3",
        ppo=PPOConfig(**(ppo | more)),
        net=NetConfig(hidden=(8,), normalize_obs=True),
        collect=CollectConfig(normalize_reward=True),
        eval_every=0,
        checkpoint_every=10_000,
        **({"total_steps": 400} | fixed),
    )


def weights_of(spec: RunSpec) -> dict[str, np.ndarray]:
    world = world_maker(spec)(1)
    policy = ActorCritic(world.observation, world.action, spec.net, seed=spec.seed)
    return {name: x.numpy().copy() for name, x in policy.state_dict().items()}


class InProcess:
    """The same workers without processes: what a learner does with pieces needs none."""

    name = "in process"

    def __init__(self, spec: RunSpec, workers: int) -> None:
        self.workers = workers
        self.hands = [
            RolloutWorker(spec.to_json(), k, n, 0, WORLDS) for k, n in enumerate(shares(spec.ppo.envs, workers))
        ]
        self.pieces: list[Piece] = []
        self.asked = 0

    def publish(self, weights: Any, version: int) -> None:
        self.weights, self.version = {name: x.copy() for name, x in weights.items()}, version

    def ask(self) -> None:
        self.asked += 1
        for hand in self.hands:
            hand.load(self.weights)
        self.pieces = [hand.collect(self.version) for hand in self.hands]

    def hear(self) -> list[Piece]:
        return self.pieces

    def states(self) -> list[dict[str, Any]]:
        return [hand.state() for hand in self.hands]

    def set_states(self, states: Sequence[dict[str, Any]]) -> None:
        for hand, state in zip(self.hands, states, strict=True):
            hand.set_state(state)

    def take_losses(self) -> list[str]:
        return []

    def close(self) -> None:
        for hand in self.hands:
            hand.close()


def far(spec: RunSpec, workers: int = 2, backend: Any = None) -> FarTraining:
    return FarTraining(
        spec, backend=backend or InProcess(spec, workers), placement=BackendSpec("local", workers, "", False)
    )


def test_local_workers_keep_the_contract_when_killed_and_when_stopped():
    spec = a_spec()
    assert check_backend(lambda: local_backend(spec, 2, timeout=5.0), spec, weights_of(spec)) == []


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is not installed")
def test_ray_workers_keep_the_same_contract():
    import ray

    from surefoot.scale.ray_backend import ray_backend

    spec = a_spec()
    ray.init(address="local", include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        assert check_backend(lambda: ray_backend(spec, 2, timeout=10.0), spec, weights_of(spec)) == []
    finally:
        ray.shutdown()


def test_a_spare_process_takes_the_place_of_a_lost_one_unless_it_is_lost_itself(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("surefoot.scale.rollout_pool.SETTLED", 0.0)
    spec = a_spec()
    backend: Any = local_backend(spec, 1, timeout=20.0)
    everyone: set[int] = set()

    def turn() -> Piece:
        backend.ask()
        (piece,) = backend.hear()
        everyone.update((*backend.processes, backend.pool.spare.process))
        return piece

    try:
        backend.publish(weights_of(spec), 0)
        assert turn().serial == "0.0.0"
        spare = backend.pool.spare.process
        os.kill(backend.processes[0], signal.SIGKILL)
        piece = turn()
        assert (piece.serial, piece.began_anew) == ("0.1.0", True)
        assert backend.processes == [spare]
        assert len(backend.take_losses()) == 1
        os.kill(backend.pool.spare.process, signal.SIGKILL)
        os.kill(spare, signal.SIGKILL)
        assert turn().serial == "0.3.0"
        assert len(backend.take_losses()) == 2
    finally:
        backend.close()
    for process in everyone:  # nobody stays
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_processes_give_the_digits_of_the_same_workers_in_this_process():
    spec = a_spec(rollouts="local:2", total_steps=240)
    there, here = FarTraining(spec), far(spec)
    try:
        assert len(list(there)) == len(list(here)) == 3
        assert fingerprint(there.policy.state_dict()) == fingerprint(here.policy.state_dict())
    finally:
        there.close()
        here.close()


@pytest.mark.parametrize("overlap", [False, True])
def test_a_far_run_goes_on_from_its_state_to_the_last_bit(overlap: bool):
    spec = a_spec(overlap=overlap, env="Pendulum-v1")
    straight, broken = far(spec), far(spec)
    list(straight)
    next(broken), next(broken)
    saved = broken.state()
    resumed = far(spec)
    resumed.set_state(saved)
    list(resumed)
    assert fingerprint(resumed.state()) == fingerprint(straight.state())


def test_with_overlap_every_rollout_is_one_policy_old_and_says_so():
    spec = a_spec(overlap=True)
    training = far(spec)
    reports = list(training)
    assert [report.policy_lag for report in reports] == [0, *[1] * (len(reports) - 1)]
    assert all(report.effective_sample_size > 0.5 for report in reports)


def test_a_lag_beyond_the_bound_is_dropped_and_counted():
    spec = a_spec(overlap=True, max_policy_lag=1)
    training = far(spec)
    next(training)
    training.learner.updates += 2  # two updates that the workers know nothing of
    report = next(training)
    assert report.skipped_reason is not None
    assert report.samples == 0


def test_a_piece_that_comes_twice_is_learned_from_once():
    spec = a_spec()
    backend = InProcess(spec, 2)
    training = far(spec, backend=backend)
    next(training)
    steps, first = training.env_steps, backend.pieces[0]
    kept = replace(first, rollout=replace(first.rollout, valid=first.rollout.valid.copy()))

    def hear() -> list[Piece]:
        return [kept, backend.pieces[1]]

    backend.hear = hear
    report = next(training)
    assert report.stats["pieces_twice"] == 1.0
    assert report.samples == 16 * 2  # the other worker's two streams
    assert training.env_steps == steps + 16 * 2


def test_the_reward_scale_is_that_of_all_streams_together():
    spec = a_spec(env="Pendulum-v1")
    apart, alone = far(spec, 5), far(spec, 1)
    next(apart), next(alone)
    assert apart.collector.scaler.count == alone.collector.scaler.count == 16 * 5
    assert apart.collector.scaler.running.shape == (5,)


def test_a_new_worker_begins_its_returns_anew():
    spec = a_spec(env="Pendulum-v1")
    backend = InProcess(spec, 2)
    training = far(spec, backend=backend)
    next(training)
    before = training.collector.scaler.running.copy()
    assert (before != 0.0).all()
    scale = training.collector.scaler.scale
    seen: list[np.ndarray] = []

    def watched(*arguments: Any) -> np.ndarray:
        seen.append(training.collector.scaler.running.copy())
        return scale(*arguments)

    training.collector.scaler.scale = watched
    plain = backend.hear
    backend.hear = lambda: [replace(plain()[0], began_anew=True), plain()[1]]
    report = next(training)
    assert report.stats["worker_restarts"] == 1.0
    assert np.array_equal(seen[0], np.where([True, True, True, False, False], 0.0, before))


def test_shares_add_up():
    assert shares(7, 3) == [3, 2, 2]
    with pytest.raises(ConfigError, match="give each at least one"):
        shares(2, 3)
    with pytest.raises(ConfigError, match="at least 1"):
        shares(2, 0)


def test_joined_streams_are_in_the_order_of_the_workers():
    spec = a_spec()
    backend = InProcess(spec, 2)
    backend.publish(weights_of(spec), 3)
    backend.ask()
    whole = join(backend.pieces)
    assert whole.reward.shape == (16, 5)
    assert np.array_equal(whole.obs["obs"][:, 3:], backend.pieces[1].rollout.obs["obs"])
    assert (whole.policy_version == 3).all()


@pytest.mark.parametrize("text", ["local", "local:0", "ray:x", "local:2@here", "dask:2", "local:-1", ""])
def test_a_placement_that_is_none_is_refused(text: str):
    with pytest.raises(ConfigError, match="rollouts is"):
        BackendSpec.parse(text)


def test_a_placement_is_a_few_letters():
    assert BackendSpec.parse("local:2") == BackendSpec("local", 2)
    assert BackendSpec.parse("ray:8@10.0.0.1:6379").address == "10.0.0.1:6379"


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"temperature": 2.0}, "temperature"), ({"max_policy_lag": 0, "overlap": True}, "max_policy_lag")],
)
def test_what_workers_elsewhere_cannot_do_is_refused(settings: dict[str, Any], said: str):
    with pytest.raises(ConfigError, match=said):
        far(a_spec(**settings))


def test_another_number_of_workers_is_not_gone_on_with():
    saved = far(a_spec()).state()
    with pytest.raises(ConfigError, match="made by 2 workers, and 1 are here"):
        far(a_spec(), 1).set_state(saved)


@pytest.fixture
def no_token(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[None]:
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return


class NoRay:
    """Stands where Ray would, and must not be started."""

    def is_initialized(self) -> bool:
        return False

    def init(self, **_: Any) -> None:
        raise AssertionError("Ray was started")


@pytest.mark.usefixtures("no_token")
def test_ray_is_not_started_by_itself_and_an_open_cluster_is_refused():
    from surefoot.scale.ray_backend import connect, has_token

    with pytest.raises(ConfigError, match="no Ray cluster is connected"):
        connect(NoRay(), "", allow_insecure_cluster=False)
    assert not has_token()
    with pytest.raises(ConfigError, match="ask for a token"):
        connect(NoRay(), "auto", allow_insecure_cluster=False)


@pytest.mark.usefixtures("no_token")
def test_here_starts_a_cluster_of_its_own_and_joins_none():
    from surefoot.scale.ray_backend import connect

    asked: list[dict[str, Any]] = []

    class Started(NoRay):
        def init(self, **options: Any) -> None:
            asked.append(options)

    assert connect(Started(), "here", allow_insecure_cluster=False)
    assert asked[0]["address"] == "local"


@pytest.mark.parametrize("error", [ConnectionError("nobody"), RuntimeError("nobody"), LookupError("nobody")])
def test_a_cluster_that_is_not_there_or_lets_nobody_in_is_said_in_a_sentence(error: Exception):
    from surefoot.scale.ray_backend import connect

    class Gone(NoRay):
        class exceptions:
            RayError = LookupError

        def init(self, **_: Any) -> None:
            raise error

    with pytest.raises(ConfigError, match=r"cluster at auto .* nobody"):
        connect(Gone(), "auto", allow_insecure_cluster=True)


@pytest.mark.usefixtures("no_token")
def test_a_token_by_ray_s_own_settings_lets_a_cluster_in(monkeypatch: pytest.MonkeyPatch):
    from surefoot.scale.ray_backend import has_token

    monkeypatch.setenv("RAY_AUTH_TOKEN", "x")
    assert has_token()
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    assert not has_token()


def test_an_env_that_fails_says_so_and_is_not_asked_again(tmp_path: Any):
    spec = a_spec(env="NoSuchEnv-v0")
    with pytest.raises(EnvError, match="NoSuchEnv"):
        local_backend(spec, 1)
