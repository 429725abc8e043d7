"""Lifecycle of policies: updates as jobs, versions, promotion, rollback, checkpoints, evaluation, explanation."""

from __future__ import annotations

import asyncio
import math
import uuid
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from surefoot.data.journal import Entry
from surefoot.data.rollout import Rollout
from surefoot.decide.evaluation import offpolicy
from surefoot.decide.evaluation.offpolicy import OffPolicyEvaluation
from surefoot.errors import CheckpointError, DecisionError
from surefoot.server import schema
from surefoot.server.decisions import direct_method
from surefoot.server.decisions.learning_process import LearningResult
from surefoot.server.decisions.numpy_network import Net, log, net_of, probabilities
from surefoot.server.decisions.served_policy import RewardRecord, ServedPolicy, final_reward, read_decision
from surefoot.server.decisions.service import Service
from surefoot.server.http.problems import Refused

# Jobs whose state can be queried; older ones are dropped, so that memory stays bounded.
JOBS = 1000
# Similar decisions in an explanation: what fits on a screen.
NEAREST = 5


class PolicyLifecycle:
    """Manages updates and versions of a service's policies."""

    def __init__(self, service: Service) -> None:
        self.service, self.store = service, service.store
        self.jobs: dict[str, schema.JobResponse] = {}
        self._done: dict[str, asyncio.Event] = {}
        self._turn = asyncio.Lock()
        service.learned_from = self.begin_update

    async def update(self, name: str, least: int | None = None) -> schema.JobResponse:
        """Start a job that learns from finished decisions."""
        serving = self.service.policy(name)
        if serving.learning is not None:
            raise Refused("conflict", f"an update of {name!r} runs already: job {serving.learning}")
        wanted = serving.config.training.least if least is None else least
        if len(serving.ledger) < wanted:
            raise Refused("conflict", f"{len(serving.ledger)} finished decisions; an update takes at least {wanted}")
        return self.begin_update(serving)

    def begin_update(self, serving: ServedPolicy) -> schema.JobResponse:
        """Start learning from all finished decisions in the background."""
        job = schema.JobResponse(
            job_id=f"job-{uuid.uuid4().hex[:12]}", policy=serving.config.name, kind="update", state="waiting"
        )
        self.jobs[job.job_id], self._done[job.job_id] = job, asyncio.Event()
        while len(self.jobs) > JOBS:
            self._done.pop(next(iter(self.jobs)))
            self.jobs.pop(next(iter(self.jobs)))
        serving.learning = job.job_id
        self.service.spawn(self._update(serving, job))
        return job

    async def finished(self, job: schema.JobResponse) -> schema.JobResponse:
        """Wait for a job and return it."""
        await self._done[job.job_id].wait()
        return job

    async def _update(self, serving: ServedPolicy, job: schema.JobResponse) -> None:
        try:
            async with self._turn:
                job.state = "running"
                await self._learn(serving, job)
        except Exception as why:
            job.state, job.message = "failed", f"{type(why).__name__}: {why}"
            raise
        finally:
            serving.learning = None
            if job.job_id in self._done:
                self._done[job.job_id].set()

    async def _learn(self, serving: ServedPolicy, job: schema.JobResponse) -> None:
        name = serving.config.name
        too_much = excess(serving)
        serving.ledger.discard(too_much)
        rollout, learned_from = serving.ledger.drain(), serving.unlearned
        serving.unlearned, serving.reward_clients = [], {}
        if rollout is None:
            job.state, job.message = "failed", "there are no finished decisions"
            return
        loop = asyncio.get_running_loop()
        network = serving.network

        def work() -> LearningResult:
            return self.service.apprentice.ask(serving.config, with_values(rollout, network))

        result = await loop.run_in_executor(None, work)
        if result.error:
            job.state, job.message = "failed", result.error
            return
        # Before it goes live: after a crash, `_recall` must not learn from these decisions again.
        body = {"version": result.version, "metrics": result.metrics, "decisions": learned_from}
        await self.store.write(Entry(kind="version", id=f"{name}/{result.version}", tag=name, body=body))
        job.result = {
            "version": result.version,
            "samples": len(learned_from),
            "left_out": len(too_much),
            **result.metrics,
        }
        self._go_live(serving, result.version, "learned")
        job.state = "done"

    def job(self, id: str) -> schema.JobResponse:
        """Return the job with this id."""
        if id not in self.jobs:
            raise Refused("unknown", f"there is no job {id!r}")
        return self.jobs[id]

    def version_list(self, name: str) -> schema.VersionList:
        """Return all versions, newest first."""
        serving = self.service.policy(name)
        known = {e.body["version"]: e for e in self.store.reader.scan("version") if e.tag == name}
        versions = [
            schema.Version(
                version=number,
                created_at=known[number].t if number in known else 0.0,
                samples=len(known[number].body["decisions"]) if number in known else 0,
                live=number == serving.version,
                metrics=known[number].body["metrics"] if number in known else {},
            )
            for number in reversed(serving.versions.numbers)
        ]
        return schema.VersionList(versions=versions)

    async def promote(self, name: str, wish: schema.PromotionBody) -> schema.PolicyResponse:
        """Use a version for all decisions, or for a share of them (canary)."""
        serving = self.service.policy(name)
        network = self._network(serving, wish.version)
        if wish.gate:
            evaluation = await self.evaluate(name, schema.NewEvaluation(version=wish.version))
            if not evaluation.enough or evaluation.dr.low < evaluation.logged.value - 0.01 * np.ptp(
                serving.config.reward_range
            ):
                why = "too little was logged" if not evaluation.enough else "it may be worse"
                raise Refused(
                    "conflict",
                    f"version {wish.version} was not promoted: {why}; its DR lower bound is {evaluation.dr.low:.4f}",
                )
        if wish.share < 1.0:
            serving.canary = (wish.version, wish.share, network)
        else:
            self._go_live(serving, wish.version, "promoted")
        return self.service.describe(serving)

    async def rollback(self, name: str) -> schema.PolicyResponse:
        """Return to the version that was live before."""
        serving = self.service.policy(name)
        try:
            number = serving.versions.rollback()
        except DecisionError as why:
            raise Refused("conflict", str(why)) from why
        serving.network, serving.version, serving.canary = self._network(serving, number), number, None
        return self.service.describe(serving)

    async def checkpoint(self, policy: str, wish: schema.NewCheckpoint, *, name: str = "") -> schema.CheckpointResponse:
        """Give a version a permanent name, by default `<policy>-<version>`."""
        serving = self.service.policy(policy)
        version = serving.version if wish.version is msgspec.UNSET else wish.version
        self._network(serving, version)
        id = name or f"{policy}-{version}"
        response = schema.CheckpointResponse(
            checkpoint_id=id, policy=policy, version=version, created_at=self.service.clock()
        )
        await self.store.write(Entry(kind="checkpoint", id=id, tag=policy, body=msgspec.to_builtins(response)))
        return response

    async def activate_checkpoint(self, id: str) -> schema.PolicyResponse:
        """Make the version of a checkpoint live."""
        try:
            msgspec.convert(id, schema.Id)
        except msgspec.ValidationError as why:
            raise Refused("invalid", f"{id[:80]!r} is not a valid checkpoint id: {why}", pointer="/") from None
        entry = self.store.journal.get("checkpoint", id)
        if entry is None:
            raise Refused("unknown", f"there is no checkpoint {id!r}")
        known = msgspec.convert(entry.body, schema.CheckpointResponse)
        return await self.promote(known.policy, schema.PromotionBody(version=known.version))

    async def evaluate(self, name: str, wish: schema.NewEvaluation) -> schema.OffPolicy:
        """Estimate what another version would have earned on the logged decisions."""
        serving = self.service.policy(name)
        network = self._network(serving, wish.version)
        result = await asyncio.get_running_loop().run_in_executor(None, self._estimate, serving, network, wish.last)
        fields = {name: getattr(result, name) for name in schema.OffPolicy.__struct_fields__ if name != "version"}
        return msgspec.convert({"version": wish.version, **fields}, schema.OffPolicy, from_attributes=True)

    def _estimate(self, serving: ServedPolicy, network: Net, last: int) -> OffPolicyEvaluation:
        log_of = self._log(serving, last)
        if len(log_of) < 10:
            raise Refused("conflict", f"{len(log_of)} finished decisions are logged; an evaluation takes at least 10")
        decisions, reward = [m for m, _ in log_of], np.array([r for _, r in log_of], np.float64)
        logits = network.answer([m.obs for m in decisions])
        target = [probabilities(x, m.action_mask) for x, m in zip(logits, decisions, strict=True)]
        guess = direct_method.by_description if serving.config.choose == "candidates" else direct_method.by_action
        predicted, expected = guess(decisions, reward, target)
        logged = np.exp([m.log_prob for m in decisions])
        chosen = np.array([chances[m.action] for chances, m in zip(target, decisions, strict=True)])
        return offpolicy.evaluate(reward, logged, chosen, predicted, expected)

    def _log(self, serving: ServedPolicy, last: int) -> list[Any]:
        """Return (decision, reward) of the last decisions that were sampled and have a reward."""
        name = serving.config.name
        rewards: dict[str, list[RewardRecord]] = {}
        for entry in self.store.reader.latest("reward", 2 * last, tag=name):
            rewards.setdefault(entry.id.rpartition("#")[0], []).append(RewardRecord(**entry.body))
        rows: list[Any] = []
        for entry in self.store.reader.latest("decision", last, tag=name):
            if entry.id in rewards and entry.body["learns"] and entry.body["answer"].get("mode", "live") == "live":
                reward = final_reward(rewards[entry.id], serving.config)
                rows.append((read_decision(entry, serving.config)[0], reward))
        return rows

    async def explain(self, id: str) -> schema.Explained:
        """Explain a decision: its distribution, the learned part, and the rewards of similar decisions."""
        serving, waiting = self.service.decision(id)
        return await asyncio.get_running_loop().run_in_executor(None, self._explain, serving, id, waiting.final)

    def _explain(self, serving: ServedPolicy, id: str, final: float | None) -> schema.Explained:
        entry = self.store.journal.get("decision", id)
        assert entry is not None
        decision, answer = read_decision(entry, serving.config)
        row = decision.obs["obs"]
        # The first version is untrained: its probabilities are the prior.
        first = self._network(serving, serving.versions.numbers[0])
        then = self._network(serving, decision.policy_version)
        chances = probabilities(then.answer([decision.obs])[0], decision.action_mask)
        prior = float(probabilities(first.answer([decision.obs])[0], decision.action_mask)[decision.action])
        past = [(m, r) for m, r in self._log(serving, 1000) if m.id != id]
        near: list[schema.PastResponse] = []
        if past:
            rows = np.stack([m.obs["obs"] for m, _ in past]).astype(np.float64)
            length = np.linalg.norm(rows, axis=1) * np.linalg.norm(row)
            likeness = rows @ row / np.where(length > 0, length, 1.0)
            for place in np.argsort(-likeness, kind="stable")[:NEAREST]:
                m, r = past[place]
                near.append(
                    schema.PastResponse(decision_id=m.id, action=m.action, reward=r, likeness=float(likeness[place]))
                )
        return schema.Explained(
            decision=answer,
            distribution=chances.tolist(),
            prior=prior,
            learned=log(float(chances[decision.action])) - log(prior),
            exploration=min(1.0, max(0.0, 1.0 - float(chances.max()))),
            reward=final,
            nearest=near,
        )

    def _go_live(self, serving: ServedPolicy, number: int, why: str) -> None:
        network = self._network(serving, number)
        if serving.versions.live != number:
            serving.versions.promote(number, why)
        serving.network, serving.version, serving.canary = network, number, None

    def _network(self, serving: ServedPolicy, number: int) -> Net:
        try:
            weights = serving.versions.load(number).parts["weights"]
        except CheckpointError as why:
            kind = "unknown" if number not in serving.versions.numbers else "conflict"
            raise Refused(kind, f"version {number} of {serving.config.name!r}: {why}") from why
        return net_of(weights, actions=len(serving.config.actions))


def excess(serving: ServedPolicy) -> set[int]:
    """Return indices of finished episodes beyond one client's share; its newest ones count."""
    ready = serving.ledger.ready
    whose = [serving.reward_clients.get(episode[-1][0].id, "") for episode in ready]
    clients = {name for name in whose if name}
    if not clients:
        return set()
    most = max(1, math.floor(max(serving.config.training.client_share, 1.0 / len(clients)) * len(ready)))
    counted: dict[str, int] = {}
    surplus: set[int] = set()
    for place in reversed(range(len(ready))):
        counted[whose[place]] = counted.get(whose[place], 0) + 1
        if whose[place] and counted[whose[place]] > most:
            surplus.add(place)
    return surplus


def with_values(rollout: Rollout, network: Net) -> Rollout:
    """Return the rollout with the critic's values; a truncated step without a known successor uses its own value."""
    obs = rollout.obs["obs"]
    value = network.values(obs.reshape(-1, obs.shape[-1])).reshape(rollout.reward.shape).astype(np.float64)
    after = np.zeros_like(value)
    after[:-1] = value[1:]
    bootstrap = np.where(np.isnan(rollout.next_value), value, rollout.next_value)
    return replace(rollout, value=value, next_value=np.where(rollout.truncated, bootstrap, after))
