"""Directive-023's trainer: its names and numbers, its defects gone."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.compat.directive023 import Experience, PPOConfig, PPOTrainer
from surefoot.errors import ConfigError, NonFiniteValue, ShapeError

SMALL = {"input_dim": 8, "hidden_dim": 16, "min_buffer_size": 32, "batch_size": 16}


def a_trainer(**changes):
    return PPOTrainer(PPOConfig(**{**SMALL, **changes}))


def told(trainer, rng, n=64, done=True):
    for _ in range(n):
        state = rng.standard_normal(8).astype(np.float32)
        out = trainer.select_action(state)
        reward = float(out["action"] == int(state[0] > 0))
        trainer.store_experience(
            Experience(
                state=state,
                action=out["action"],
                reward=reward,
                next_state=state,
                done=done,
                log_prob=out["log_prob"],
                value=out["value"],
                policy_version=trainer.learner.policy_version,
            )
        )


def test_the_defaults_are_those_of_directive_023():
    config = PPOConfig()
    assert (config.input_dim, config.action_dim, config.hidden_dim, config.buffer_size) == (1536, 5, 256, 2048)
    assert (config.learning_rate, config.eps_clip, config.n_epochs, config.batch_size) == (3e-4, 0.2, 4, 64)


def test_it_learns_which_mutation_fits_an_embedding():
    trainer, rng = a_trainer(learning_rate=3e-3), np.random.default_rng(0)
    for _ in range(25):
        told(trainer, rng, 128)
        trainer.update()
    rewards = []
    for _ in range(200):
        state = rng.standard_normal(8).astype(np.float32)
        rewards.append(trainer.select_action(state, deterministic=True)["action"] == int(state[0] > 0))
    assert np.mean(rewards) > 0.9


def test_the_ratio_is_1_at_the_first_step():
    trainer = a_trainer()
    told(trainer, np.random.default_rng(0))
    report = trainer.update()
    assert report is not None
    assert report.first_ratio_error < 1e-5


def test_the_exact_network_must_be_asked_for_and_shows_its_defect():
    trainer = a_trainer(allow_stateful_norm=True)
    told(trainer, np.random.default_rng(0))
    report = trainer.update()
    assert report is not None
    assert report.first_ratio_error > 1e-3


def test_too_few_experiences_teach_nothing():
    trainer = a_trainer()
    told(trainer, np.random.default_rng(0), 31)
    assert trainer.update() is None
    assert len(trainer.buffer) == 31


def test_a_last_minibatch_of_one_is_no_problem():
    trainer = a_trainer()
    told(trainer, np.random.default_rng(0), 33)
    assert trainer.update() is not None


def test_steps_of_one_prompt_are_one_episode_however_they_come_in():
    trainer, rng = a_trainer(), np.random.default_rng(0)
    paths = [[rng.standard_normal(8).astype(np.float32) for _ in range(4)] for _ in range(2)]
    for t in range(3):
        for path in paths:
            trainer.store_experience(
                Experience(
                    state=path[t], action=0, reward=1.0, next_state=path[t + 1], done=t == 2, log_prob=-1.0, value=0.0
                )
            )
    chains = trainer._chains()
    assert [len(chain) for chain in chains] == [3, 3]
    assert [step.terminated for step in chains[0]] == [False, False, True]


def test_an_episode_that_was_cut_is_worth_what_lies_ahead():
    trainer, rng = a_trainer(), np.random.default_rng(0)
    told(trainer, rng, 1, done=False)
    ((step,),) = trainer._chains()
    assert step.truncated
    assert step.bootstrap == pytest.approx(trainer.select_action(trainer.buffer[0].next_state)["value"], abs=1e-6)


def test_statistics_are_there_after_training():
    trainer = a_trainer()
    assert trainer.get_stats() == {"message": "No training data yet"}
    told(trainer, np.random.default_rng(0))
    trainer.update()
    stats = trainer.get_stats()
    assert stats["total_updates"] == 1
    assert stats["total_episodes"] == 64
    assert stats["avg_entropy"] > 1.0
    assert 0.0 < stats["avg_reward"] < 1.0


def test_what_was_saved_goes_on_to_the_same_digits(tmp_path):
    one, rng = a_trainer(), np.random.default_rng(0)
    told(one, rng)
    one.update()
    one.save(tmp_path)
    two = a_trainer(seed=5)
    two.load(tmp_path)
    state = rng.standard_normal(8).astype(np.float32)
    assert [one.select_action(state) for _ in range(5)] == [two.select_action(state) for _ in range(5)]
    assert two.get_distribution(state) == one.get_distribution(state)
    assert one.get_stats()["avg_reward"] == two.get_stats()["avg_reward"]


def test_an_episode_over_prompts_ends_in_an_update():
    trainer = a_trainer()
    vectors = np.random.default_rng(0).standard_normal((50, 8))

    def embed(prompt):
        return vectors[len(prompt) % 50]

    told = trainer.train_episode(
        ["a" * i for i in range(1, 9)], embed, lambda p, m: (0.5, p + "x", len(p) > 40), max_steps=10
    )
    assert told["avg_reward"] == 0.5
    assert len(told["actions"]) == 80
    assert told["update_count"] == 1


@pytest.mark.parametrize(
    ("embedding", "error", "words"),
    [([0.0] * 7, ShapeError, r"is \[7\]; this policy takes \[8\]"), ([np.nan] * 8, NonFiniteValue, "NaN")],
)
def test_an_embedding_that_cannot_be_is_refused(embedding, error, words):
    with pytest.raises(error, match=words):
        a_trainer().select_action(embedding)


def test_an_experience_that_cannot_be_is_refused():
    state = np.zeros(8, np.float32)
    known = {"state": state, "next_state": state, "done": True, "log_prob": -1.0, "value": 0.0}
    with pytest.raises(ConfigError, match="action is 9; it must be 0 to 4"):
        a_trainer().store_experience(Experience(**known, action=9, reward=0.0))
    with pytest.raises(NonFiniteValue, match="must be finite"):
        a_trainer().store_experience(Experience(**known, action=0, reward=float("nan")))
