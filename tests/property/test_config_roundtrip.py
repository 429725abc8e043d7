"""Configs survive JSON, text and any spelling; minibatches use each sample once."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from surefoot.learn.aliases import PPO_NAMES
from surefoot.learn.config import PPOConfig
from surefoot.learn.minibatches import split_sizes
from surefoot.learn.schedule import Cosine, Linear, Piecewise, StepDecay, value_at
from surefoot.learn.schedule_text import extremes, parse_schedule, schedule_to_json
from surefoot.nets.config import NetConfig
from surefoot.train.config import CollectConfig, split_settings

positive = st.floats(1e-8, 1e3)
unit = st.floats(0, 1)
points = st.lists(unit, min_size=1, max_size=6, unique=True).flatmap(
    lambda at: st.tuples(*(st.tuples(st.just(p), positive) for p in sorted(at)))
)
schedules = st.one_of(
    st.builds(Linear, positive, st.floats(0, 1e3)),
    st.builds(Cosine, positive, st.floats(0, 1e3)),
    st.builds(StepDecay, positive, st.integers(1, 1000), st.floats(0.01, 1)),
    st.builds(Piecewise, points),
)
scheduled = st.one_of(positive, schedules)
counts = st.integers(1, 10**6)

KNOBS: dict[str, st.SearchStrategy[Any]] = {
    "lr": scheduled,
    "critic_lr_scale": positive,
    "gamma": unit,
    "lam": unit,
    "clip": scheduled,
    "dual_clip": st.none() | st.floats(1.001, 100),
    "value_clip": st.none() | positive,
    "epochs": counts,
    "minibatch_size": st.none() | counts,
    "minibatches": st.none() | counts,
    "rollout_steps": counts,
    "envs": counts,
    "ent_coef": scheduled,
    "vf_coef": positive,
    "kl_coef": positive,
    "max_grad_norm": positive,
    "target_kl": st.none() | positive,
    "kl_stop_factor": positive,
    "adaptive_kl": st.none() | positive,
    "normalize_value": st.booleans(),
    "temperature": st.floats(0.01, 10) | st.builds(Linear, st.floats(0.01, 10), st.floats(0.01, 10)),
    "normalize_advantage": st.sampled_from(["minibatch", "batch", "off"]),
    "optimizer": st.sampled_from(["sgd", "rmsprop"]),
    "weight_decay": positive,
    "adam_eps": positive,
    "momentum": st.floats(0, 0.999),
    "seed": st.integers(0, 2**63 - 1),
    "device": st.sampled_from(["auto", "cpu", "cuda:3", "mps"]),
    "path": st.sampled_from(["auto", "native", "torch"]),
    "min_samples": counts,
    "max_policy_lag": st.none() | st.integers(0, 1000),
}
configs = st.fixed_dictionaries(KNOBS).map(lambda values: PPOConfig(**values))
nets = st.builds(
    NetConfig,
    hidden=st.lists(st.integers(1, 4096), max_size=4),
    critic_hidden=st.none() | st.lists(st.integers(1, 4096), max_size=4),
    activation=st.sampled_from(["tanh", "relu", "elu", "silu", "gelu", "leaky_relu"]),
    ortho_init=st.booleans(),
    log_std_init=st.floats(-20, 2),
    gsde=st.booleans(),
    gsde_every=st.integers(1, 100) | st.just(-1),
    obs_clip=positive,
)
collects = st.builds(
    CollectConfig,
    normalize_reward=st.booleans(),
    reward_clip=positive,
    reward_range=st.none() | st.tuples(st.floats(-1e6, -1), st.floats(0, 1e6)),
    nonfinite=st.sampled_from(["raise", "drop_episode"]),
)


@given(configs)
def test_a_ppo_config_survives_json(config: PPOConfig):
    assert PPOConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


@given(nets)
def test_a_net_config_survives_json(config: NetConfig):
    assert NetConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


@given(collects)
def test_a_collect_config_survives_json(config: CollectConfig):
    assert CollectConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


@given(configs, st.data())
def test_any_spelling_makes_the_same_config(config: PPOConfig, data: st.DataObject):
    spelled = {
        data.draw(st.sampled_from([name, *PPO_NAMES.knobs[name]])): value for name, value in config.to_json().items()
    }
    assert PPOConfig.from_json(spelled) == config


@given(configs)
def test_every_value_can_be_written_as_text(config: PPOConfig):
    for name, value in config.to_json().items():
        text = value if isinstance(value, str) else json.dumps(value)
        ppo, net, collect = split_settings({name: text})
        assert {**ppo, **net, **collect} == {name: getattr(config, name)}


@given(scheduled, st.floats(-1, 2), st.integers(0, 10**6))
def test_a_schedule_stays_between_its_extremes_and_survives_json(knob: Any, progress: float, updates: int):
    low, high = extremes(knob)
    value = value_at(knob, progress=progress, updates=updates)
    slack = 1e-12 * max(abs(low), abs(high))
    assert low - slack <= value <= high + slack
    assert parse_schedule(json.loads(json.dumps(schedule_to_json(knob)))) == knob


@given(st.integers(1, 10**5), st.integers(1, 10**4))
def test_each_sample_is_in_one_minibatch_and_none_is_tiny(samples: int, size: int):
    sizes = split_sizes(samples, size)
    assert sum(sizes) == samples
    assert max(sizes) - min(sizes) <= 1
    if samples >= size:
        # A count within a half of samples / size leaves between two thirds and three halves of the size to each.
        assert 2 * size // 3 <= min(sizes)
        assert max(sizes) <= -(-3 * size // 2)
    if samples % size == 0:
        assert sizes == [size] * (samples // size)


@given(configs, st.integers(1, 10**6))
def test_a_minibatch_is_never_empty_nor_larger_than_asked(config: PPOConfig, samples: int):
    size, note = config.minibatch_size_for(samples)
    assert size >= 1
    assert config.minibatch_size is None or size <= config.minibatch_size
    assert (note is not None) == (config.minibatch_size is not None and config.minibatches is not None)
