"""What `measure` adds up, and what `advice` makes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from surefoot.envs.make import make_world
from surefoot.errors import ConfigError
from surefoot.train.diagnose.speed import PARTS, Measured, advice, flops_per_sample, measure, sgemm_gflops
from surefoot.train.spec import make_spec
from surefoot.train.training import Training


def training(env: str = "CartPole-v1", backend: str = "auto", **settings: object) -> Training:
    small = {"envs": 2, "rollout_steps": 16, "epochs": 1, "minibatch_size": 8, **settings}
    spec = make_spec(env, make_world(env).action, preset_name="sb3", settings=small, backend=backend)
    return Training(spec)


@pytest.fixture(scope="module")
def run() -> Training:
    return training()


@pytest.fixture(scope="module")
def measured(run: Training) -> Measured:
    return measure(run, steps=96)


def spent(measured: Measured, **shares: float) -> Measured:
    """As if a second had gone into these parts, on an undisturbed core."""
    seconds = {part: shares.get(part, 0.0) for part in PARTS}
    return replace(measured, seconds=seconds, wall_seconds=1.0, cpu_seconds=1.0)


def test_so_many_steps_are_measured_in_whole_updates_after_one_of_warm_up(run: Training, measured: Measured):
    assert measured.steps == 96
    assert measured.updates == 3
    assert measured.gradient_steps == 12
    assert run.env_steps == 96 + 32


def test_one_whole_update_is_measured_however_short_the_time():
    assert measure(training(), seconds=1e-9).updates == 1


def test_the_parts_add_up_to_the_wall_time(measured: Measured):
    assert sum(measured.seconds.values()) == pytest.approx(measured.wall_seconds)
    assert sum(measured.share(part) for part in PARTS) == pytest.approx(1.0)
    assert min(measured.seconds.values()) >= 0.0


def test_who_watches_is_sentences_of_every_update_and_that_it_is_done():
    seen: list[float] = []
    measure(training(), steps=64, watch=seen.append)
    assert seen == [0.5, 1.0]


def test_nothing_to_measure_is_refused():
    with pytest.raises(ConfigError, match="steps is 0"):
        measure(training(), steps=0)


def test_the_arithmetic_is_counted_from_the_layers(run: Training):
    # Actor 4·64 + 64·64 + 64·2 weights, critic the same with one output; two operations forward, four backward.
    assert flops_per_sample(run) == 6 * (4 * 64 + 64 * 64 + 64 * 2 + 4 * 64 + 64 * 64 + 64 * 1)


def test_a_matrix_product_has_a_speed():
    assert 0.01 < sgemm_gflops(64, 0.005) < 100_000


def test_a_slow_env_is_what_advice_is_about_and_how_much_there_is_to_win(run: Training, measured: Measured):
    sentences = advice(replace(spent(measured, env=0.625, update=0.375), backend="gymnasium", env="Slow-v0"), run)
    assert "the env is 62% of the time" in sentences[0]
    assert "more than 1.6 times faster" in sentences[0]
    assert "AsyncVectorEnv" in sentences[1]


def test_gymnasiums_classic_is_answered_with_our_own(run: Training, measured: Measured):
    sentences = advice(replace(spent(measured, env=0.8, update=0.2), backend="gymnasium"), run)
    assert "--env-backend surefoot" in sentences[1]


def test_an_update_of_small_minibatches_is_answered_with_larger_ones(measured: Measured):
    sentences = advice(replace(spent(measured, update=0.9, env=0.1), update_gflops=0.5, sgemm_gflops=50.0), training())
    assert "the update is 90% of the time, at 1.0%" in sentences[0]
    assert "minibatch_size=32 takes 4 times fewer" in sentences[0]


def test_minibatches_are_not_made_larger_than_the_rollout(measured: Measured):
    slow = replace(spent(measured, update=0.9, env=0.1), update_gflops=0.5, sgemm_gflops=50.0)
    assert "longer rollouts" in advice(slow, training(minibatch_size=32))[0]


def test_an_update_at_the_machines_speed_is_called_arithmetic(run: Training, measured: Measured):
    sentences = advice(replace(spent(measured, update=0.9, env=0.1), update_gflops=25.0, sgemm_gflops=50.0), run)
    assert "that is arithmetic" in sentences[0]


def test_a_slow_policy_is_answered_with_more_envs(run: Training, measured: Measured):
    assert "--set envs=8" in advice(spent(measured, policy=0.7, update=0.3), run)[0]


def test_no_dominating_part_is_reported(run: Training, measured: Measured):
    assert "no part takes half" in advice(spent(measured, env=0.3, policy=0.3, update=0.4), run)[0]


def test_a_core_that_is_shared_is_noticed(run: Training, measured: Measured):
    calm = spent(measured, env=0.8, update=0.2)
    assert not any("got" in sentence for sentence in advice(calm, run))
    assert "got 50% of a core" in advice(replace(calm, cpu_seconds=0.5), run)[-1]


def test_path_torch_is_answered_with_the_kernel(measured: Measured):
    sentences = advice(replace(spent(measured, env=0.8, update=0.2), path="torch"), training(path="torch"))
    assert any("path=auto" in sentence for sentence in sentences)


def test_an_update_in_torch_is_explained_where_it_is_what_takes_the_time(run: Training, measured: Measured):
    torch = replace(measured, path="torch", path_reason="the kernel does not know gsde")
    sentences = advice(spent(torch, update=0.9, env=0.1), run)
    assert any("because the kernel does not know gsde" in sentence for sentence in sentences)
    assert not any("because" in sentence for sentence in advice(spent(torch, update=0.1, env=0.9), run))
    assert not any("because" in sentence for sentence in advice(spent(replace(torch, path="native"), update=1.0), run))
