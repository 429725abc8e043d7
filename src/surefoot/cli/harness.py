"""Towns trained by the engine: what `surefoot town train` does, as Python. The seed's names, thin over the same loop."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from surefoot.cli.worlds import TOWN, town_maker
from surefoot.data.replay import ReplaySample, read_sample
from surefoot.data.replayset import ReplayDataset, RolloutBuffer, read_manifest, samples_of
from surefoot.data.trajectory import Recording, Trajectory
from surefoot.envs.api import View
from surefoot.errors import ConfigError, ReplayError
from surefoot.learn.report import UpdateReport
from surefoot.nets.policy import Policy, Seen
from surefoot.telemetry.flat import FlatMirror
from surefoot.town.loop import play_towns, record_behaviour
from surefoot.town.scenario import Scenario, load_scenario
from surefoot.town.world import TownWorld
from surefoot.train.anneal import DEFAULT_STAGES, AnnealRules, Stage, StageResult, anneal
from surefoot.train.clone import CloneConfig, CloneReport, clone
from surefoot.train.collect import Collector
from surefoot.train.cycle import Cycles
from surefoot.train.evaluate import EVAL_SEED_OFFSET, chooser
from surefoot.train.offpolicy import ReplayRules
from surefoot.train.spec import RunSpec, make_spec
from surefoot.train.training import Training, load_weights


def town_spec(
    scenario: Scenario,
    *,
    settings: Mapping[str, Any] | None = None,
    steps: int | None = None,
    towns: int | None = None,
    rollout_ticks: int | None = None,
    variant: str | None = None,
    central: bool = False,
    **fixed: Any,
) -> RunSpec:
    """The whole of a run: the preset for towns, what the scenario says, then `settings` under any names."""
    rules = scenario.training
    streams = (towns or rules.towns) * len(scenario.agents)
    chosen: dict[str, Any] = {
        "envs": streams,
        "steps": rollout_ticks or rules.rollout_ticks,
        **rules.settings,
        **({"critic_only": "state"} if central else {}),
        **(settings or {}),
    }
    kwargs: dict[str, Any] = {"scenario": scenario.to_json()}
    kwargs |= {"variant": variant} if variant is not None else {}
    kwargs |= {"central": True} if central else {}
    env = TOWN + scenario.name
    probe = town_maker(env, kwargs)(1)
    spec = make_spec(env, probe.action, settings=chosen, total_steps=steps or rules.steps, env_kwargs=kwargs, **fixed)
    if spec.ppo.envs % len(scenario.agents):
        raise ConfigError(
            f"envs is {spec.ppo.envs}; it counts agents, {len(scenario.agents)} of which make a town here"
        )
    return spec


def town_training(spec: RunSpec) -> Training:
    """Worlds, policy, collector and learner of a town's spec."""
    return Training(spec, make=town_maker(spec.env, spec.env_kwargs))


def town_world(training: Training | Cycles) -> TownWorld:
    """The training's own towns."""
    assert isinstance(training.world, TownWorld)
    return training.world


class PolicyRuntime:
    """A policy that decides in a town, and says how likely and how good it found what it did."""

    def __init__(self, policy: Policy, *, seed: int = 0, deterministic: bool = False, device: str = "cpu") -> None:
        self.policy, self.deterministic, self.device = policy, deterministic, torch.device(device)
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.log_prob = self.value = np.zeros(0, np.float32)
        """Of the last decision, one a stream."""

    @torch.no_grad()
    def __call__(self, world: TownWorld, view: View) -> np.ndarray:
        """One action a stream."""
        mask = None if view.action_mask is None else torch.from_numpy(view.action_mask).to(self.device)
        obs = {name: torch.from_numpy(x).to(self.device) for name, x in view.obs.items()}
        seen = Seen(obs=obs, action_mask=mask, context=self.policy.initial_context(world.num_envs))
        out = self.policy.act(seen, generator=self.generator, deterministic=self.deterministic)
        self.log_prob, self.value = out.log_prob.cpu().numpy(), out.value.cpu().numpy()
        return self.policy.env_action(out.action.cpu().numpy())


def measure_policy(
    policy: Policy,
    scenario: Scenario,
    episodes: int = 64,
    *,
    seed: int,
    variant: str | None = None,
    central: bool = False,
) -> dict[str, np.ndarray]:
    """{measure: [episodes]} of a policy's likeliest actions, in towns that training never saw."""
    world = TownWorld(scenario, min(episodes, 64), variant=variant, central=central)
    choose = chooser(policy, world.num_envs, seed=seed, deterministic=True, device=torch.device("cpu"))
    start = np.ones(world.num_envs, np.bool_)
    return play_towns(world, lambda world, view: choose(view, start), episodes, seed=seed)


def capture_samples(
    policy: Policy,
    scenario: Scenario,
    ticks: int,
    *,
    seed: int,
    towns: int = 1,
    variant: str | None = None,
    version: int = 0,
) -> RolloutBuffer:
    """What a policy did in `ticks` ticks, with its own log-probs and values: one sample an agent and stretch."""
    if ticks < 1:
        raise ConfigError(f"ticks is {ticks}; a capture needs at least 1")
    world = TownWorld(scenario, towns, variant=variant)
    collector = Collector(world, policy, steps=ticks, gamma=0.99, seed=seed)
    rollout = collector.collect(version)
    return _buffer(rollout, world, ticks, {"seed": seed, "policy_hash": policy_hash(policy), "behaviour": "policy"})


def capture_behaviour(
    scenario: Scenario, behaviour: str, ticks: int, *, seed: int, towns: int = 1, variant: str | None = None
) -> RolloutBuffer:
    """The same of the script or of chance; a script's log-probs are 0, for it always does what it does."""
    from surefoot.data.rollout import Rollout
    from surefoot.town.loop import decider

    world = TownWorld(scenario, towns, variant=variant)
    decide, view = decider(world, behaviour, seed), world.reset(seed)
    rows: list[dict[str, np.ndarray]] = []
    for _ in range(ticks):
        action = decide(world, view)
        mask = view.action_mask
        assert mask is not None
        likely = -np.log(mask.sum(axis=1)) if behaviour == "random" else np.zeros(world.num_envs)
        step = world.step(action)
        rows.append(
            {
                **{f"obs.{name}": x for name, x in view.obs.items()},
                "action": np.asarray(action, np.int64),
                "log_prob": likely.astype(np.float32),
                "reward": step.reward.astype(np.float32),
                "terminated": step.terminated,
                "truncated": step.truncated,
                "valid": step.valid,
                "action_mask": mask,
            }
        )
        view = step.view
    whole = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    zeros, ended = np.zeros_like(whole["log_prob"]), whole["terminated"] | whole["truncated"]
    rollout = Rollout(
        obs={name.removeprefix("obs."): x for name, x in whole.items() if name.startswith("obs.")},
        action=whole["action"],
        log_prob=whole["log_prob"],
        value=zeros,
        next_value=zeros,
        reward=whole["reward"],
        terminated=whole["terminated"],
        truncated=whole["truncated"],
        start=np.concatenate([np.ones_like(ended[:1]), (ended | ~whole["valid"])[:-1]]),
        valid=whole["valid"],
        policy_version=np.zeros(zeros.shape, np.int64),
        action_mask=whole["action_mask"],
    )
    return _buffer(rollout, world, ticks, {"seed": seed, "policy_hash": None, "behaviour": behaviour})


def _buffer(rollout: Any, world: TownWorld, ticks: int, about: Mapping[str, Any]) -> RolloutBuffer:
    scenario = world.scenario
    meta = {
        "variant": world.variant,
        "map_channels": [] if world.maps is None else world.maps.channels,
        "embedding_slot": None,
        "social_context": {"ties": scenario.rivalry.max_ties},
        "capture_metadata": {
            "config_id": scenario.name,
            "scenario_name": scenario.name,
            "scenario_description": scenario.description,
            "ticks": ticks,
            "towns": world.towns,
            "scenario": scenario.to_json(),
            **about,
        },
    }
    made = RolloutBuffer()
    agents = [resident.id for resident in scenario.agents]
    made.extend(
        samples_of(rollout, agents=agents, feature_names=world.feature_names, meta=meta, actions=scenario.actions)
    )
    made.record_events(world.take_counts())
    made.set_tick_count(ticks)
    return made


def policy_hash(policy: Policy) -> str:
    """sha256 of the weights, so that a sample says who made it."""
    import hashlib

    whole = hashlib.sha256()
    for name, x in sorted(policy.state_dict().items()):
        whole.update(name.encode())
        whole.update(x.detach().cpu().contiguous().numpy().tobytes())
    return whole.hexdigest()


def trajectories_of(dataset: ReplayDataset) -> Recording:
    """Samples as episodes to be cloned; a sample has no look behind its last step, so that step is left out."""
    from surefoot.data.spaces import Box, Discrete

    made: list[Trajectory] = []
    for number in range(len(dataset.source)):
        sample = dataset.sample(number)
        if sample.steps < 2:
            continue
        obs = {"features": sample.features} | ({"map": sample.map} if sample.map.shape[1] else {})
        made.append(
            Trajectory(
                obs=obs,
                action=sample.actions[:-1],
                reward=sample.rewards[:-1].astype(np.float64),
                terminated=False,
                truncated=False,
                action_mask=None if sample.action_masks is None else sample.action_masks[:-1],
            )
        )
    if not made:
        raise ReplayError("no sample has two steps or more, so there is nothing to clone")
    first = dataset.first
    observation = {"features": Box(first.features.shape[1:])} | (
        {"map": Box(first.map.shape[1:])} if first.map.shape[1] else {}
    )
    return Recording(env=dataset.label, observation=observation, action=Discrete(first.action_dim), episodes=made)


class TrainingHarness:
    """One town and one policy, kept over all calls: captured from, trained on samples or live, cloned into, annealed.

    `scenario` is a shipped name, a YAML file or a Scenario. Every cycle goes on with the same weights and optimiser.
    """

    def __init__(
        self,
        scenario: Scenario | str | Path,
        *,
        settings: Mapping[str, Any] | None = None,
        variant: str | None = None,
        towns: int | None = None,
        rollout_ticks: int | None = None,
        auto_seed_agents: bool = False,
    ) -> None:
        loaded = (
            scenario if isinstance(scenario, Scenario) else load_scenario(scenario, auto_seed_agents=auto_seed_agents)
        )
        self.scenario, self.variant = loaded, variant
        spec = town_spec(
            loaded, settings=settings, variant=variant, towns=towns, rollout_ticks=rollout_ticks, eval_every=0
        )
        self.training = town_training(spec)
        self.cycle = 0

    @property
    def policy(self) -> Policy:
        """What learns."""
        return self.training.policy

    def capture_rollout(
        self,
        ticks: int | None = None,
        *,
        output_dir: Path | str | None = None,
        prefix: str = "rollout_sample",
        towns: int = 1,
    ) -> RolloutBuffer:
        """Let the policy of now live for `ticks` ticks; written to `output_dir` if one is given."""
        seed = self.training.spec.seed + 7919 * (1 + self.cycle)
        version = self.training.learner.policy_version
        made = capture_samples(
            self.policy,
            self.scenario,
            ticks or self.scenario.ticks,
            seed=seed,
            towns=towns,
            variant=self.variant,
            version=version,
        )
        self.cycle += 1
        if output_dir is not None:
            made.save(output_dir, prefix)
        return made

    def run_replay(self, sample: Path | str, meta: Path | str | None = None) -> ReplaySample:
        """Read one sample, or say what is wrong with it."""
        return read_sample(sample, meta)

    def run_replay_dataset(self, manifest: Path | str, **options: Any) -> ReplayDataset:
        """All samples of a manifest."""
        return ReplayDataset(read_manifest(manifest).entries, **options)

    def run_ppo(
        self,
        dataset: ReplayDataset | Path | str | None = None,
        *,
        epochs: int = 1,
        log_path: Path | str | None = None,
        replay: float | None = None,
        rules: ReplayRules | None = None,
    ) -> list[UpdateReport]:
        """PPO on samples (`epochs` passes), live (`epochs` updates), or both where `replay` is a share between 0 and 1."""
        if isinstance(dataset, Path | str):
            dataset = self.run_replay_dataset(dataset)
        share = replay if replay is not None else 0.0 if dataset is None else 1.0
        cycles = Cycles(self.training, replay=share, dataset=dataset, rules=rules or ReplayRules(min_sample_size=0.0))
        cycles.cycle = self.cycle
        if share == 1.0 and dataset is not None:
            epochs *= len(dataset)
        reports: list[UpdateReport] = []
        with _Log(log_path, self.training.spec, cycles.mode) as log:
            for turn in range(epochs):
                report = cycles.update_from_replay(turn) if share == 1.0 else cycles.update()
                reports.append(report)
                log.add(report, self.training.env_steps)
        self.cycle = max(self.cycle, cycles.cycle)
        return reports

    def run_bc_training(
        self, dataset: ReplayDataset | Recording | Path | str | None = None, *, epochs: int = 30
    ) -> CloneReport:
        """Clone samples, recorded episodes, or (None) the script's; the last report. PPO goes on from these weights."""
        recording = self._recording(dataset)
        generator = torch.Generator().manual_seed(self.training.spec.seed)
        config = CloneConfig(epochs=epochs, gamma=self.training.spec.ppo.gamma)
        reports = list(clone(self.policy, recording, config, generator=generator, device=self.training.device))
        return max(reports, key=lambda report: report.agreement or 0.0)

    def run_anneal(
        self,
        dataset: ReplayDataset | Recording | Path | str | None = None,
        *,
        stages: Iterable[Stage] = DEFAULT_STAGES,
        rules: AnnealRules | None = None,
        log_path: Path | str | None = None,
    ) -> list[StageResult]:
        """A schedule of cloning and PPO; results of all stages that ran."""
        with _Log(log_path, self.training.spec, "rollout") as log:
            told = anneal(
                self.training,
                self._recording(dataset),
                list(stages),
                rules,
                score=lambda: float(self.measure(32)["return"].mean()),
                told=lambda report: log.add(report, self.training.env_steps),
            )
            return list(told)

    def measure(self, episodes: int = 64, *, seed: int | None = None) -> dict[str, np.ndarray]:
        """The scenario's measures of the policy of now."""
        chosen = self.training.spec.seed + EVAL_SEED_OFFSET if seed is None else seed
        central = bool(self.training.spec.env_kwargs.get("central"))
        return measure_policy(self.policy, self.scenario, episodes, seed=chosen, variant=self.variant, central=central)

    def load(self, weights: Mapping[str, Any]) -> None:
        """Put saved weights in."""
        load_weights(self.policy, dict(weights))

    def _recording(self, dataset: ReplayDataset | Recording | Path | str | None) -> Recording:
        if isinstance(dataset, Recording):
            return dataset
        if dataset is None:
            return record_behaviour(self.scenario, "script", 64, seed=self.training.spec.seed, variant=self.variant)
        return trajectories_of(dataset if isinstance(dataset, ReplayDataset) else self.run_replay_dataset(dataset))


class _Log:
    """The flat form of telemetry 1.1 for a few updates outside a run; nothing without a path."""

    def __init__(self, path: Path | str | None, spec: RunSpec, mode: str) -> None:
        self.mirror = None if path is None else FlatMirror(path)
        self.mode = mode

    def add(self, report: UpdateReport, env_steps: int) -> None:
        if self.mirror is None:
            return
        from surefoot.telemetry.schema import VERSION, Update

        self.mirror.write(
            Update(
                v=VERSION,
                run="",
                seq=report.update,
                t=time.time(),
                env_steps=env_steps,
                updates=report.update,
                m={**report.metrics(), **report.stats},
                epochs=[epoch.as_dict() for epoch in report.epochs],
                seconds=dict(report.seconds),
                labels={"data_mode": self.mode},
            )
        )

    def __enter__(self) -> _Log:
        return self

    def __exit__(self, *_: object) -> None:
        if self.mirror is not None:
            self.mirror.close()
