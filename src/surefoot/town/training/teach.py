"""Training with a teacher: clone the script or samples, or follow a schedule of cloning and PPO."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

import torch

from surefoot.data.replayset import ReplayDataset
from surefoot.data.trajectory import Recording
from surefoot.errors import ConfigError
from surefoot.learn.report import UpdateReport
from surefoot.town.scenarios.scenario import Scenario
from surefoot.town.sim.town_loop import record_behaviour
from surefoot.town.training.capture import trajectories_of
from surefoot.town.training.measure import measure_policy
from surefoot.train.algorithms.anneal import AnnealRules, Stage, StageResult, anneal
from surefoot.train.algorithms.clone import CloneConfig, CloneReport, clone
from surefoot.train.evaluate import EVAL_SEED_OFFSET
from surefoot.train.training import Training

# Episodes per score of an anneal stage: the standard error is a sixth of the deviation, in a second or two.
SCORE_EPISODES = 32


def teacher_recording(
    scenario: Scenario,
    dataset: ReplayDataset | None = None,
    *,
    episodes: int = 64,
    seed: int,
    variant: str | None = None,
) -> Recording:
    """Return the episodes to learn from: the samples of `dataset`, or (None) episodes of the script."""
    if dataset is not None:
        return trajectories_of(dataset)
    return record_behaviour(scenario, "script", episodes, seed=seed, variant=variant)


def clone_town(training: Training, recording: Recording, *, epochs: int = 30) -> CloneReport:
    """Clone `recording` into the training's policy; return the report of the epoch with the highest agreement."""
    config = CloneConfig(epochs=epochs, gamma=training.spec.ppo.gamma)
    generator = torch.Generator().manual_seed(training.spec.seed)
    reports = clone(training.policy, recording, config, generator=generator, device=training.device)
    return max(reports, key=lambda report: report.agreement or 0.0)


def anneal_town(
    training: Training,
    scenario: Scenario,
    recording: Recording,
    stages: Sequence[Stage],
    rules: AnnealRules | None = None,
    *,
    on_update: Callable[[UpdateReport], None] = lambda report: None,
) -> Generator[StageResult]:
    """Run the stages in turn and yield the result of each; the score is the mean return in unseen episodes."""
    kwargs, seed = training.spec.env_kwargs, training.spec.seed + EVAL_SEED_OFFSET

    def score() -> float:
        measures = measure_policy(
            training.policy,
            scenario,
            SCORE_EPISODES,
            seed=seed,
            variant=kwargs.get("variant"),
            central=bool(kwargs.get("central")),
        )
        return float(measures["return"].mean())

    return anneal(training, recording, stages, rules, score=score, on_update=on_update)


def parse_stages(text: str, epochs: int | None = None) -> list[Stage]:
    """Return the stages of "bc:30,ppo:20"; `epochs` replaces the number of every PPO stage."""
    stages: list[Stage] = []
    for part in text.split(","):
        mode, _, count = part.strip().partition(":")
        if mode not in ("bc", "ppo") or not count.isdigit():
            raise ConfigError(f"--anneal-schedule has {part!r}; write stages as MODE:EPOCHS, such as bc:30,ppo:20")
        stages.append(Stage(mode=mode, epochs=epochs if epochs is not None and mode == "ppo" else int(count)))
    return stages
