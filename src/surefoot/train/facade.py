"""`PPO` with the methods of Stable-Baselines3's class, on this package's engine."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch

from surefoot.data.knobs import args_section
from surefoot.envs.api import World
from surefoot.envs.make import EnvLike, backend_of, placement_of
from surefoot.errors import ConfigError, SurefootError
from surefoot.learn.checkpoint.checkpoint import save_checkpoint
from surefoot.learn.config import PPOConfig
from surefoot.nets.actor_critic import policy_from_description
from surefoot.nets.config import POLICIES, NetConfig
from surefoot.nets.policy import Policy, load_weights
from surefoot.train.assemble import (
    assemble,
    differences_from_sb3,
    move_in,
    open_world,
    own_policy,
    read_model,
    refuse_other_place,
    set_length,
)
from surefoot.train.config import split_settings
from surefoot.train.device import choose_device, pin_threads
from surefoot.train.interop.sb3_names import VecNormalize, as_callbacks, refuse_attribute, stops_training
from surefoot.train.interrupt import GentleStop
from surefoot.train.learn_output import LearnOutput, curves_directory
from surefoot.train.predict import Spaces, choose, refuse_other_spaces, spaces_of
from surefoot.train.spec import RunSpec
from surefoot.train.training import Training

# Added to a run's seed for `predict`, so that predicting never changes the numbers that training draws.
PREDICT_SEED_OFFSET = 2_000_003


class _Unset:
    def __repr__(self) -> str:
        return "from the preset"


UNSET: Any = _Unset()


class PPO:
    """Proximal policy optimization with the methods of SB3's PPO.

    Settings that you leave out come from the preset of the env's family (verbose=1 prints them); preset="sb3" uses SB3's
    defaults. Every other name of a setting works too, as in PPO("MlpPolicy", env, clip_coef=0.1). Unlike in SB3, seed=None
    means 0: two runs are the same unless you pass different seeds.
    """

    def __init__(
        self,
        policy: str | Policy,
        env: EnvLike | VecNormalize,
        learning_rate: Any = UNSET,
        n_steps: int = UNSET,
        batch_size: int = UNSET,
        n_epochs: int = UNSET,
        gamma: float = UNSET,
        gae_lambda: float = UNSET,
        clip_range: Any = UNSET,
        clip_range_vf: float | None = UNSET,
        normalize_advantage: bool | str = UNSET,
        ent_coef: Any = UNSET,
        vf_coef: float = UNSET,
        max_grad_norm: float = UNSET,
        use_sde: bool = UNSET,
        sde_sample_freq: int = UNSET,
        *,
        target_kl: float | None = UNSET,
        tensorboard_log: str | Path | None = None,
        policy_kwargs: Mapping[str, Any] | None = None,
        verbose: int = 0,
        seed: int | None = None,
        device: str = UNSET,
        preset: str | None = None,
        n_envs: int | None = None,
        **aliases: Any,
    ) -> None:
        # All parameters by name: they are settings under SB3's names, which `assemble` translates.
        arguments = dict(locals())
        not_settings = ("self", "policy", "env", "tensorboard_log", "verbose", "preset", "aliases")
        # None is a value of target_kl and clip_range_vf; of these three it means "not passed", as in SB3.
        absent = {name for name in ("policy_kwargs", "seed", "n_envs") if arguments[name] is None}
        absent |= {name for name, value in arguments.items() if value is UNSET} | set(not_settings)
        settings = {name: value for name, value in arguments.items() if name not in absent} | aliases
        threads = pin_threads()
        training, origin = assemble(policy, env, settings, preset)
        self._training: Training | None = training
        self._parts: dict[str, Any] = {}
        self._begin(training.spec, training.policy, spaces_of(training.world), verbose, tensorboard_log)
        if verbose >= 1:
            print(f"{origin}\n{differences_from_sb3(training.spec)}")
            print(f"{training.device}, {threads}, {backend_of(training.world)}'s {training.world.name}")
            print(f"learning by {training.learner.path}: {training.learner.path_reason}")
            if placement := placement_of(training.world):
                print(placement)

    def _begin(
        self, spec: RunSpec, policy: Policy, spaces: Spaces, verbose: int, tensorboard_log: str | Path | None
    ) -> None:
        self.spec, self.policy, self.spaces = spec, policy, spaces
        self.verbose, self.tensorboard_log = verbose, tensorboard_log
        self.device = choose_device(spec.ppo.device)
        self._generator = torch.Generator(self.device).manual_seed(spec.seed + PREDICT_SEED_OFFSET)

    @property
    def training(self) -> Training:
        """World, collector and learner. Iterating over it yields one report per update."""
        if self._training is None:
            raise ConfigError("the model was loaded without an env, so it cannot be trained; call set_env(env) first")
        return self._training

    def learn(
        self,
        total_timesteps: int,
        callback: Any = None,
        log_interval: int = 1,
        progress_bar: bool = False,
        reset_num_timesteps: bool = True,
        tb_log_name: str = "PPO",
        on_interrupt: str = "raise",
    ) -> Self:
        """Train, and return the model.

        Ctrl-C ends the current update first and then raises `KeyboardInterrupt` with the model whole; a second Ctrl-C
        interrupts immediately.

        Args:
            total_timesteps: Env steps to train for, rounded up to complete rollouts. Schedules run over this length.
            callback: A function, or a list of them, called with the `UpdateReport` of each update. Return False to stop.
            log_interval: Updates between two printed lines (with verbose=1).
            progress_bar: Show a progress bar.
            reset_num_timesteps: False continues the counters, and stretches schedules over the steps so far and the new
                ones: a learn(100) that was stopped at 60 is completed by 40 more.
            tb_log_name: Name of the run under `tensorboard_log`.
            on_interrupt: "stop" returns after Ctrl-C instead of raising `KeyboardInterrupt`.
        """
        if on_interrupt not in ("raise", "stop"):
            raise ConfigError(f"on_interrupt is {on_interrupt!r}; it must be 'raise' or 'stop'")
        training, callbacks = self.training, as_callbacks(callback)
        set_length(training, total_timesteps, fresh=reset_num_timesteps)
        self.spec = training.spec
        curves = curves_directory(self.tensorboard_log, tb_log_name, fresh=reset_num_timesteps)
        lines_every = log_interval if self.verbose >= 1 else 0
        output = LearnOutput(training, lines_every=lines_every, progress_bar=progress_bar, curves=curves)
        with GentleStop((signal.SIGINT,)) as stop, output:
            try:
                for report in training:
                    output.add(report)
                    # Every callback runs, also after one of them asked to stop.
                    answers = [call(report) for call in callbacks]
                    if stop.requested or any(stops_training(answer) for answer in answers):
                        break
            except SurefootError:
                # Ctrl-C also reaches the processes of a vector env, whose steps then fail; weights change between rollouts only.
                if not stop.requested:
                    raise
        if stop.requested and on_interrupt == "raise":
            raise KeyboardInterrupt(f"learn was interrupted after {self.num_timesteps:,} steps")
        if stop.requested:
            print(
                f"stopped after {self.num_timesteps:,} steps; the model can be saved or trained further",
                file=sys.stderr,
            )
        return self

    def predict(
        self,
        obs: Any,
        state: dict[str, torch.Tensor] | None = None,
        episode_start: Any = None,
        deterministic: bool = False,
        *,
        action_masks: Any = None,
    ) -> tuple[Any, dict[str, torch.Tensor] | None]:
        """Return the action for one observation or a batch, and the state to pass next time (None without memory).

        Args:
            obs: One observation as the env gives it, or a batch of them.
            state: The state that the last call returned, for a policy with memory; None at first.
            episode_start: Whether an episode starts with this observation, one flag each: its memory is cleared.
            deterministic: Take the most likely action instead of sampling.
            action_masks: Which choices are allowed, [A] or [N, A].
        """
        return choose(
            self.policy,
            self.spaces,
            self.spaces.read(obs, action_masks, self.spec.net.critic_only),
            memory=state,
            start=episode_start,
            generator=self._generator,
            deterministic=deterministic,
        )

    def save(self, path: str | Path) -> None:
        """Write weights, optimizer, statistics, counters and world as a checkpoint, without pickle.

        Args:
            path: A new or empty directory, or one with earlier checkpoints.
        """
        refuse_other_place(Path(path))
        parts = self._state()
        inexact = None if self._training is None else self._training.world.inexact
        model = {"spec": self.spec.to_json(), "spaces": self.spaces.to_tree()}
        meta = {"exact": inexact is None, "why": inexact or ""}
        save_checkpoint(Path(path), int(parts["learner"]["updates"]), {**parts, "facade": model}, meta=meta)

    @classmethod
    def load(
        cls,
        path: str | Path,
        env: EnvLike | VecNormalize | None = None,
        *,
        policy: Policy | None = None,
        verbose: int = 0,
        tensorboard_log: str | Path | None = None,
        **settings: Any,
    ) -> Self:
        """Return a saved model. With the same kind of env, training continues bit-exactly.

        Args:
            path: A checkpoint, a directory of checkpoints, or a run directory.
            env: The environment to train in. Without one the model can only predict.
            policy: Your policy with the same architecture, if the saved one contains a network that you wrote.
            verbose: 1 prints progress.
            tensorboard_log: Directory for TensorBoard.
            settings: Settings to change, by any of their names; not those of the network.
        """
        pin_threads()
        saved = read_model(Path(path))
        ppo, net, collect = split_settings(settings)
        changed = {"ppo": saved.spec.ppo.replace(**ppo), "collect": saved.spec.collect.replace(**collect)}
        if net:
            raise ConfigError(f"{', '.join(net)} cannot be changed in a saved network; create a new PPO instead")
        # Without __init__, which would build a new policy and need an env.
        model = cls.__new__(cls)
        built = policy_from_description(saved.parts["policy"]) if policy is None else own_policy(policy)
        assert built is not None
        load_weights(built, saved.parts["weights"])
        model._training, model._parts = None, saved.parts
        model._begin(replace(saved.spec, **changed), built, saved.spaces, verbose, tensorboard_log)
        built.to(model.device)
        if env is not None:
            model.set_env(env)
        return model

    def set_env(self, env: EnvLike | VecNormalize) -> None:
        """Continue in another env with the same spaces; the learner keeps its state.

        Args:
            env: The environment to train in from now on.
        """
        parts, before = self._state(), self.spec
        world = open_world(env, before.ppo.envs, before.collect.workers)
        refuse_other_spaces(self.spaces.observation, self.spaces.action, world)
        # The same batch size as before, so that learning does not change with the number of streams.
        ppo = before.ppo.replace(envs=world.num_envs, rollout_steps=max(1, before.ppo.batch_size // world.num_envs))
        training = Training(replace(before, env=world.name, ppo=ppo), world=world, policy=self.policy)
        note = move_in(training, parts, came_from=before.env)
        if note and self.verbose >= 1:
            print(f"new episodes start: {note}")
        self._training, self._parts = training, {}
        self.spec, self.spaces = training.spec, spaces_of(world)

    def get_env(self) -> World | None:
        """Return the world it trains in; None for a model that was loaded without an env."""
        return None if self._training is None else self._training.world

    @property
    def num_timesteps(self) -> int:
        """Env steps since the counters were last reset."""
        return int(self._parts["collector"]["env_steps"]) if self._training is None else self._training.env_steps

    @property
    def recent_return(self) -> float | None:
        """Mean raw return of the last 100 training episodes; None before the first has ended."""
        return None if self._training is None else self._training.collector.episodes.recent()[0]

    def _state(self) -> dict[str, Any]:
        return self._parts if self._training is None else self._training.state()

    # Hidden from type checkers, which accept every attribute of a class with __getattr__.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            refuse_attribute(name)


_HELP = {
    "policy": f"{', '.join(POLICIES)}, or a policy that you built.",
    "env": "An id, a function that makes an env, an env, a world, or `VecNormalize` of one.",
    "tensorboard_log": "Directory for TensorBoard; None writes nothing.",
    "policy_kwargs": "Settings of the network under SB3's names, as dict(net_arch=[64, 64]).",
    "verbose": "1 prints the settings and one line per update.",
    "preset": "Name of the preset for settings that are left out. Default: that of the env's family.",
    "aliases": "Other settings of PPOConfig, NetConfig and CollectConfig, by any of their names.",
}


def _document_arguments() -> None:
    # The help of a setting is written once, where the setting is declared.
    helps = {
        name: row["help"]
        for c in (NetConfig, PPOConfig)
        for row in c.describe()
        for name in (row["name"], *row["aliases"])
    }
    names = list(PPO.__init__.__annotations__)[:-1]
    PPO.__init__.__doc__ = f"Create a model.\n\n{args_section({n: _HELP.get(n) or helps[n] for n in names})}\n"


_document_arguments()
