"""`TownTraining`: capture, learn, clone and measure with one policy. `PolicyRuntime`: a policy that acts in a town."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from surefoot.data.replayset import ReplayDataset, RolloutBuffer
from surefoot.data.trajectory import Recording
from surefoot.envs.api import View
from surefoot.learn.report import UpdateReport
from surefoot.nets.policy import Policy, PolicyInput
from surefoot.town.scenarios.scenario import Scenario, load_scenario
from surefoot.town.sim.world import TownWorld
from surefoot.town.training.capture import capture_samples
from surefoot.town.training.measure import measure_policy
from surefoot.town.training.spec import town_spec, town_training
from surefoot.town.training.teach import anneal_town, clone_town, teacher_recording
from surefoot.train.algorithms.anneal import DEFAULT_STAGES, AnnealRules, Stage, StageResult
from surefoot.train.algorithms.clone import CloneReport
from surefoot.train.collect.offpolicy import ReplayRules
from surefoot.train.collect.replay_cycles import Cycles
from surefoot.train.evaluate import EVAL_SEED_OFFSET

# A prime, so that the seeds of captures never meet those of the run's streams, which are consecutive.
CAPTURE_SEED_STEP = 7919


class TownTraining:
    """One town and one policy. Every call continues with the same weights and the same optimiser.

    Args:
        scenario: The name of a shipped scenario, a YAML file, or a `Scenario`.
        settings: Settings under any of their names, such as {"lr": 3e-4}.
        variant: Which observations agents get; None for the scenario's.
        towns: Towns that are stepped side by side; None for the scenario's number.
        rollout_ticks: Ticks of each town between two updates; None for the scenario's.
        auto_seed_agents: Put two agents into a scenario that has none.
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
        if not isinstance(scenario, Scenario):
            scenario = load_scenario(scenario, auto_seed_agents=auto_seed_agents)
        self.scenario, self.variant = scenario, variant
        self.training = town_training(
            town_spec(
                scenario, settings=settings, variant=variant, towns=towns, rollout_ticks=rollout_ticks, eval_every=0
            )
        )
        self.cycle = 0
        """Captures and replayed passes so far."""

    @property
    def policy(self) -> Policy:
        return self.training.policy

    def capture(self, ticks: int | None = None, *, towns: int = 1) -> RolloutBuffer:
        """Let the current policy act for `ticks` ticks (None: one episode) and return the samples."""
        samples = capture_samples(
            self.policy,
            self.scenario,
            ticks or self.scenario.ticks,
            seed=self.training.spec.seed + CAPTURE_SEED_STEP * (1 + self.cycle),
            towns=towns,
            variant=self.variant,
            version=self.training.learner.policy_version,
        )
        self.cycle += 1
        return samples

    def learn(
        self,
        dataset: ReplayDataset | None = None,
        *,
        epochs: int = 1,
        replay: float | None = None,
        rules: ReplayRules | None = None,
        on_update: Callable[[UpdateReport], None] = lambda report: None,
    ) -> list[UpdateReport]:
        """Learn by PPO and return a report per update.

        Args:
            dataset: Samples to learn from; None learns from live towns.
            epochs: Passes over the samples; without samples, updates.
            replay: The share of updates that use the samples, between 0 and 1; None: all with samples, else none.
            rules: When samples are too old to learn from.
            on_update: Called with each report.
        """
        share = replay if replay is not None else 0.0 if dataset is None else 1.0
        cycles = Cycles(self.training, replay=share, dataset=dataset, rules=rules or ReplayRules(min_sample_size=0.0))
        cycles.cycle = self.cycle
        if share == 1.0 and dataset is not None:
            epochs *= len(dataset)
        reports: list[UpdateReport] = []
        for turn in range(epochs):
            reports.append(cycles.update_from_replay(turn) if share == 1.0 else cycles.update())
            on_update(reports[-1])
        self.cycle = max(self.cycle, cycles.cycle)
        return reports

    def clone(self, source: ReplayDataset | Recording | None = None, *, epochs: int = 30) -> CloneReport:
        """Clone samples, recorded episodes, or (None) the script; return the report of the best epoch."""
        return clone_town(self.training, self._recording(source), epochs=epochs)

    def anneal(
        self,
        source: ReplayDataset | Recording | None = None,
        *,
        stages: Sequence[Stage] = DEFAULT_STAGES,
        rules: AnnealRules | None = None,
        on_update: Callable[[UpdateReport], None] = lambda report: None,
    ) -> Generator[StageResult]:
        """Follow a schedule of cloning and PPO; yield the result of each stage."""
        recording = self._recording(source)
        return anneal_town(self.training, self.scenario, recording, stages, rules, on_update=on_update)

    def measure(self, episodes: int = 64, *, seed: int | None = None) -> dict[str, np.ndarray]:
        """Return {measure: [episodes]} of the current policy in unseen episodes."""
        spec = self.training.spec
        return measure_policy(
            self.policy,
            self.scenario,
            episodes,
            seed=spec.seed + EVAL_SEED_OFFSET if seed is None else seed,
            variant=self.variant,
            central=bool(spec.env_kwargs.get("central")),
        )

    def _recording(self, source: ReplayDataset | Recording | None) -> Recording:
        if isinstance(source, Recording):
            return source
        return teacher_recording(self.scenario, source, seed=self.training.spec.seed, variant=self.variant)


class PolicyRuntime:
    """A behaviour for `SimulationLoop` that follows a policy; has the log-prob and value of its last decision, [N] each.

    Args:
        policy: The policy.
        seed: Seed of its samples.
        deterministic: Take the most probable action instead of sampling.
        device: Device of the policy's tensors.
    """

    def __init__(self, policy: Policy, *, seed: int = 0, deterministic: bool = False, device: str = "cpu") -> None:
        self.policy, self.deterministic, self.device = policy, deterministic, torch.device(device)
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self.log_prob = self.value = np.zeros(0, np.float32)

    @torch.no_grad()
    def __call__(self, world: TownWorld, view: View) -> np.ndarray:
        mask = None if view.action_mask is None else torch.from_numpy(view.action_mask).to(self.device)
        obs = {name: torch.from_numpy(x).to(self.device) for name, x in view.obs.items()}
        inputs = PolicyInput(obs=obs, action_mask=mask, context=self.policy.initial_context(world.num_envs))
        out = self.policy.act(inputs, generator=self.generator, deterministic=self.deterministic)
        self.log_prob, self.value = out.log_prob.cpu().numpy(), out.value.cpu().numpy()
        return self.policy.env_action(out.action.cpu().numpy())
