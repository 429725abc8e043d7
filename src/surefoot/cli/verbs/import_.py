"""`surefoot import`: models and hyperparameters of other libraries."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from surefoot.cli.options import NewRunName, command_line
from surefoot.cli.usage import Usage

if TYPE_CHECKING:
    from surefoot.learn.checkpoint.vecnormalize import Statistics
    from surefoot.nets.actor_critic import ActorCritic
    from surefoot.train.interop.sb3_import import Sb3Model


@dataclass(frozen=True, kw_only=True)
class ImportSb3Args:
    """Import the weights of a Stable-Baselines3 PPO model.

        surefoot import sb3 ppo_cartpole.zip --env CartPole-v1 --name cartpole
        surefoot import sb3 ppo_ant.zip --vecnormalize vecnormalize.pkl --env Ant-v5 --name ant
        surefoot import sb3 ppo_cartpole.zip -o model/

    MlpPolicy and CnnPolicy are supported, with and without gSDE. With --env the result is a run for `eval`, `play`,
    `export` and `train --from`; without, it is a directory for PPO.load and `surefoot export`. No code in the zip is
    executed: tensors are read directly and pickles are ignored. A model trained with VecNormalize needs the file of its
    statistics, of which only the numbers are read; the policy then normalizes observations with them.
    Exit codes: 0 success, 2 it cannot be read or has no counterpart.
    """

    model: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="MODEL.zip")]
    """File written by model.save."""
    env: str | None = None
    """Environment the model was trained in."""
    name: NewRunName = None
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """Without --env: the directory to write."""
    vecnormalize: Path | None = None
    """File written by VecNormalize.save (RL Zoo calls it vecnormalize.pkl)."""

    def run(self) -> int:
        from surefoot.learn.checkpoint.vecnormalize import read_vecnormalize
        from surefoot.train.interop.sb3_import import policy_from_sb3, read_sb3

        if self.env is None and self.out is None:
            raise Usage("pass --env ENV to create a run, or -o DIR to write a model directory")
        name = self.name
        if self.env is not None and self.out is not None and name is None:
            print("surefoot import sb3: with --env the run's name is now --name, not -o", file=sys.stderr)
            name = str(self.out)
        model = read_sb3(self.model)
        statistics = None if self.vecnormalize is None else read_vecnormalize(self.vecnormalize)
        if self.env is not None:
            policy, path = _write_run(model, statistics, self.env, name)
        else:
            policy = policy_from_sb3(model, statistics=statistics)
            path = _write_model(policy, model, self.out or Path())
        count = sum(weight.numel() for weight in policy.parameters())
        print(f"→ {path}: {count:,} weights of {self.model.name}, {policy.config.hidden} {policy.config.activation}")
        if statistics is not None:
            print(f"observations are normalized with the statistics of {statistics.count:,.0f} observations")
        elif self.vecnormalize is not None:
            print(f"{self.vecnormalize.name} has no observation statistics (norm_obs=False) and was not used")
        if model.left_out:
            print(
                f"not read because they are pickles: {', '.join(model.left_out)}; set them again to continue training"
            )
        return 0


@dataclass(frozen=True, kw_only=True)
class ImportZooArgs:
    """Convert an entry of RL Zoo's hyperparameters into a file for `surefoot train --config`.

        surefoot import zoo ppo.yml HalfCheetah-v4 -o cheetah.yaml
        surefoot import zoo ppo.yml CarRacing-v3 --train -o racing.zip

    With --train, the entry is trained by surefoot.sb3 as RL Zoo would: wrappers of envs and vec envs, normalization, stacked
    frames and schedules included. Without it, keys without a counterpart are listed on stderr. dict(...) texts and lin_3e-4
    schedules are parsed, not executed.

    Exit codes: 0 everything was converted, 1 some keys were not, 2 the file cannot be read.
    """

    file: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="PPO.yml")]
    """RL Zoo's file with one entry per environment."""
    env: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="ENV")]
    """Name of the entry; falls back to the entry `default`."""
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """File to write (default: standard output; with --train ENV.zip)."""
    train: bool = False
    """Train the entry and save the model, and the statistics of VecNormalize as ENV_vecnormalize.json."""
    steps: Annotated[int | None, tyro.conf.arg(aliases=["-n"])] = None
    """With --train: environment steps (default: the entry's)."""
    seed: int = 0
    """With --train: seed."""

    def run(self) -> int:
        import yaml

        from surefoot.train.interop.zoo import read_zoo

        if self.train:
            return self._train()

        settings, unsupported = read_zoo(self.file, self.env)
        text = f"# {self.env}, from {self.file.name}\n" + yaml.safe_dump(settings, sort_keys=False)
        if self.out is None:
            print(text, end="")
        else:
            self.out.write_text(text, encoding="utf-8")
            print(f"→ {self.out}: surefoot train {self.env} --config {self.out}")
        for sentence in unsupported:
            print(f"not converted: {sentence}", file=sys.stderr)
        return 1 if unsupported else 0

    def _train(self) -> int:
        from surefoot.compat.sb3.zoo import make_model, read_zoo_run

        entry = read_zoo_run(self.file, self.env)
        model = make_model(entry, seed=self.seed)
        model.learn(entry.steps if self.steps is None else self.steps)
        out = self.out or Path(f"{self.env.replace('/', '_')}.zip")
        model.save(out)
        print(f"→ {out}: surefoot.sb3.PPO.load({str(out)!r})")
        if (normalize := model.get_vec_normalize_env()) is not None:
            statistics = out.with_name(f"{out.stem}_vecnormalize.json")
            normalize.save(statistics)
            print(f"→ {statistics}: surefoot.sb3.common.vec_env.VecNormalize.load({str(statistics)!r}, env)")
        return 0


def _settings(model: Sb3Model, policy: ActorCritic) -> dict[str, Any]:
    net = policy.config.to_json()
    return {**model.settings, **{name: value for name, value in net.items() if name in _SHAPE}}


_SHAPE = ("hidden", "critic_hidden", "activation", "gsde", "cnn", "cnn_features", "normalize_obs", "obs_clip")


def _write_run(model: Sb3Model, statistics: Statistics | None, env: str, name: str | None) -> tuple[ActorCritic, Path]:
    from surefoot.train.interop.sb3_import import policy_from_sb3
    from surefoot.train.run import create_run
    from surefoot.train.rundir.rundir import new_run_dir
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
    directory = new_run_dir(env, spec.seed, name=name)
    run = create_run(directory, spec, training=training, command=command_line())
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
