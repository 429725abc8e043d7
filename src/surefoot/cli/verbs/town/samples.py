"""Scenarios, options and replay samples that the verbs of `surefoot town` read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

if TYPE_CHECKING:
    from surefoot.data.replayset import ReplayDataset
    from surefoot.telemetry.writer import Mirror
    from surefoot.town.scenarios.scenario import Scenario

ScenarioName = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="SCENARIO")]


@dataclass(frozen=True, kw_only=True)
class TownOptions:
    """Keys of --set that concern the run, replay, cloning and annealing rather than PPO."""

    observations: Literal["features", "hybrid", "full", "compact"] | None = None
    """Observations of the agents (default: the scenario's)."""
    central: bool = False
    """Use one critic that sees the observations of all agents (MAPPO)."""
    auto_seed_agents: bool = False
    """Add two agents and a stove to a scenario without agents."""
    rollout_save_dir: str | None = None
    """After training, play one episode and write its samples to this directory."""
    eval_every: int | None = None
    """Agent steps between evaluations (default: ten evaluations per run; 0 disables them)."""
    checkpoint_every: int | None = None
    """Agent steps between checkpoints (default: twenty checkpoints per run)."""
    replay_share: float = 0.5
    """mixed: share of updates from replayed data, between 0 and 1."""
    replay_recent: int = 4
    """mixed without samples: number of earlier rollouts that are kept for replay."""
    replay_batch_size: int = 1
    """Samples per update."""
    replay_shuffle: bool = False
    """Shuffle the samples for each pass."""
    replay_seed: int = 0
    """Seed for `replay_shuffle`."""
    replay_drop_last: bool = False
    """Leave out an incomplete batch at the end of a pass."""
    replay_streaming: bool = False
    """Read samples when they are needed instead of all at the start."""
    replay_meta: str | None = None
    """Metadata of a single sample (default: the sample's name with .json)."""
    max_lag: int | None = None
    """Leave out data of this run that is more than this many updates old."""
    min_sample_size: float = 0.05
    """Leave out data whose effective sample size under the importance ratio is below this share."""
    rho_clip: float = 1.0
    """Upper limit of the importance weights of value corrections (V-trace)."""
    bc_episodes: int = 64
    """bc and anneal without samples: episodes of the script to record."""
    anneal_schedule: str = "bc:30,ppo:20,ppo:20"
    """anneal: stages as MODE:EPOCHS."""
    anneal_accuracy: float = 0.9
    """anneal: share of steps in which the clone must choose the recorded action."""
    anneal_exit_on_failure: bool = False
    """anneal: exit with code 2 on FAIL and 1 on HOLD."""
    anneal_log_dir: str | None = None
    """anneal: write the results to this directory too."""
    ppo_log_frequency: int = 1
    """--ppo-log: write every n-th epoch."""
    ppo_log_max_entries: int = 0
    """--ppo-log: after this many lines rename the file to FILE.1, .2, … and start a new one; 0 never does."""


def read_samples(path: Path, options: TownOptions) -> ReplayDataset:
    """Return one sample (.npz), the samples of a manifest, or those of all manifests in a directory."""
    from surefoot.data.replayset import ReplayDataset, ReplayEntry, read_manifest
    from surefoot.errors import ReplayError

    manifests = [path]
    if path.is_dir():
        manifests = [file for end in ("json", "yaml") for file in sorted(path.rglob(f"*_manifest.{end}"))]
        if not manifests:
            raise ReplayError(f"{path} has no *_manifest.json; `surefoot town capture` writes one")
    if path.suffix == ".npz":
        entries = [ReplayEntry(path, None if options.replay_meta is None else Path(options.replay_meta))]
    else:
        entries = [entry for manifest in manifests for entry in read_manifest(manifest).entries]
    return ReplayDataset(
        entries,
        batch_size=options.replay_batch_size,
        shuffle=options.replay_shuffle,
        seed=options.replay_seed,
        drop_last=options.replay_drop_last,
        streaming=options.replay_streaming,
    )


def flat_mirrors(path: Path | None, options: TownOptions) -> list[Mirror]:
    """Return the writer of the flat log at `path`, if there is to be one."""
    from surefoot.compat.townlet.record_writer import FlatMirror

    if path is None:
        return []
    return [FlatMirror(path, every=options.ppo_log_frequency, max_lines=options.ppo_log_max_entries)]


def load(name: str, auto_seed_agents: bool = False) -> Scenario:
    """Return the scenario of a name, a file, or the directory of a run."""
    from surefoot.town.scenarios.scenario import Scenario, load_scenario

    path = Path(name)
    if (path / "run.json").is_file():
        from surefoot.train.rundir.rundir import RunDir

        return Scenario.from_json(RunDir(path).read_header()["spec"]["env_kwargs"]["scenario"])
    return load_scenario(name, auto_seed_agents=auto_seed_agents)


def print_samples(dataset: ReplayDataset) -> int:
    """Print the number of samples and their statistics; return the exit code."""
    metrics = dataset.baseline_metrics
    print(f"{len(dataset.source)} samples in {len(dataset)} batches are valid; pass --train-ppo to learn from them")
    names = ("timesteps", "reward_mean", "reward_sum", "log_prob_mean", "rivalry_max_max", "rivalry_avoid_count_mean")
    for name in names:
        if name in metrics:
            print(f"  {name:<26} {metrics[name]:.4g}")
    return 0
