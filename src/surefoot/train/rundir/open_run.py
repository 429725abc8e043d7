"""From a run directory to its training and to the policy of one of its checkpoints."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from surefoot.envs.ids import is_code
from surefoot.errors import CheckpointMissing, ConfigError, RunNotFound
from surefoot.learn.checkpoint.checkpoint import Checkpoint, load_checkpoint
from surefoot.nets.actor_critic import ActorCritic, policy_from_description
from surefoot.nets.policy import load_weights
from surefoot.train.device import pin_threads
from surefoot.train.predict import refuse_other_spaces
from surefoot.train.rundir.rundir import RunDir, find_run, runs_root
from surefoot.train.spec import RunSpec
from surefoot.train.spec_worlds import WorldMaker
from surefoot.train.training import Training
from surefoot.train.worlds import env_maker

# Environments that are built from a file of the user, which only their own verbs read.
OTHER_VERBS = {"surefoot/Prompts-v0": "surefoot prompts eval"}


def read_run(
    path: Path, env: str | None, *, total_steps: int | None = None, workers: str | None = None
) -> tuple[RunSpec, WorldMaker]:
    """Return the spec of a run directory and the maker of its worlds.

    Raise `ConfigError` if the run was trained on code and `env` does not name it: a run's files never name code.
    """
    spec = RunSpec.from_json(RunDir(path).read_spec())
    if total_steps is not None:
        spec = replace(spec, total_steps=total_steps)
    if workers is not None:
        spec = replace(spec, collect=spec.collect.replace(workers=workers))
    if spec.env in OTHER_VERBS and env is None:
        raise ConfigError(f"{path.name} is a run of another kind; use `{OTHER_VERBS[spec.env]} {path.name}`")
    if is_code(spec.env) and env is None:
        raise ConfigError(
            f"{path.name} was trained on {spec.env}, which is code; for safety, pass it again: --env {spec.env}"
        )
    return spec, env_maker(env or spec.env, backend=spec.backend, env_kwargs=spec.env_kwargs or None)


def load_run_policy(directory: RunDir, which: str, env: str | None) -> tuple[Training, Checkpoint]:
    """Return a training in this process with the weights of a checkpoint in it, and the checkpoint.

    `which` is "latest", "best" or a number; `env` is as in `read_run`.
    """
    pin_threads()
    checkpoint = load_checkpoint(checkpoint_path(directory.checkpoints, which, directory.name))
    spec, make = read_run(directory.path, env)
    # No remote workers, overlap or second learner: the policy is only used, not trained.
    training = Training(replace(spec, rollouts="here", overlap=False, learners=1), make=make)
    if isinstance(training.policy, ActorCritic) and not training.policy.own_module:
        trained = policy_from_description(checkpoint.parts["policy"])
        refuse_other_spaces(trained.observation, trained.action, training.world)
    load_weights(training.policy, checkpoint.parts["weights"])
    return training, checkpoint


def checkpoint_path(root: Path, which: str, name: str) -> Path:
    """Return the path of a checkpoint under `root`; `root` itself for "latest". `name` is for the error message."""
    if which == "latest":
        path = root
    elif which == "best":
        path = root / "best"
    elif which.isdigit():
        path = root / f"{int(which):06d}"
    else:
        raise CheckpointMissing(f"checkpoint is {which!r}; it must be latest, best, or the number of a checkpoint")
    if not path.exists():
        have = ", ".join(sorted(p.name for p in root.glob("[0-9]*"))) if root.is_dir() else ""
        raise CheckpointMissing(f"{name} has no checkpoint {which!r}; it has {have or 'none yet'}")
    return path


def find_model(name: str, runs: Path | None) -> Path:
    """Return the directory of a run, or one that `model.save` wrote."""
    try:
        return find_run(name, runs_root(runs)).path
    except RunNotFound:
        if Path(name).is_dir():
            return Path(name)
        raise
