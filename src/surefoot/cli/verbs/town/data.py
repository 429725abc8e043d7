"""`surefoot town capture`, `replay`, `samples` and `scenarios`: data and definitions of towns."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import tyro

from surefoot.cli.options import at_least_one, run_directory
from surefoot.cli.usage import Usage
from surefoot.cli.verbs.town.samples import load

if TYPE_CHECKING:
    from surefoot.data.replayset import RolloutBuffer
    from surefoot.town.scenarios.scenario import Scenario

Names = Annotated[tuple[str, ...], tyro.conf.UseAppendAction]


@dataclass(frozen=True, kw_only=True)
class TownCaptureArgs:
    """Run agents for some ticks and record observations, actions and rewards, one sample per agent.

        surefoot town capture queue_conflict -o samples
        surefoot town capture queue_conflict --policy queues --ticks 500 -o samples

    Several scenarios are written to one directory each. Samples of the script are for cloning; samples of a run's policy
    include log-probabilities and can be replayed.
    """

    scenarios: Annotated[
        tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="SCENARIO...", help_behavior_hint="")
    ]
    """Shipped scenarios or YAML files."""
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("captures")
    """Directory to write to."""
    ticks: int | None = None
    """Duration (default: one episode)."""
    policy: str = "script"
    """script, random, idle, or the directory or name of a run."""
    towns: int = 1
    """Number of parallel towns; every agent of every town gives a sample."""
    prefix: str = "rollout_sample"
    """Files are called PREFIX_AGENT_NNN.npz."""
    agent_id: Names = ()
    """Write only samples of this agent; repeatable."""
    observations: Literal["features", "hybrid", "full", "compact"] | None = None
    """Observations to record (default: the scenario's)."""
    no_compress: bool = False
    """Write uncompressed NPZ files."""
    auto_seed_agents: bool = False
    """Add two agents and a stove to a scenario without agents."""
    minari: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Also write complete episodes as this Minari dataset; needs "surefoot[minari]"."""
    seed: int | None = None
    """Random seed (default: the scenario's)."""

    def run(self) -> int:
        from surefoot.errors import ReplayError
        from surefoot.town.sim.town_loop import record_behaviour
        from surefoot.train.device import pin_threads
        from surefoot.train.interop.minari import write_minari

        pin_threads()
        if not self.scenarios:
            raise Usage("no SCENARIO given; `surefoot town scenarios` lists them")
        at_least_one(ticks=self.ticks, towns=self.towns)
        for name in self.scenarios:
            scenario = load(name, self.auto_seed_agents)
            known = [resident.id for resident in scenario.agents]
            captured = self._capture(scenario)
            if unknown := [agent for agent in self.agent_id if agent not in known]:
                raise ReplayError(
                    f"{scenario.name} has no agent {', '.join(unknown)}; its agents are {', '.join(known)}"
                )
            if self.agent_id:
                captured.samples = [sample for sample in captured.samples if sample.meta["agent_id"] in self.agent_id]
            directory = self.out / scenario.name if len(self.scenarios) > 1 else self.out
            manifest = captured.save(directory, self.prefix, compress=not self.no_compress)
            events, intensity = (captured.counts.get(f"queue_conflict_{x}", 0.0) for x in ("events", "intensity_sum"))
            conflicts = f"{events:.0f} queue conflicts, intensity {intensity:.2f}"
            print(
                f"{scenario.name}: {len(captured.samples)} samples of {captured.ticks} ticks → {manifest}; {conflicts}"
            )
            if self.minari is not None:
                if self.policy not in ("script", "random", "idle"):
                    raise Usage(
                        "--minari needs --policy script, random or idle; `surefoot record RUN --minari NAME` is for runs"
                    )
                seed = scenario.seed if self.seed is None else self.seed
                recording = record_behaviour(scenario, self.policy, self.towns, seed=seed, variant=self.observations)
                write_minari(recording, self.minari, algorithm=f"surefoot town {self.policy}")
                print(f"{len(recording.episodes)} episodes → the Minari dataset {self.minari}")
        return 0

    def _capture(self, scenario: Scenario) -> RolloutBuffer:
        from surefoot.town.training.capture import capture_behaviour, capture_samples

        ticks, seed = self.ticks or scenario.ticks, scenario.seed if self.seed is None else self.seed
        if self.policy in ("script", "random", "idle"):
            return capture_behaviour(
                scenario, self.policy, ticks, seed=seed, towns=self.towns, variant=self.observations
            )
        from surefoot.cli.verbs.runs import load_policy

        training, step = load_policy(run_directory(self.policy), "latest", None)
        variant = self.observations or training.spec.env_kwargs.get("variant")
        return capture_samples(
            training.policy, scenario, ticks, seed=seed, towns=self.towns, variant=variant, version=step
        )


@dataclass(frozen=True, kw_only=True)
class TownReplayArgs:
    """Validate a replay sample, or all samples of a manifest, and print their statistics.

    surefoot town replay samples/manifest.json --validate
    """

    sample: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="SAMPLE")]
    """An .npz file, or a manifest in JSON or YAML."""
    meta: Path | None = None
    """Metadata of the sample (default: the .json file beside it)."""
    agent: Names = ()
    """Manifest: read only samples of this agent; repeatable."""
    validate: bool = False
    """Print only whether the samples are valid."""
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        from surefoot.data.replay import read_sample, sample_metrics
        from surefoot.data.replayset import ReplayDataset, read_manifest

        if self.sample.suffix == ".npz":
            samples = [read_sample(self.sample, self.meta)]
        else:
            entries = read_manifest(self.sample, agents=self.agent or None).entries
            dataset = ReplayDataset(entries)
            samples = [dataset.sample(number) for number in range(len(entries))]
        if self.validate:
            print("Sample validation successful." if len(samples) == 1 else f"{len(samples)} samples are valid.")
            return 0
        rows = [{"agent_id": s.meta.get("agent_id"), "sha256": s.digest(), **sample_metrics(s)} for s in samples]
        if self.as_json:
            print(json.dumps(rows if len(rows) > 1 else rows[0], indent=2))
            return 0
        for sample, numbers in zip(samples, rows, strict=True):
            print(
                f"{sample.meta.get('sample_id', self.sample.name)}  agent {numbers['agent_id']}  sha256 {sample.digest()[:12]}"
            )
            for name, value in numbers.items():
                if isinstance(value, float):
                    print(f"  {name:<30} {value:.5g}")
        return 0


@dataclass(frozen=True, kw_only=True)
class TownScenariosArgs:
    """List the shipped scenarios, check a scenario file, or print the JSON Schema of scenario files.

    surefoot town scenarios
    surefoot town scenarios my_town.yaml
    surefoot town scenarios --schema
    """

    file: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="FILE")] = None
    """YAML file or shipped scenario to check; --json prints it."""
    schema: bool = False
    """Print the JSON Schema."""
    as_json: ClassVar[bool] = False

    def run(self) -> int:
        from surefoot.town.scenarios.scenario import load_scenario, scenario_schema, shipped

        if self.schema:
            print(json.dumps(scenario_schema(), indent=2))
            return 0
        if self.file is not None:
            scenario = load_scenario(self.file)
            if self.as_json:
                print(json.dumps(scenario.to_json(), indent=2))
            else:
                print(f"{scenario.name} is valid: {_brief(scenario)}")
            return 0
        for name in shipped():
            print(f"{name:<24} {_brief(load_scenario(name))}")
        return 0


def _brief(scenario: Scenario) -> str:
    agents, objects = len(scenario.agents), len(scenario.objects)
    size = f"{agents} agent{'s' * (agents != 1)}, {objects} object{'s' * (objects != 1)}, {scenario.ticks} ticks"
    return f"{size}. {scenario.description}"


@dataclass(frozen=True, kw_only=True)
class TownSamplesArgs:
    """Copy the shipped samples, their manifest and poc_hybrid.yaml to a directory.

    surefoot town samples -o samples
    """

    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("samples")
    """Directory to write to."""

    def run(self) -> int:
        import shutil

        from surefoot.town.scenarios import scenario

        self.out.mkdir(parents=True, exist_ok=True)
        for path in sorted((Path(scenario.__file__).parent.parent / "samples").iterdir()):
            shutil.copyfile(path, self.out / path.name)
            print(self.out / path.name)
        return 0
