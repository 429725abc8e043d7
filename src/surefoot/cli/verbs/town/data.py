"""`surefoot town capture`, `replay` and `scenarios`: samples out of towns, looked at, and what towns there are."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from surefoot.cli.options import at_least_one, run_directory
from surefoot.cli.usage import Usage
from surefoot.cli.verbs.town.train import load

if TYPE_CHECKING:
    from surefoot.data.replayset import RolloutBuffer
    from surefoot.town.scenarios.scenario import Scenario

Names = Annotated[tuple[str, ...], tyro.conf.UseAppendAction]


@dataclass(frozen=True, kw_only=True)
class TownCaptureArgs:
    """Let agents live for some ticks and write down what they saw, did and got, one sample an agent.

        surefoot town capture queue_conflict -o samples
        surefoot town capture queue_conflict --policy queues --ticks 500 -o lived

    Several scenarios make a suite, each in a directory of its own. Samples of the script are for cloning; samples of a
    run's policy carry its log-probs and can be replayed.
    """

    scenarios: Annotated[tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="SCENARIO...")]
    """Shipped scenarios or YAML files."""
    output: Annotated[Path, tyro.conf.arg(aliases=["-o", "--output-root"])] = Path("captures")
    """Where they are written."""
    ticks: int | None = None
    """How long (default: an episode)."""
    policy: str = "script"
    """script, random, idle, or a run's directory or name."""
    towns: int = 1
    """Towns side by side; each agent of each is a sample."""
    prefix: str = "rollout_sample"
    """Files are PREFIX_AGENT_NNN.npz."""
    agent_id: Annotated[Names, tyro.conf.arg(aliases=["--agent-filter"])] = ()
    """Keep only samples of these agents."""
    observations: Literal["features", "hybrid", "full", "compact"] | None = None
    """What is kept of what agents see (default: the scenario's)."""
    no_compress: bool = False
    """Write plain NPZ."""
    auto_seed_agents: bool = False
    """Put two agents into a scenario that has none."""
    minari: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Also write whole episodes as this Minari dataset; needs surefoot[minari]."""
    seed: int | None = None
    """Default: the scenario's."""
    runs: Path | None = None
    """Where runs are kept."""

    def run(self) -> int:
        from surefoot.errors import ReplayError
        from surefoot.town.sim.town_loop import record_behaviour
        from surefoot.train.device import pin_threads
        from surefoot.train.interop.minari import write_minari

        pin_threads()
        if not self.scenarios:
            raise Usage("say which scenario; `surefoot town scenarios` lists them")
        at_least_one(ticks=self.ticks, towns=self.towns)
        for name in self.scenarios:
            scenario = load(name, self.auto_seed_agents)
            known = [resident.id for resident in scenario.agents]
            made = self._capture(scenario)
            if strangers := [agent for agent in self.agent_id if agent not in known]:
                raise ReplayError(f"{scenario.name} has no agent {', '.join(strangers)}; there are {', '.join(known)}")
            if self.agent_id:
                made.samples = [sample for sample in made.samples if sample.meta["agent_id"] in self.agent_id]
            where = self.output / scenario.name if len(self.scenarios) > 1 else self.output
            manifest = made.save(where, self.prefix, compress=not self.no_compress)
            events, intensity = (made.counts.get(f"queue_conflict_{x}", 0.0) for x in ("events", "intensity_sum"))
            told = f"{events:.0f} queue conflicts, intensity {intensity:.2f}"
            print(f"{scenario.name}: {len(made.samples)} samples of {made.ticks} ticks → {manifest}; {told}")
            if self.minari is not None:
                if self.policy not in ("script", "random", "idle"):
                    raise Usage(
                        "--minari is for behaviours here; `surefoot record RUN --minari NAME` writes a run's episodes"
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

        training, step = load_policy(run_directory(self.policy, self.runs), "latest", None)
        variant = self.observations or training.spec.env_kwargs.get("variant")
        return capture_samples(
            training.policy, scenario, ticks, seed=seed, towns=self.towns, variant=variant, version=step
        )


@dataclass(frozen=True, kw_only=True)
class TownReplayArgs:
    """Look at a replay sample, or at all samples of a manifest: numbers, or with --validate only whether it is sound.

    surefoot town replay samples/manifest.json --validate
    """

    sample: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="SAMPLE")]
    """A .npz file, or a manifest in JSON or YAML."""
    meta: Path | None = None
    """The sample's metadata (default: the .json beside it)."""
    agent: Names = ()
    """Of a manifest, only samples of this agent."""
    validate: bool = False
    """Only say whether it is sound."""
    json: bool = False
    """As JSON."""

    def run(self) -> int:
        import json as text

        from surefoot.data.replay import read_sample, sample_metrics
        from surefoot.data.replayset import ReplayDataset, read_manifest

        if self.sample.suffix == ".npz":
            samples = [read_sample(self.sample, self.meta)]
        else:
            entries = read_manifest(self.sample, agents=self.agent or None).entries
            dataset = ReplayDataset(entries)
            samples = [dataset.sample(number) for number in range(len(entries))]
        if self.validate:
            print("Sample validation successful." if len(samples) == 1 else f"{len(samples)} samples are sound.")
            return 0
        told = [{"agent_id": s.meta.get("agent_id"), "sha256": s.digest(), **sample_metrics(s)} for s in samples]
        if self.json:
            print(text.dumps(told if len(told) > 1 else told[0], indent=2))
            return 0
        for sample, numbers in zip(samples, told, strict=True):
            print(
                f"{sample.meta.get('sample_id', self.sample.name)}  agent {numbers['agent_id']}  sha256 {sample.digest()[:12]}"
            )
            for name, value in numbers.items():
                if isinstance(value, float):
                    print(f"  {name:<30} {value:.5g}")
        return 0


@dataclass(frozen=True, kw_only=True)
class TownScenariosArgs:
    """List the shipped scenarios, check a file of your own, or print the JSON Schema of scenario files.

    surefoot town scenarios
    surefoot town scenarios my_town.yaml
    surefoot town scenarios --schema
    """

    file: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="FILE")] = None
    """A YAML file to check, or a scenario to print."""
    schema: bool = False
    """Print the JSON Schema."""
    json: bool = False
    """As JSON."""

    def run(self) -> int:
        from surefoot.town.scenarios.scenario import load_scenario, scenario_schema, shipped

        if self.schema:
            print(json.dumps(scenario_schema(), indent=2))
            return 0
        if self.file is not None:
            scenario = load_scenario(self.file)
            if self.json:
                print(json.dumps(scenario.to_json(), indent=2))
            else:
                print(f"{scenario.name} is sound: {_brief(scenario)}")
            return 0
        for name in shipped():
            print(f"{name:<24} {_brief(load_scenario(name))}")
        return 0


def _brief(scenario: Scenario) -> str:
    return f"{len(scenario.agents)} agents, {len(scenario.objects)} objects, {scenario.ticks} ticks. {scenario.description}"


@dataclass(frozen=True, kw_only=True)
class TownSamplesArgs:
    """Copy the samples that come along, their manifest and poc_hybrid.yaml into a directory, to try things on.

    surefoot town samples -o samples
    """

    output: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("samples")
    """Where they go."""

    def run(self) -> int:
        import shutil

        from surefoot.town.scenarios import scenario

        self.output.mkdir(parents=True, exist_ok=True)
        for path in sorted((Path(scenario.__file__).parent.parent / "samples").iterdir()):
            shutil.copyfile(path, self.output / path.name)
            print(self.output / path.name)
        return 0
