"""`surefoot import`: what was made with other libraries."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from surefoot.cli.options import Runs

if TYPE_CHECKING:
    from surefoot.learn.checkpoint.vecnormalize import Statistics
    from surefoot.nets.actor_critic import ActorCritic
    from surefoot.train.interop.sb3_import import Sb3Model


@dataclass(frozen=True, kw_only=True)
class ImportSb3Args:
    """Take over the weights of a Stable-Baselines3 PPO model.

        surefoot import sb3 ppo_cartpole.zip --env CartPole-v1 -o cartpole
        surefoot import sb3 ppo_ant.zip --vecnormalize vecnormalize.pkl --env Ant-v5 -o ant

    MlpPolicy and CnnPolicy, gSDE too. With --env the result is a run: eval, play, export and `train --from` take it.
    Without, it is a directory for PPO.load and `surefoot export`. Nothing in the zip is run: its tensors are read by a
    reader of our own, its pickles are left alone. A model that was trained behind VecNormalize needs the file of its
    statistics, of which only the numbers are read; those of the observations become the policy's own.
    Exit codes: 0 fine, 2 it cannot be read, or has no counterpart here.
    """

    model: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="MODEL.zip")]
    """What model.save wrote."""
    out: Annotated[str, tyro.conf.arg(aliases=["-o"])]
    """The run's name; or without --env the directory to write."""
    env: str | None = None
    """The env it was trained in."""
    vecnormalize: Path | None = None
    """What VecNormalize.save wrote (RL Zoo calls it vecnormalize.pkl)."""
    runs: Runs = None

    def run(self) -> int:
        from surefoot.learn.checkpoint.vecnormalize import read_vecnormalize
        from surefoot.train.interop.sb3_import import policy_from_sb3, read_sb3

        model = read_sb3(self.model)
        statistics = None if self.vecnormalize is None else read_vecnormalize(self.vecnormalize)
        if self.env is None:
            policy = policy_from_sb3(model, statistics=statistics)
            where = _write_model(policy, model, Path(self.out))
        else:
            policy, where = _write_run(model, statistics, self.env, self.out, self.runs)
        count = sum(weight.numel() for weight in policy.parameters())
        print(f"→ {where}: {count:,} weights of {self.model.name}, {policy.config.hidden} {policy.config.activation}")
        if statistics is not None:
            print(f"observations are normalised by {statistics.count:,.0f} that VecNormalize saw")
        elif self.vecnormalize is not None:
            print(f"{self.vecnormalize.name} normalises no observations (norm_obs=False): nothing was taken from it")
        if model.left_out:
            print(f"not read, for they are pickles: {', '.join(model.left_out)}; give them again if you train on")
        return 0


@dataclass(frozen=True, kw_only=True)
class ImportZooArgs:
    """Turn an entry of RL Zoo's hyperparameters into settings that `surefoot train --config` takes.

        surefoot import zoo ppo.yml HalfCheetah-v4 -o cheetah.yaml

    dict(...) texts and lin_3e-4 schedules are read, not run. Every key that has no counterpart is named.
    Exit codes: 0 all of it was taken over, 1 something was not, 2 it cannot be read.
    """

    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="PPO.yml")]
    """The zoo's file: one entry an env."""
    env: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="ENV")]
    """Which entry; `default` if there is none of that name."""
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """Where the settings go (default: they are printed)."""

    def run(self) -> int:
        import yaml

        from surefoot.train.interop.zoo import read_zoo

        settings, left = read_zoo(self.file, self.env)
        text = f"# {self.env}, from {self.file.name}\n" + yaml.safe_dump(settings, sort_keys=False)
        if self.out is None:
            print(text, end="")
        else:
            self.out.write_text(text, encoding="utf-8")
            print(f"→ {self.out}: surefoot train {self.env} --config {self.out}")
        for sentence in left:
            print(f"not taken over: {sentence}", file=sys.stderr)
        return 1 if left else 0


def _settings(model: Sb3Model, policy: ActorCritic) -> dict[str, Any]:
    net = policy.config.to_json()
    return {**model.settings, **{name: value for name, value in net.items() if name in _SHAPE}}


_SHAPE = ("hidden", "critic_hidden", "activation", "gsde", "cnn", "cnn_features", "normalize_obs", "obs_clip")


def _write_run(
    model: Sb3Model, statistics: Statistics | None, env: str, name: str, runs: Path | None
) -> tuple[ActorCritic, Path]:
    from surefoot.train.interop.sb3_import import policy_from_sb3
    from surefoot.train.run import create_run
    from surefoot.train.rundir.rundir import new_run_dir, runs_root
    from surefoot.train.spec import make_spec
    from surefoot.train.training import Training
    from surefoot.train.worlds import env_maker

    make = env_maker(env)
    probe = make(1)
    policy = policy_from_sb3(model, probe.observation, probe.action, statistics)
    probe.close()
    steps = max(1, int(model.data.get("num_timesteps") or 1))
    spec = make_spec(env, probe.action, preset_name="sb3", settings=_settings(model, policy), total_steps=steps)
    training = Training(spec, make=make)
    training.policy.load_state_dict(policy.state_dict())
    directory = new_run_dir(env, spec.seed, root=runs_root(runs), name=name)
    run = create_run(directory, spec, training=training, command=["surefoot", *sys.argv[1:]])
    try:
        run.save()
    finally:
        run.close("finished", "imported")
    return policy, directory.path


def _write_model(policy: ActorCritic, model: Sb3Model, path: Path) -> Path:
    from surefoot.envs.register import action_to_gym, observation_to_gym
    from surefoot.learn.checkpoint.checkpoint import save_checkpoint
    from surefoot.train.assemble import refuse_other_place
    from surefoot.train.predict import Spaces
    from surefoot.train.spec import make_spec

    refuse_other_place(path)
    steps = max(1, int(model.data.get("num_timesteps") or 1))
    spec = make_spec("unknown", policy.action, preset_name="sb3", settings=_settings(model, policy), total_steps=steps)
    spaces = Spaces(observation_to_gym(policy.observation), action_to_gym(policy.action))
    parts = {
        "weights": policy.state_dict(),
        "policy": policy.describe(),
        "learner": {"updates": 0},
        "collector": {"env_steps": steps},
        "facade": {"spec": spec.to_json(), "spaces": spaces.to_tree()},
    }
    save_checkpoint(path, 0, parts, meta={"exact": False, "why": "imported from Stable-Baselines3"})
    return path
