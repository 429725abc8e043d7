"""Learning in a separate process: experiences in, a saved version out. Decisions never wait for it."""

from __future__ import annotations

import contextlib
import dataclasses
import multiprocessing
import os
import signal
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from surefoot.data.rollout import Rollout
from surefoot.decide.promotion import Versions
from surefoot.errors import ConfigError, SurefootError
from surefoot.learn.report import UpdateReport
from surefoot.server import schema
from surefoot.telemetry.schema import Episodes
from surefoot.telemetry.writer import Recorder


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningResult:
    """Result of one request to the learning process."""

    version: int
    metrics: dict[str, float | None] = field(default_factory=dict[str, float | None])
    error: str = ""
    """Reason why there is no new version; empty on success."""


# `training.settings` of a policy replaces each of them. gamma and lam matter only in episodes of several decisions; with a
# smaller ent_coef a policy explores less as it learns.
DEFAULTS: dict[str, Any] = {"lr": 1e-3, "epochs": 4, "minibatch_size": 64, "gamma": 0.99, "lam": 0.95, "ent_coef": 0.01}


# If every choice is right, advantages are near 0; dividing by their deviation would amplify noise.
DESCRIBED: dict[str, Any] = {**DEFAULTS, "normalize_advantage": "off", "ent_coef": 0.0}


def learner_of(declared: schema.NewPolicy, root: Path) -> Any:
    """Return the learner of a policy as its newest version left it; a new one if there is none."""
    import torch

    from surefoot.data.spaces import Box, Discrete
    from surefoot.decide.policy.described import DescribedPolicy
    from surefoot.decide.policy.embedding_network import EmbeddingNetwork
    from surefoot.learn.config import PPOConfig
    from surefoot.learn.learner import Learner
    from surefoot.nets.actor_critic import ActorCritic
    from surefoot.nets.policy import load_weights
    from surefoot.train.config import split_settings

    ppo, net, collect = split_settings(dict(declared.training.settings))
    if net or collect:
        raise ConfigError(f"{', '.join([*net, *collect])}: only settings of learning can be changed for a policy")
    seed, size, actions = declared.seed, declared.embedding_size, len(declared.actions)
    if actions:
        # Policies share this process: the seed of one must not change the random numbers of the others.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = EmbeddingNetwork({"obs": size}, actions)
        policy = ActorCritic({"obs": Box((size,))}, Discrete(actions), network=network, seed=seed)
    else:
        policy = DescribedPolicy(size, prior=declared.prior, seed=seed)
    usual = DEFAULTS if actions else DESCRIBED
    learner = Learner(policy, PPOConfig(envs=1, rollout_steps=1).replace(**{**usual, **ppo, "seed": seed}))
    versions = Versions(root)
    if versions.numbers:
        parts: dict[str, Any] = versions.load(versions.numbers[-1]).parts
        load_weights(policy, parts["weights"])
        learner.set_state(parts)
    return learner


def save(learner: Any, root: Path, metrics: Mapping[str, float | None]) -> int:
    """Save the learner as a version; return its number."""
    weights = {name: x.detach().clone() for name, x in learner.policy.state_dict().items()}
    Versions(root).save(learner.updates, {"weights": weights, **learner.state()}, {"metrics": dict(metrics)})
    return learner.updates


def serve(pipe: Connection, root: Path) -> None:
    """Run the child: answer each (policy, rollout or None) with a `LearningResult` until the pipe ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    import torch

    # More threads would take cores from the process that answers.
    torch.set_num_threads(1)
    learners: dict[str, Any] = {}
    polite = False
    while True:
        try:
            declared, rollout = pipe.recv()
        except EOFError:
            return
        if rollout is not None and not polite:  # a client waits for a first version, nobody waits for an update
            with contextlib.suppress(OSError):
                os.nice(19)
            polite = True
        pipe.send(answer(learners, declared, rollout, root / declared.name))


def answer(learners: dict[str, Any], declared: schema.NewPolicy, rollout: Rollout | None, root: Path) -> LearningResult:
    """Learn from a rollout, or make sure that there is a first version; return errors instead of raising them."""
    try:
        if declared.name not in learners:
            learners[declared.name] = learner_of(declared, root)
        learner = learners[declared.name]
        if rollout is None:
            return LearningResult(version=save(learner, root, {}) if not Versions(root).numbers else learner.updates)
        report = learner.update(rollout)
        _record(declared, root, learner, report, rollout)
        metrics = {name: float(x) if np.isfinite(x) else None for name, x in report.metrics().items()}
        metrics["reward_mean"] = float(rollout.reward[rollout.valid].mean())
        if report.rolled_back or report.skipped_reason:
            why = report.skipped_reason or "the update produced non-finite numbers and was rolled back"
            return LearningResult(version=learner.updates - 1, metrics=metrics, error=why)
        return LearningResult(version=save(learner, root, metrics), metrics=metrics)
    except SurefootError as why:
        # The update may have changed a part of it: the next request loads it from its newest version.
        learners.pop(declared.name, None)
        return LearningResult(version=-1, error=f"{type(why).__name__}: {why}")


def _record(declared: schema.NewPolicy, root: Path, learner: Any, report: UpdateReport, rollout: Rollout) -> None:
    """Record an update for `watch`, `summary` and `doctor`: its metrics, the rewards, and the share of each action."""
    sizes = {"actions": len(declared.actions), "embedding_size": declared.embedding_size}
    # No rate limit: at the default one, updates that follow each other quickly would share a line.
    with contextlib.closing(Recorder(root, declared.name, updates_per_second=1e9)) as recorder:
        recorder.header(
            env=f"decisions of {declared.name}",
            seed=declared.seed,
            config={"ppo": dataclasses.asdict(learner.config), **sizes},
        )
        valid = rollout.valid
        taken = np.bincount(rollout.action[valid].astype(np.int64).ravel())
        # At most 32: each share is a metric of every line, and a policy may have many more actions.
        shares = {f"action_share_{k}": float(n) / valid.sum() for k, n in enumerate(taken[:32])}
        earned = {
            "reward_mean": float(rollout.reward[valid].mean()),
            "success_rate": float((rollout.reward[valid] > 0).mean()),
        }
        returns = np.where(valid, rollout.reward, 0.0).sum(axis=0)
        recorder.update(
            env_steps=recorder.env_steps + rollout.samples,
            updates=report.update,
            m={**report.metrics(), **earned, **shares},
            epochs=[epoch.as_dict() for epoch in report.epochs],
            seconds=report.seconds,
            episodes=Episodes.of(returns.tolist(), valid.sum(axis=0).tolist()),
            stopped_early=report.stopped_early,
            rolled_back=report.rolled_back,
            skipped_reason=report.skipped_reason,
        )


class PolicyLearner(Protocol):
    """Learns for the service: in another process, or in this one in tests."""

    def ask(self, declared: schema.NewPolicy, rollout: Rollout | None) -> LearningResult: ...

    def close(self) -> None: ...


class LearningProcess:
    """The parent's side: one request at a time. If the child dies, the request fails and the next one starts a new child."""

    def __init__(self, root: Path) -> None:
        self.root = root
        # Not fork: the service has threads, and a fork copies their locks in the state they are in.
        self._context = multiprocessing.get_context("spawn")
        self._process: Any = None
        self._pipe: Connection | None = None
        self._turn = threading.Lock()
        self._over = False

    def ask(self, declared: schema.NewPolicy, rollout: Rollout | None) -> LearningResult:
        """Block until the update is done; call this from a thread. Callers are served one at a time."""
        with self._turn:
            if self._over:
                return LearningResult(version=-1, error="the service is closing")
            if self._pipe is None or not self._process.is_alive():
                self._pipe, theirs = self._context.Pipe()
                self._process = self._context.Process(target=serve, args=(theirs, self.root), daemon=True)
                self._process.start()
                # While this process has the child's end open, the death of the child would not end `recv`.
                theirs.close()
            try:
                self._pipe.send((declared, rollout))
                return self._pipe.recv()
            except (EOFError, OSError) as why:
                self._end()
                return LearningResult(version=-1, error=f"the learning process died ({why}); it is started again")

    def close(self) -> None:
        """Stop the child process; later requests fail."""
        self._over = True
        self._end()

    def _end(self) -> None:
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            pipe.close()
            self._process.join(timeout=5)
            if self._process.is_alive():
                self._process.kill()
