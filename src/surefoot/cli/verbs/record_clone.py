"""`surefoot record` and `surefoot clone`: record episodes of a policy, train a policy on recorded episodes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from surefoot.cli import options
from surefoot.cli.options import command_line, run_directory
from surefoot.cli.usage import Usage
from surefoot.cli.verbs.train import TrainArgs

if TYPE_CHECKING:
    from surefoot.data.trajectory import Recording
    from surefoot.train.training import Training


@dataclass(frozen=True, kw_only=True)
class RecordArgs:
    """Record complete episodes of a run's policy to a file for `surefoot clone`, or as a Minari dataset.

        surefoot record first --episodes 50 -o episodes.safetensors
        surefoot record first --episodes 50 --minari cartpole/first-v0

    Episodes use seeds that training did not use. A recording is one safetensors file, without pickles.
    """

    run_name: options.Run
    episodes: int = 100
    """Episodes to record."""
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """File of the recording (default: episodes.safetensors in the run's directory)."""
    minari: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Write a Minari dataset of this name instead, such as cartpole/expert-v0; needs "surefoot[minari]"."""
    checkpoint: options.CheckpointName = "latest"
    stochastic: options.Stochastic = False
    seed: int | None = None
    """Seed of the episodes (default: the run's evaluation seed plus two)."""
    env: options.CodeEnv = None

    def run(self) -> int:
        from surefoot.cli.verbs.runs import load_policy
        from surefoot.train.evaluate import EVAL_SEED_OFFSET
        from surefoot.train.interop.recording import record, save_recording

        if self.minari is not None and self.out is not None:
            raise Usage("--out and --minari were both given; pass one of them")
        directory = run_directory(self.run_name)
        training, step = load_policy(directory, self.checkpoint, self.env)
        seed = training.spec.seed + EVAL_SEED_OFFSET + 2 if self.seed is None else self.seed
        world = training.make(max(1, min(self.episodes, 25)))
        recording = record(
            training.policy,
            world,
            self.episodes,
            seed=seed,
            deterministic=not self.stochastic,
            device=training.device,
        )
        world.close()
        if self.minari is None:
            target = str(save_recording(recording, self.out or directory.path / "episodes.safetensors"))
        else:
            from surefoot.train.interop.minari import write_minari

            write_minari(recording, self.minari)
            target = f"the Minari dataset {self.minari}"
        print(f"{directory.name}, checkpoint {step}: {_summary(recording)} → {target}")
        return 0


@dataclass(frozen=True, kw_only=True)
class CloneArgs:
    """Train a policy to imitate recorded episodes (behavior cloning); the result is a run that PPO can continue.

        surefoot clone episodes.safetensors --env CartPole-v1 --name copy
        surefoot resume copy --steps 50_000

    The weights with the highest likelihood of the held-out episodes are kept. The critic learns the returns of the
    episodes, so that PPO does not start with an untrained one. `surefoot resume RUN` continues with PPO,
    `surefoot train ENV --from RUN` with other settings.
    """

    dataset: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DATASET")]
    """File of `surefoot record`, or name of a local Minari dataset."""
    env: str
    """Environment of the policy, as for `surefoot train`."""
    name: options.NewRunName = None
    clone: options.Pairs = ()
    """Option of cloning; repeatable. epochs=200 passes at most, lr=3e-3, minibatch_size=256 steps, validation=0.1 share of
    held-out episodes, patience=20 passes without improvement, ent_coef=0 entropy bonus, least_std=0.2 lower limit of a
    Gaussian's deviation (PPO needs some to explore), vf_coef=0.5 weight of the critic's loss (0 leaves the critic as is)."""
    steps: Annotated[int | None, tyro.conf.arg(aliases=["-n"])] = None
    """Environment steps for PPO when the run is continued (default: the preset's)."""
    seed: options.OptionalSeed = None
    set: options.Settings = ()
    """Change a setting of the policy or of PPO, as for `surefoot train`; repeatable."""
    preset: str | None = None
    """Preset to start from instead of the environment's."""
    env_backend: options.EnvBackend = "auto"
    quiet: bool = False
    """Print only the last line."""

    def run(self) -> int:
        from surefoot.train.device import pin_threads
        from surefoot.train.evaluate import EVAL_SEED_OFFSET, play
        from surefoot.train.predict import refuse_other_spaces
        from surefoot.train.run import create_run
        from surefoot.train.rundir.rundir import new_run_dir
        from surefoot.train.training import Training

        pin_threads()
        recording = open_dataset(self.dataset)
        args = TrainArgs(
            env=self.env,
            steps=self.steps,
            seed=self.seed,
            set=self.set,
            preset=self.preset,
            env_backend=self.env_backend,
        )
        make, spec = args.resolve()
        training = Training(spec, make=make)
        refuse_other_spaces(recording.observation, recording.action, training.world)
        if not self.quiet:
            print(f"{self.dataset}: {_summary(recording)}")
        self._clone(training, recording)
        directory = new_run_dir(spec.env, spec.seed, name=self.name)
        run = create_run(directory, spec, training=training, command=command_line())
        world = training.make(10)
        played = play(training.policy, world, 20, seed=spec.seed + EVAL_SEED_OFFSET, device=training.device)
        world.close()
        score = f"the clone scores {played.mean:.1f} ± {played.std:.1f} over 20 episodes"
        run.recorder.event("cloned", f"cloned {self.dataset}: {_summary(recording)}; {score}")
        run.save()
        run.close("interrupted")
        print(f"{directory.name}: {score}; `surefoot resume {directory.name}` continues with PPO")
        return 0

    def _clone(self, training: Training, recording: Recording) -> None:
        import torch

        from surefoot.data.seeds import seed_for
        from surefoot.train.algorithms.clone import CloneConfig, clone, reward_scale_of

        texts = {"gamma": str(training.spec.ppo.gamma), **options.pairs(self.clone, "--clone")}
        config = options.options_from(CloneConfig, texts, "--clone")
        scaled = training.spec.collect.normalize_reward
        scale = reward_scale_of(recording.episodes, training.collector.scaler) if scaled else 1.0
        generator = torch.Generator().manual_seed(seed_for("clone", training.spec.seed))
        for report in clone(
            training.policy, recording, config, generator=generator, reward_scale=scale, device=training.device
        ):
            if self.quiet or (report.epoch % 10 and report.epoch < config.epochs and not report.stopped):
                continue
            parts = [f"pass {report.epoch:3}  log-prob {report.log_prob:8.4f}"]
            if report.validation_log_prob is not None:
                parts.append(f"held out {report.validation_log_prob:8.4f}{' *' if report.best else '  '}")
            if report.agreement is not None:
                parts.append(f"agreement {report.agreement:6.1%}")
            if config.vf_coef:
                parts.append(f"value loss {report.value_loss:.4g}")
            print("  ".join(parts) + ("  stopped early" if report.stopped else ""))


def open_dataset(name: str) -> Recording:
    """Return the recording in the file `name`, or the Minari dataset of that name."""
    from surefoot.train.interop.recording import load_recording

    if Path(name).is_file():
        return load_recording(name)
    from surefoot.errors import RecordingError

    if name.endswith(".safetensors"):
        raise RecordingError(f"there is no file {name}; `surefoot record RUN` writes one")
    from surefoot.train.interop.minari import read_minari

    return read_minari(name)


def _summary(recording: Recording) -> str:
    count = len(recording.episodes)
    return (
        f"{count} episode{'s' if count > 1 else ''} of {recording.env}, {recording.steps:,} steps, "
        f"mean return {recording.mean_return:.1f}"
    )
