"""PPOConfig: SB3's values, legal ranges, minibatches, and no torch."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Callable

import numpy as np
import pytest

from surefoot.errors import ConfigError, RenamedWarning
from surefoot.learn.config import PPOConfig
from surefoot.learn.minibatches import split_sizes
from surefoot.learn.schedule import Linear, Piecewise, StepDecay


def test_the_defaults_are_those_of_stable_baselines():
    # The signature of stable_baselines3.PPO, and Adam's eps there.
    assert PPOConfig().to_json() == {
        "lr": 3e-4,
        "critic_lr_scale": 1.0,
        "gamma": 0.99,
        "lam": 0.95,
        "clip": 0.2,
        "dual_clip": None,
        "value_clip": None,
        "epochs": 10,
        "minibatch_size": 64,
        "minibatches": None,
        "sequence": None,
        "burn_in": 0,
        "rollout_steps": 2048,
        "envs": 1,
        "ent_coef": 0.0,
        "vf_coef": 0.5,
        "kl_coef": 0.0,
        "max_grad_norm": 0.5,
        "target_kl": None,
        "kl_stop_factor": 1.5,
        "adaptive_kl": None,
        "normalize_value": False,
        "temperature": 1.0,
        "normalize_advantage": "minibatch",
        "optimizer": "adam",
        "weight_decay": 0.0,
        "adam_eps": 1e-5,
        "momentum": 0.0,
        "seed": 0,
        "device": "auto",
        "path": "auto",
        "min_samples": 2,
        "max_policy_lag": None,
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lr", 0.0),
        ("lr", -1e-3),
        ("lr", float("nan")),
        ("lr", Linear(1e-3, -1e-3)),
        ("lr", True),
        ("gamma", 1.01),
        ("gamma", -0.1),
        ("lam", 2),
        ("clip", 0),
        ("dual_clip", 1.0),
        ("adaptive_kl", 0.0),
        ("normalize_value", 2),
        ("temperature", 0.0),
        ("temperature", Linear(2.0)),
        ("value_clip", 0.0),
        ("epochs", 0),
        ("epochs", 1.5),
        ("epochs", True),
        ("minibatch_size", 0),
        ("minibatches", -1),
        ("sequence", 0),
        ("burn_in", -1),
        ("rollout_steps", "many"),
        ("envs", 0),
        ("ent_coef", -0.01),
        ("vf_coef", -1),
        ("kl_coef", -1),
        ("max_grad_norm", 0),
        ("max_grad_norm", float("inf")),
        ("target_kl", 0),
        ("kl_stop_factor", 0),
        ("critic_lr_scale", 0),
        ("normalize_advantage", "yes"),
        ("optimizer", "muon"),
        ("weight_decay", -0.1),
        ("adam_eps", 0),
        ("momentum", 1.0),
        ("seed", -1),
        ("device", "gpu"),
        ("device", "cpu:x"),
        ("path", "c"),
        ("min_samples", 0),
        ("max_policy_lag", -1),
    ],
)
def test_an_illegal_value_is_named_shown_and_told_what_is_legal(name: str, value: object):
    with pytest.raises(ConfigError) as caught:
        PPOConfig(**{name: value})  # pyright: ignore[reportArgumentType]
    assert str(caught.value).startswith(f"{name} is ")
    assert "must be" in str(caught.value)


def test_the_error_reads_as_a_sentence():
    with pytest.raises(ConfigError) as caught:
        PPOConfig(gamma=1.5)
    assert str(caught.value) == "gamma is 1.5; it must be a number, at least 0 and at most 1"


def test_every_knob_has_an_illegal_value_in_these_tests():
    marks = test_an_illegal_value_is_named_shown_and_told_what_is_legal.pytestmark[0]  # pyright: ignore
    assert {name for name, _ in marks.args[1]} == {row["name"] for row in PPOConfig.describe()}


def test_momentum_without_an_optimizer_that_has_it_is_refused():
    with pytest.raises(ConfigError, match="only sgd and rmsprop have momentum"):
        PPOConfig(momentum=0.9)
    assert PPOConfig(momentum=0.9, optimizer="sgd").momentum == 0.9


@pytest.mark.parametrize("device", ["auto", "cpu", "cuda", "cuda:0", "mps", "mps:1"])
def test_devices_are_only_checked_as_text(device: str):
    assert PPOConfig(device=device).device == device


def test_numbers_take_their_one_form():
    config = PPOConfig(lr=np.float64(0.5), rollout_steps=np.int64(16), epochs=4.0, gamma=1)  # pyright: ignore[reportArgumentType]
    assert [type(value) for value in (config.lr, config.rollout_steps, config.epochs, config.gamma)] == [
        float,
        int,
        int,
        float,
    ]
    json.dumps(config.to_json())


def test_a_bool_stands_for_where_advantages_are_normalised():
    assert PPOConfig(normalize_advantage=True).normalize_advantage == "minibatch"  # pyright: ignore[reportArgumentType]
    assert PPOConfig(normalize_advantage=False).normalize_advantage == "off"  # pyright: ignore[reportArgumentType]


def test_a_batch_is_every_step_of_every_env():
    assert PPOConfig(rollout_steps=32, envs=8).batch_size == 256


def test_schedules_survive_json():
    config = PPOConfig(lr=StepDecay(3e-4, 100, 0.9), clip=Linear(0.2), ent_coef=Piecewise(((0.0, 0.01), (1.0, 0.0))))
    assert PPOConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


def test_zoo_text_and_sb3_callables_are_taken_as_schedules():
    assert PPOConfig(lr="lin_3e-4").lr == Linear(3e-4)  # pyright: ignore[reportArgumentType]
    assert isinstance(PPOConfig(clip=lambda left: 0.2 * left).clip, Piecewise)  # pyright: ignore[reportArgumentType]


def test_make_takes_any_names_and_text():
    config = PPOConfig.make(learning_rate="1e-3", clip_coef=0.1, n_steps="1e3", clip_range_vf="none")
    assert (config.lr, config.clip, config.rollout_steps, config.value_clip) == (1e-3, 0.1, 1000, None)


def test_the_constructor_takes_own_names_only():
    with pytest.raises(TypeError, match="learning_rate"):
        PPOConfig(learning_rate=1e-3)  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize(
    "build",
    [
        lambda: PPOConfig(steps=16),  # pyright: ignore[reportCallIssue]  # the former name of rollout_steps
        lambda: PPOConfig.make(steps="16"),
        lambda: PPOConfig().replace(steps=16),
    ],
)
def test_the_former_name_of_a_setting_works_with_a_notice(build: Callable[[], PPOConfig]):
    with pytest.warns(RenamedWarning, match="the setting steps is now rollout_steps"):
        assert build().rollout_steps == 16


def test_the_former_name_can_be_read_with_a_notice():
    with pytest.warns(RenamedWarning, match="rollout_steps"):
        assert PPOConfig(rollout_steps=16).steps == 16  # pyright: ignore[reportAttributeAccessIssue]


def test_a_former_name_beside_the_new_one_is_refused():
    with pytest.raises(ConfigError, match="steps and rollout_steps both set rollout_steps"):
        PPOConfig(steps=16, rollout_steps=32)  # pyright: ignore[reportCallIssue]


def test_files_of_earlier_releases_are_read_without_a_notice():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert PPOConfig.from_json({"steps": 16}).rollout_steps == 16


def test_a_preset_gives_way_to_what_is_named():
    config = PPOConfig.make("fast", epochs=3)
    assert (config.epochs, config.rollout_steps, config.clip, config.lr) == (3, 512, 0.3, 5e-4)


def test_replace_leaves_the_original_alone():
    config = PPOConfig()
    assert config.replace(e_clip=0.3).clip == 0.3
    assert config.clip == 0.2


def test_cleanrl_flags_bend_the_values_in_force():
    assert PPOConfig.make(learning_rate=2.5e-4, anneal_lr=True).lr == Linear(2.5e-4)
    assert PPOConfig.make(anneal_lr=True).lr == Linear(3e-4)
    assert PPOConfig.make(anneal_lr=False).lr == 3e-4
    assert PPOConfig.make("fast", clip_vloss=True).value_clip == 0.3
    assert PPOConfig.make("townlet", clip_vloss=False).value_clip is None


def test_flags_that_would_bend_a_schedule_are_refused():
    with pytest.raises(ConfigError, match="lr already follows a schedule"):
        PPOConfig.make("directive023", anneal_lr=True)
    with pytest.raises(ConfigError, match="set value_clip to a number"):
        PPOConfig.make(clip_vloss=True, clip="lin_0.2")


class TestMinibatches:
    def test_the_size_counts_by_itself(self):
        assert PPOConfig(minibatch_size=100).minibatch_size_for(2048) == (100, None)

    @pytest.mark.parametrize(("samples", "size"), [(2048, 512), (2050, 512), (3, 1), (4, 1), (1, 1)])
    def test_the_count_alone_divides_the_samples(self, samples: int, size: int):
        assert PPOConfig(minibatches=4).minibatch_size_for(samples) == (size, None)

    # min(mini_batch_size, max(1, transitions // min(num_mini_batches, transitions)))
    @pytest.mark.parametrize(("samples", "size"), [(400, 32), (100, 25), (128, 32), (3, 1), (1, 1)])
    def test_both_together_give_the_smaller_size_and_say_so(self, samples: int, size: int):
        got, note = PPOConfig.make("townlet").minibatch_size_for(samples)
        assert got == size
        assert note is not None
        assert "minibatch_size is 32 and minibatches is 4" in note
        assert note.count(".") == 1

    def test_naming_one_chooses_it_over_the_other(self):
        by_count = PPOConfig().replace(num_minibatches=4)
        assert (by_count.minibatch_size, by_count.minibatches) == (None, 4)
        by_size = by_count.replace(minibatch_size=32)
        assert (by_size.minibatch_size, by_size.minibatches) == (32, None)

    def test_where_both_were_set_both_stay(self):
        config = PPOConfig.make("townlet", minibatches=8)
        assert (config.minibatch_size, config.minibatches) == (32, 8)

    def test_there_is_no_minibatch_of_nothing(self):
        with pytest.raises(ConfigError, match="samples is 0"):
            PPOConfig().minibatch_size_for(0)

    @pytest.mark.parametrize(
        ("samples", "size", "sizes"),
        [
            (256, 64, [64, 64, 64, 64]),
            (258, 64, [65, 65, 64, 64]),
            (250, 64, [63, 63, 62, 62]),
            (65, 64, [65]),
            (95, 64, [95]),
            (96, 64, [48, 48]),
            (10, 64, [10]),
            (1, 64, [1]),
            (5, 1, [1, 1, 1, 1, 1]),
            (0, 64, []),
        ],
    )
    def test_a_remainder_is_shared_out(self, samples: int, size: int, sizes: list[int]):
        assert split_sizes(samples, size) == sizes

    def test_a_count_of_minibatches_is_met_although_it_does_not_divide(self):
        size, _ = PPOConfig(minibatches=4).minibatch_size_for(2050)
        assert split_sizes(2050, size) == [513, 513, 512, 512]


def test_every_knob_is_described_for_people():
    rows = PPOConfig.describe()
    by_name = {row["name"]: row for row in rows}
    assert len(rows) == 33
    assert all(len(row["help"]) > 20 and row["help"].endswith(".") for row in rows)
    assert by_name["minibatch_size"]["default"] == 64
    assert "clip_range" in by_name["clip"]["aliases"]
    json.dumps(rows)


def test_no_config_loads_torch():
    code = (
        "import sys, surefoot.learn.config, surefoot.learn.presets, surefoot.learn.aliases, surefoot.learn.schedule\n"
        "import surefoot.nets.config, surefoot.train.config\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
