"""The presets of the earlier systems against the tables they were taken from."""

from __future__ import annotations

from typing import Any

import pytest

from surefoot.cli.main import main
from surefoot.compat.presets import PRESETS
from surefoot.learn.config import PPOConfig
from surefoot.learn.presets import all_presets, preset
from surefoot.learn.schedule import StepDecay
from surefoot.nets.config import NetConfig
from surefoot.train.config import CollectConfig

# name: (lr, gamma, lam, clip, epochs, minibatch, steps, ent_coef, vf_coef, max_grad_norm)
TABLES: dict[str, tuple[Any, ...]] = {
    "hololoom": (3e-4, 0.99, 0.95, 0.2, 4, 64, 1000, 0.01, 0.5, 0.5),
    "townlet": (3e-4, 0.99, 0.95, 0.2, 4, 32, 100, 0.01, 0.5, 0.5),
    "directive023": (StepDecay(3e-4, 100, 0.9), 0.99, 0.95, 0.2, 4, 64, 2048, 0.01, 0.5, 0.5),
    "constitutional": (1e-5, 0.99, 0.95, 0.2, 4, 4, 2048, 0.0, 0.5, 1.0),
    "dnne": (3e-4, 0.99, 0.95, 0.2, 10, 64, 2048, 0.01, 0.5, 0.5),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_preset_has_the_numbers_of_its_source(name: str):
    c = PPOConfig.make(name)
    got = (
        c.lr,
        c.gamma,
        c.lam,
        c.clip,
        c.epochs,
        c.minibatch_size,
        c.rollout_steps,
        c.ent_coef,
        c.vf_coef,
        c.max_grad_norm,
    )
    assert got == TABLES[name]


def test_what_only_one_source_has():
    hololoom, townlet, prompts, language = map(
        PPOConfig.make, ("hololoom", "townlet", "directive023", "constitutional")
    )
    assert (hololoom.target_kl, hololoom.kl_stop_factor, hololoom.min_samples) == (0.01, 1.0, 32)
    assert (townlet.value_clip, townlet.minibatches, townlet.normalize_advantage) == (0.2, 4, "minibatch")
    assert (prompts.optimizer, prompts.weight_decay, prompts.value_clip) == ("adamw", 0.01, 0.2)
    assert prompts.min_samples == 128
    assert language.kl_coef == 0.1


def test_the_networks_of_the_sources():
    assert NetConfig(**preset("dnne").net) == NetConfig(hidden=(64, 64), activation="elu", shared=True)
    assert preset("directive023").net["hidden"] == (256, 256, 128)


@pytest.mark.parametrize("entry", PRESETS, ids=lambda entry: entry.name)
def test_every_preset_makes_three_valid_configs(entry: Any):
    assert all_presets()[entry.name] is entry
    assert entry.summary.endswith(".")
    PPOConfig(**entry.ppo)
    NetConfig(**entry.net)
    CollectConfig(**entry.collect)


def test_the_command_line_lists_and_takes_them(capsys: pytest.CaptureFixture[str]):
    assert main(["presets"]) == 0
    listed = capsys.readouterr().out
    assert all(entry.name in listed for entry in PRESETS)
    assert main(["train", "CartPole-v1", "--preset", "townlet", "--steps", "1000", "--dry-run"]) == 0
    assert "preset townlet" in capsys.readouterr().out
