"""HoloLoom's trainer on a buffer of episodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from surefoot.compat.hololoom import (
    PPOConfig,
    PPOTrainer,
    WeavingShuttle,
    tool,
)
from surefoot.compat.hololoom.trainer import PPOTrainer as Trainer
from surefoot.decide.policy.ppo import PPO_DEFAULTS
from surefoot.errors import ConfigError, PolicyError


@tool
def answer(text: str) -> str:
    """Answer questions about anything."""
    return "42"


@tool
def sing(text: str) -> str:
    """Sing a song."""
    return "la"


def trained(encoder, minibatch: int) -> tuple[WeavingShuttle, PPOTrainer]:
    agent = WeavingShuttle([answer, sing], encoder=encoder)
    trainer = PPOTrainer(agent.policy.core, PPOConfig(batch_size=minibatch, n_epochs=2, target_kl=None))
    for _ in range(40):
        agent.buffer.store_now(agent.weave_sync("a question"), {"helpful": True})
    return agent, trainer


def test_the_minibatch_size_is_used(encoder):
    steps = dict[int, int]()
    for size in (8, 20):
        agent, trainer = trained(encoder, size)
        core = agent.policy.core
        core.config = type(core.config)(reuse=0)
        reports = list[int]()
        update = core.learner.update
        core.learner.update = lambda rollout, u=update, r=reports: (r.append((done := u(rollout)).minibatches), done)[1]
        trainer.train_now(agent.buffer)
        steps[size] = sum(reports)
    assert steps == {8: 2 * 40 // 8, 20: 2 * 40 // 20}
    assert PPO_DEFAULTS.minibatch_size == 64


def test_an_episode_is_new_only_once(encoder):
    agent, trainer = trained(encoder, 64)
    trainer.train_now(agent.buffer)
    outcomes = agent.policy.core.model.outcomes
    trainer.train_now(agent.buffer)
    assert outcomes == agent.policy.core.model.outcomes == 40


def test_the_trainer_saves_and_loads_and_sums_up(encoder, tmp_path: Path):
    shuttle = WeavingShuttle([answer, sing], encoder=encoder)
    trainer = Trainer(shuttle.policy.core)
    for _ in range(40):
        shuttle.buffer.store_now(shuttle.weave_sync("a question"), {"helpful": True})
    assert trainer.train_now(shuttle.buffer, min_samples=41) == {}, "too few"
    trainer.train_now(shuttle.buffer)
    trainer.train_now(shuttle.buffer)
    assert trainer.get_metrics_summary()["total_updates"] == 2
    trainer.save_checkpoint(tmp_path / "c")
    fresh = WeavingShuttle([answer, sing], encoder=encoder)
    Trainer(fresh.policy.core).load_checkpoint(tmp_path / "c")
    one, two = (each.policy.core.policy.weight.detach() for each in (shuttle, fresh))
    assert one.equal(two)


def test_only_a_ppo_core_can_be_trained(encoder):
    with pytest.raises(PolicyError, match="chooser='ppo'"):
        Trainer(WeavingShuttle([answer], encoder=encoder, chooser="residual").policy.core)


def test_the_learning_rate_is_set_as_in_torch(encoder):
    _, trainer = trained(encoder, 8)
    trainer.optimizer.param_groups[0]["lr"] = 1e-4
    assert trainer.policy.learner.config.lr == 1e-4
    assert trainer.optimizer.param_groups[0]["lr"] == 1e-4
    with pytest.raises(ConfigError, match="'betas' cannot be set"):
        trainer.optimizer.param_groups[0]["betas"] = (0.9, 0.99)
