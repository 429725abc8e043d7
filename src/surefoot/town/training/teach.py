"""Runs that begin with a teacher: a clone of the script or of samples, and schedules of cloning and PPO."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from surefoot.cli.usage import Usage

if TYPE_CHECKING:
    from surefoot.cli.verbs.town.train import TownTrainArgs
    from surefoot.data.replayset import ReplayDataset
    from surefoot.data.trajectory import Recording
    from surefoot.town.scenarios.scenario import Scenario
    from surefoot.train.algorithms.anneal import Stage, StageResult
    from surefoot.train.run import Run
    from surefoot.train.training import Training


def teach(
    args: TownTrainArgs, scenario: Scenario, training: Training, dataset: ReplayDataset | None
) -> tuple[Run, int]:
    """The run that bc or anneal leaves, closed, and the exit code."""
    from surefoot.train.run import create_run
    from surefoot.train.rundir.rundir import new_run_dir, runs_root

    recording = _recording(args, scenario, dataset, training.spec.seed)
    directory = new_run_dir(training.spec.env, training.spec.seed, root=runs_root(args.runs), name=args.name)
    run = create_run(directory, training.spec, training=training, command=["surefoot", *sys.argv[1:]])
    try:
        anneals = args.chosen_mode(scenario) == "anneal"
        code = _anneal(args, run, training, recording, scenario) if anneals else _clone(args, run, training, recording)
    except BaseException as error:
        run.close("error", str(error))
        raise
    run.save()
    run.close("interrupted")
    return run, code


def _recording(args: TownTrainArgs, scenario: Scenario, dataset: ReplayDataset | None, seed: int) -> Recording:
    from surefoot.town.sim.town_loop import record_behaviour
    from surefoot.town.training.capture import trajectories_of

    if dataset is not None:
        return trajectories_of(dataset)
    return record_behaviour(scenario, "script", args.bc_episodes, seed=seed, variant=args.observations)


def _clone(args: TownTrainArgs, run: Run, training: Training, recording: Recording) -> int:
    import torch

    from surefoot.train.algorithms.clone import CloneConfig, clone

    config = CloneConfig(epochs=args.epochs or 30, gamma=training.spec.ppo.gamma)
    generator = torch.Generator().manual_seed(training.spec.seed)
    best = max(
        clone(training.policy, recording, config, generator=generator, device=training.device),
        key=lambda report: report.agreement or 0.0,
    )
    told = f"cloned {len(recording.episodes)} episodes, {recording.steps:,} steps: agrees in {best.agreement or 0:.1%}"
    run.recorder.event("cloned", told)
    print(f"{run.directory.name}: {told}; `surefoot resume {run.directory.name}` goes on with PPO")
    return 0


def _anneal(args: TownTrainArgs, run: Run, training: Training, recording: Recording, scenario: Scenario) -> int:
    from surefoot.town.training.policy import measure_policy
    from surefoot.train.algorithms.anneal import AnnealRules, anneal, verdict
    from surefoot.train.evaluate import EVAL_SEED_OFFSET

    seed = training.spec.seed + EVAL_SEED_OFFSET

    def score() -> float:
        found = measure_policy(
            training.policy, scenario, 32, seed=seed, variant=args.observations, central=args.central
        )
        return float(found["return"].mean())

    def told(report: Any) -> None:
        run.record(report, training.collector.episodes.take_fresh())

    run.labels |= {"data_mode": "rollout"}
    stages, rules = stages_of(args.anneal_schedule, args.epochs), AnnealRules(accuracy=args.anneal_accuracy)
    results: list[StageResult] = []
    for result in anneal(training, recording, stages, rules, score=score, told=told):
        results.append(result)
        run.labels["anneal_stage"] = result.mode
        said = f"accuracy {result.accuracy:.3f}" if result.accuracy is not None else f"loss {result.loss:.4f}"
        why = " ".join(result.reasons)
        print(f"stage {result.cycle} {result.mode}: {result.status}  {said}  score {result.score:.3f} {why}")
    status = verdict(results)
    whole = {"status": status, "stages": [result.to_json() for result in results]}
    (run.directory.path / "anneal_results.json").write_text(json.dumps(whole, indent=2) + "\n", "utf-8")
    print(f"{run.directory.name}: anneal {status}")
    return {"PASS": 0, "HOLD": 1, "FAIL": 2}[status] if args.anneal_exit_on_failure else 0


def stages_of(text: str, epochs: int | None = None) -> list[Stage]:
    """bc:30,ppo:20 as stages; `epochs` replaces the number of every stage of PPO."""
    from surefoot.errors import ConfigError
    from surefoot.train.algorithms.anneal import Stage

    stages: list[Stage] = []
    for part in text.split(","):
        mode, _, count = part.strip().partition(":")
        if mode not in ("bc", "ppo") or not count.isdigit():
            raise Usage(f"--anneal-schedule has {part!r}; stages are MODE:EPOCHS, such as bc:30,ppo:20")
        try:
            stages.append(Stage(mode=mode, epochs=epochs if epochs is not None and mode == "ppo" else int(count)))
        except ConfigError as why:
            raise Usage(str(why)) from why
    return stages
