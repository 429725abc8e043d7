"""Lifecycle of policies: updates as jobs, versions, promotion, rollback, checkpoints, evaluation, explanation."""

from __future__ import annotations

import asyncio
import uuid

import msgspec
import numpy as np

from surefoot.data.journal import Entry
from surefoot.decide.evaluation import offpolicy
from surefoot.decide.evaluation.offpolicy import Estimate, OffPolicyEvaluation
from surefoot.decide.policy.choosers import Experience, OptionChoice
from surefoot.decide.policy.experience_log import Logged
from surefoot.decide.policy.outcome_model import Scene
from surefoot.decide.policy.replay import ReplayChooser
from surefoot.errors import CheckpointError, DecisionError
from surefoot.server import schema
from surefoot.server.decisions.administration import describe
from surefoot.server.decisions.requests import read_decision, spread_over
from surefoot.server.decisions.served_policy import ServedPolicy
from surefoot.server.decisions.service import Service
from surefoot.server.decisions.snapshots import version_chooser
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
        service.job_done = self._set_done

    async def update(self, name: str, least: int | None = None) -> schema.JobResponse:
        """Start a job that learns from what waits, and saves a version."""
        serving = self.service.policy(name)
        if serving.frozen:
            raise Refused("conflict", f"policy {name!r} is frozen: it does not learn")
        if serving.job is not None:
            raise Refused("conflict", f"an update of {name!r} runs already: job {serving.job.job_id}")
        wanted, ready = serving.config.training.least if least is None else least, serving.since + len(serving.pending)
        if ready < wanted:
            raise Refused("conflict", f"{ready} outcomes since the last version; an update takes at least {wanted}")
        job = schema.JobResponse(job_id=f"job-{uuid.uuid4().hex[:12]}", policy=name, kind="update", state="running")
        self.jobs[job.job_id], self._done[job.job_id] = job, asyncio.Event()
        while len(self.jobs) > JOBS:
            self._done.pop(next(iter(self.jobs)))
            self.jobs.pop(next(iter(self.jobs)))
        serving.job = job
        serving.wake.set()
        return job

    def _set_done(self, job: schema.JobResponse) -> None:
        if job.job_id in self._done:
            self._done[job.job_id].set()

    async def finished(self, job: schema.JobResponse) -> schema.JobResponse:
        """Wait for a job and return it."""
        await self._done[job.job_id].wait()
        return job

    def job(self, id: str) -> schema.JobResponse:
        if id not in self.jobs:
            raise Refused("unknown", f"there is no job {id!r}")
        return self.jobs[id]

    def version_list(self, name: str) -> schema.VersionList:
        """Return all versions, newest first."""
        serving = self.service.policy(name)
        known = {e.body["version"]: e for e in self.store.reader.latest("version", 100_000, tag=serving.key)}
        versions = [
            schema.Version(
                version=number,
                created_at=known[number].t if number in known else 0.0,
                samples=known[number].body["samples"] if number in known else 0,
                live=number == serving.version,
                metrics=known[number].body["metrics"] if number in known else {},
            )
            for number in reversed(serving.versions.numbers)
        ]
        return schema.VersionList(versions=versions)

    async def promote(self, name: str, new: schema.PromotionBody) -> schema.PolicyResponse:
        """Use a version for all decisions, or for a share of them (canary)."""
        serving = self.service.policy(name)
        chooser = self._chooser(serving, new.version)
        if new.gate:
            evaluation = await self.evaluate(name, schema.NewEvaluation(version=new.version))
            if not evaluation.enough or evaluation.dr.low < evaluation.logged.value - 0.01 * np.ptp(
                serving.config.reward_range
            ):
                why = "too little was logged" if not evaluation.enough else "it may be worse"
                raise Refused(
                    "conflict",
                    f"version {new.version} was not promoted: {why}; its DR lower bound is {evaluation.dr.low:.4f}",
                )
        if new.share < 1.0:
            serving.canary = (new.version, new.share, chooser)
        else:
            if serving.versions.live != new.version:
                serving.versions.promote(new.version, "promoted")
            self._go_live(serving, new.version, chooser)
        return describe(serving)

    async def rollback(self, name: str) -> schema.PolicyResponse:
        """Return to the version that was live before."""
        serving = self.service.policy(name)
        try:
            number = serving.versions.rollback()
        except DecisionError as why:
            raise Refused("conflict", str(why)) from why
        self._go_live(serving, number, self._chooser(serving, number))
        return describe(serving)

    def _go_live(self, serving: ServedPolicy, number: int, chooser: ReplayChooser) -> None:
        # The newest version is the one that learns on; an older one decides as it was saved until it is replaced.
        serving.pinned = None if number == serving.newest else chooser
        serving.version, serving.canary = number, None

    def _chooser(self, serving: ServedPolicy, number: int) -> ReplayChooser:
        try:
            return version_chooser(serving, number)
        except CheckpointError as why:
            kind = "unknown" if number not in serving.versions.numbers else "conflict"
            raise Refused(kind, f"version {number} of {serving.config.name!r}: {why}") from why

    async def checkpoint(self, policy: str, new: schema.NewCheckpoint) -> schema.CheckpointResponse:
        """Give a version a permanent name, by default `<policy>-<version>`."""
        serving = self.service.policy(policy)
        version = serving.version if new.version is msgspec.UNSET else new.version
        self._chooser(serving, version)
        id = f"{policy}-{version}" if new.name is msgspec.UNSET else new.name
        known = self.store.journal.get("checkpoint", id)
        if known is not None and (known.tag, known.body["version"]) != (serving.key, version):
            raise Refused("conflict", f"checkpoint {id!r} names version {known.body['version']} of {known.tag!r}")
        response = schema.CheckpointResponse(
            checkpoint_id=id, policy=policy, version=version, created_at=self.service.clock()
        )
        await self.store.write(Entry(kind="checkpoint", id=id, tag=serving.key, body=msgspec.to_builtins(response)))
        return response

    async def activate_checkpoint(self, id: str) -> schema.PolicyResponse:
        """Make the version of a checkpoint live."""
        try:
            msgspec.convert(id, schema.Id)
        except msgspec.ValidationError as why:
            raise Refused("invalid", f"{id[:80]!r} is not a valid checkpoint id: {why}", pointer="/") from None
        entry = self.store.journal.get("checkpoint", id)
        if entry is None or entry.tag not in self.service.keys:
            raise Refused("unknown", f"there is no checkpoint {id!r}")
        name = self.service.keys[entry.tag].config.name
        return await self.promote(name, schema.PromotionBody(version=entry.body["version"]))

    async def evaluate(self, name: str, new: schema.NewEvaluation) -> schema.OffPolicy:
        """Estimate what another version would have earned on the logged decisions."""
        serving = self.service.policy(name)
        chooser, log = self._chooser(serving, new.version), serving.learner.log.latest(new.last)
        if len(log) < 10:
            raise Refused("conflict", f"{len(log)} finished decisions are logged; an evaluation takes at least 10")
        result = await asyncio.get_running_loop().run_in_executor(self.service.workers, estimate, chooser, log)
        low, high = serving.config.reward_range

        def scaled(value: Estimate) -> schema.EstimateResponse:
            numbers = (low + x * (high - low) for x in (value.value, value.low, value.high))
            return schema.EstimateResponse(**dict(zip(("value", "low", "high"), numbers, strict=True)))

        return schema.OffPolicy(
            version=new.version,
            **{name: scaled(getattr(result, name)) for name in ("logged", "ips", "snips", "dr")},
            effective_sample_size=result.effective_sample_size,
            decisions=result.decisions,
            enough=result.enough,
        )

    async def explain(self, id: str) -> schema.Explained:
        """Explain a decision: its distribution, the learned part, and the rewards of similar decisions."""
        serving, waiting = self.service.decision(id)
        entry = self.store.journal.get("decision", id)
        assert entry is not None
        record, _ = read_decision(entry, serving)
        places = entry.body["places"] or list(range(entry.body["count"]))
        names = entry.body["candidates"] or serving.config.actions[: entry.body["count"]]
        explanation, at = serving.agent.explain(record, NEAREST + 1), record.choice.at
        return schema.Explained(
            decision=waiting.answered,
            distribution=spread_over(record.choice.probabilities, places, len(names)).clip(0.0, 1.0).tolist(),
            names=list(names),
            prior=min(1.0, max(0.0, float(record.choice.prior[at]))),
            learned=float(record.choice.learned[at]),
            exploration=min(1.0, max(0.0, explanation.exploration)),
            reward=None if waiting.answered.abstained else waiting.final,
            nearest=[
                schema.PastResponse(
                    decision_id=n.id, name=n.name, reward=self._reward(serving, n.reward), likeness=n.similarity
                )
                for n in explanation.nearest
                if n.id != id
            ][:NEAREST],
        )

    def _reward(self, serving: ServedPolicy, unit: float) -> float:
        low, high = serving.config.reward_range
        return low + unit * (high - low)


def estimate(chooser: ReplayChooser, log: Logged) -> OffPolicyEvaluation:
    """Return the estimates of a policy on a log, with a model of the same kind, fitted on the other half of the log."""
    count, chances = len(log), chooser.probabilities(log)
    predicted, expected = np.zeros(count), np.zeros(count)
    # Alternating, not first and second half: rewards that drift over time would differ between the halves.
    fold = np.arange(count) % 2
    for half in (0, 1):
        model = ReplayChooser(chooser.dim, chooser.likeness, config=chooser.config)
        for i in np.flatnonzero(fold != half):
            model.learn([[_experience(log, int(i))]])
        use = np.flatnonzero(fold == half)
        values = model.predict(log)[use]
        predicted[use] = values[np.arange(len(use)), log.at[use]]
        expected[use] = (chances[use] * values).sum(axis=1)
    taken = chances[np.arange(count), log.at]
    return offpolicy.evaluate(log.reward, log.probability, taken, predicted, expected)


def _experience(log: Logged, i: int) -> Experience:
    valid = log.valid[i]
    scene = Scene(x=log.x[i], option=log.option[i][valid], cosine=log.cosine[i][valid])
    nothing = np.zeros(0, np.float32)
    choice = OptionChoice(at=int(log.at[i]), probability=float(log.probability[i]), probabilities=nothing)
    return Experience(scene=scene, choice=choice, reward=float(log.reward[i]))
