"""`surefoot record` and `surefoot clone`: episodes out of a policy, and a policy out of episodes."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from surefoot.cli import options
from surefoot.cli.options import run_directory
from surefoot.cli.usage import Usage
from surefoot.cli.verbs.train import TrainArgs

if TYPE_CHECKING:
    from surefoot.data.trajectory import Recording
    from surefoot.train.training import Training


@dataclass(frozen=True, kw_only=True)
class RecordArgs:
    """Play whole episodes with a run's policy and keep every step, for `surefoot clone` or for Minari.

        surefoot record first --episodes 50 --out episodes.safetensors
        surefoot record first --episodes 50 --minari cartpole/first-v0

    Episodes come from seeds that training never used. Nothing is pickled: a recording is one safetensors file.
    """

    run_name: options.Run
    episodes: int = 100
    """How many."""
    out: Path | None = None
    """Where the recording goes (default: episodes.safetensors in the run's directory)."""
    minari: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Write a Minari dataset of this name instead, such as cartpole/expert-v0; needs surefoot[minari]."""
    checkpoint: options.CheckpointName = "latest"
    stochastic: options.Stochastic = False
    seed: int | None = None
    """Seed of the episodes (default: the run's own evaluation seed plus two)."""
    env: str | None = None
    """The module:function or library the run was trained on."""
    runs: options.Runs = None

    def run(self) -> int:
        from surefoot.cli.verbs.runs import load_policy
        from surefoot.train.evaluate import EVAL_SEED_OFFSET
        from surefoot.train.interop.recording import record, save_recording

        if self.minari is not None and self.out is not None:
            raise Usage("--out and --minari were both given; a recording goes to one place")
        directory = run_directory(self.run_name, self.runs)
        training, step = load_policy(directory, self.checkpoint, self.env)
        seed = training.spec.seed + EVAL_SEED_OFFSET + 2 if self.seed is None else self.seed
        world = training.make(max(1, min(self.episodes, 25)))
        made = record(
            training.policy,
            world,
            self.episodes,
            seed=seed,
            deterministic=not self.stochastic,
            device=training.device,
        )
        world.close()
        if self.minari is None:
            there = str(save_recording(made, self.out or directory.path / "episodes.safetensors"))
        else:
            from surefoot.train.interop.minari import write_minari

            write_minari(made, self.minari)
            there = f"the Minari dataset {self.minari}"
        print(f"{directory.name}, checkpoint {step}: {_summary(made)} → {there}")
        return 0


@dataclass(frozen=True, kw_only=True)
class CloneArgs:
    """Train a policy to choose as in recorded episodes, and leave it as a run that PPO can go on from.

        surefoot clone episodes.safetensors --env CartPole-v1 --out copy
        surefoot resume copy --steps 50_000

    DATASET is a file of `surefoot record` or the name of a Minari dataset on this machine. The weights kept are those
    that find the held-out episodes likeliest; the critic learns the episodes' returns, so that PPO does not begin with
    one that knows nothing. `surefoot resume RUN` goes on with PPO, `surefoot train ENV --from RUN` with other settings.
    """

    dataset: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DATASET")]
    """A recording's file, or a Minari dataset's name."""
    env: str
    """The env the policy is for, as for `surefoot train`."""
    out: Annotated[str | None, tyro.conf.arg(metavar="RUN")] = None
    """The new run's name; default <env>-<date>-<time>-s<seed>."""
    epochs: int = 200
    """Passes over the episodes, at most."""
    lr: float = 3e-3
    """Learning rate of cloning; PPO's is --set lr=…"""
    minibatch: int = 256
    """Steps in one gradient step of cloning."""
    validation: float = 0.1
    """Share of the episodes that is only looked at; 0 for none."""
    patience: int = 20
    """Stop after this many passes in which those did not become likelier."""
    entropy: float = 0.0
    """Weight of an entropy bonus."""
    least_std: float = 0.2
    """A Gaussian's deviation is held above this, so that PPO has something to explore with."""
    no_critic: bool = False
    """Leave the critic alone instead of letting it learn the episodes' discounted returns."""
    steps: Annotated[int | None, tyro.conf.arg(aliases=["-n"])] = None
    """Env steps that PPO will train for, if it goes on; the preset says if you do not."""
    seed: options.OptionalSeed = None
    set: options.Settings = ()
    """Change a setting of the policy or of PPO, as for `surefoot train`."""
    preset: str | None = None
    """Start from this preset instead of the env family's."""
    backend: Literal["auto", "surefoot", "gymnasium"] = "auto"
    """Whose env: auto takes our own vectorised one for the classics."""
    runs: options.Runs = None
    quiet: bool = False
    """Print only the last line."""

    def run(self) -> int:
        from surefoot.train.device import pin_threads
        from surefoot.train.evaluate import EVAL_SEED_OFFSET, play
        from surefoot.train.predict import refuse_other_spaces
        from surefoot.train.run import create_run
        from surefoot.train.rundir.rundir import new_run_dir, runs_root
        from surefoot.train.training import Training

        pin_threads()
        recording = open_dataset(self.dataset)
        asked = TrainArgs(
            env=self.env, steps=self.steps, seed=self.seed, set=self.set, preset=self.preset, backend=self.backend
        )
        make, spec = asked.resolve()
        training = Training(spec, make=make)
        refuse_other_spaces(recording.observation, recording.action, training.world)
        if not self.quiet:
            print(f"{self.dataset}: {_summary(recording)}")
        self._clone(training, recording)
        directory = new_run_dir(spec.env, spec.seed, root=runs_root(self.runs), name=self.out)
        run = create_run(directory, spec, training=training, command=["surefoot", *sys.argv[1:]])
        world = training.make(10)
        played = play(training.policy, world, 20, seed=spec.seed + EVAL_SEED_OFFSET, device=training.device)
        world.close()
        told = f"the clone scores {played.mean:.1f} ± {played.std:.1f} over 20 episodes"
        run.recorder.event("cloned", f"cloned {self.dataset}: {_summary(recording)}; {told}")
        run.save()
        run.close("interrupted")
        print(f"{directory.name}: {told}; `surefoot resume {directory.name}` goes on with PPO")
        return 0

    def _clone(self, training: Training, recording: Recording) -> None:
        import torch

        from surefoot.data.seeds import seed_for
        from surefoot.train.algorithms.clone import CloneConfig, clone, reward_scale_of

        config = CloneConfig(
            epochs=self.epochs,
            lr=self.lr,
            minibatch_size=self.minibatch,
            validation=self.validation,
            patience=self.patience,
            ent_coef=self.entropy,
            least_std=self.least_std,
            vf_coef=0.0 if self.no_critic else 0.5,
            gamma=training.spec.ppo.gamma,
        )
        scaled = training.spec.collect.normalize_reward
        scale = reward_scale_of(recording.episodes, training.collector.scaler) if scaled else 1.0
        generator = torch.Generator().manual_seed(seed_for("clone", training.spec.seed))
        for report in clone(
            training.policy, recording, config, generator=generator, reward_scale=scale, device=training.device
        ):
            if self.quiet or (report.epoch % 10 and report.epoch < self.epochs and not report.stopped):
                continue
            parts = [f"pass {report.epoch:3}  log-prob {report.log_prob:8.4f}"]
            if report.validation_log_prob is not None:
                parts.append(f"held out {report.validation_log_prob:8.4f}{' *' if report.best else '  '}")
            if report.agreement is not None:
                parts.append(f"agrees {report.agreement:6.1%}")
            if not self.no_critic:
                parts.append(f"value loss {report.value_loss:.4g}")
            print("  ".join(parts) + ("  enough" if report.stopped else ""))


def open_dataset(name: str) -> Recording:
    """A recording's file if there is one of that name, else a Minari dataset."""
    from surefoot.train.interop.recording import load_recording

    if Path(name).is_file():
        return load_recording(name)
    from surefoot.errors import RecordingError

    if name.endswith(".safetensors"):
        raise RecordingError(f"no file {name}; `surefoot record RUN` makes one")
    from surefoot.train.interop.minari import read_minari

    return read_minari(name)


def _summary(recording: Recording) -> str:
    count = len(recording.episodes)
    return (
        f"{count} episode{'s' if count > 1 else ''} of {recording.env}, {recording.steps:,} steps, "
        f"mean return {recording.mean_return:.1f}"
    )
