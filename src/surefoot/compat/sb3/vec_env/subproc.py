"""`SubprocVecEnv`: one process per env."""

from __future__ import annotations

import multiprocessing
import signal
import warnings
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils import CloudpickleWrapper

from surefoot.compat.sb3.vec_env.base import VecEnv, VecEnvIndices, VecEnvObs, VecEnvStepReturn
from surefoot.compat.sb3.vec_env.dummy import as_gymnasium, is_wrapped


class EnvServer:
    """The env of a child process, with one method per command."""

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        self.env, self.reset_info = env, dict[str, Any]()

    def step(self, action: Any) -> tuple[Any, ...]:
        """Return (observation, reward, done, info, info of the last reset)."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        done = terminated or truncated
        info["TimeLimit.truncated"] = truncated and not terminated
        if done:
            info["terminal_observation"] = obs
            obs, self.reset_info = self.env.reset()
        return obs, reward, done, info, self.reset_info

    def reset(self, seed: int | None, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return the first observation of a new episode, and its info."""
        obs, self.reset_info = self.env.reset(seed=seed, **({"options": options} if options else {}))
        return obs, self.reset_info

    def call(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the result of a method."""
        return self.env.get_wrapper_attr(name)(*args, **kwargs)

    def get(self, name: str) -> Any:
        return self.env.get_wrapper_attr(name)

    def has(self, name: str) -> bool:
        """Return whether there is an attribute."""
        return self.env.has_wrapper_attr(name)

    def set(self, name: str, value: Any) -> None:
        """Set an attribute of the outermost wrapper."""
        setattr(self.env, name, value)

    def wrapped(self, wrapper_class: type[Any]) -> bool:
        """Return whether a wrapper is a `wrapper_class`."""
        return is_wrapped(self.env, wrapper_class)


def serve(remote: Any, parent: Any, make: CloudpickleWrapper[Any]) -> None:
    """Run one env in a child process until the parent closes the pipe. An error is sent and raised there."""
    # Ctrl-C is handled by the parent: a child that died in the middle of a step would break the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent.close()
    server = EnvServer(as_gymnasium(make()))
    while True:
        try:
            command, args = remote.recv()
        except (EOFError, ConnectionError):
            break
        if command == "close":
            break
        try:
            answer: tuple[bool, Any] = True, getattr(server, command)(*args)
        except Exception as error:
            answer = False, error
        try:
            remote.send(answer)
        except (BrokenPipeError, ConnectionError):
            break
        except Exception as error:  # what an env returns cannot always be sent
            remote.send((False, RuntimeError(f"the result of {command} cannot be sent to the parent: {error!r}")))
    server.env.close()
    remote.close()


def hang_up(remotes: Sequence[Any]) -> None:
    """Tell processes to end, without waiting for them."""
    for remote in remotes:
        with suppress(OSError):
            remote.send(("close", ()))


class SubprocVecEnv(VecEnv):
    """One process per env; faster than `DummyVecEnv` if a step takes longer than about 1 ms."""

    def __init__(self, env_fns: Sequence[Callable[[], Any]], start_method: str | None = None) -> None:
        if start_method is None:
            # fork copies locks that other threads hold, torch's among them.
            available = multiprocessing.get_all_start_methods()
            start_method = "forkserver" if "forkserver" in available else "spawn"
        context: Any = multiprocessing.get_context(start_method)
        self.closed = False
        pipes = [context.Pipe() for _ in env_fns]
        self.remotes = [remote for remote, _ in pipes]
        self.processes: list[Any] = []
        for (remote, work_remote), make in zip(pipes, env_fns, strict=True):
            process = context.Process(target=serve, args=(work_remote, remote, CloudpickleWrapper(make)), daemon=True)
            process.start()
            self.processes.append(process)
            work_remote.close()
        # Also at the end of the program: SDL catches the signal that would end a process with a window, and the exit would wait.
        self._forgotten = weakref.finalize(self, hang_up, self.remotes)
        self._pending = [0] * len(pipes)
        """Answers that each process still has to send; more than 0 after a `KeyboardInterrupt`."""
        observation, action = (self._ask([0], "get", f"{name}_space")[0] for name in ("observation", "action"))
        super().__init__(len(pipes), observation, action)

    @property
    def waiting(self) -> bool:
        """Whether a step was started and not waited for."""
        return any(self._pending)

    def step_async(self, actions: Any) -> None:
        for i, action in enumerate(actions):
            self._send(i, "step", action)

    def step_wait(self) -> VecEnvStepReturn:
        results = [self._receive(i) for i in range(self.num_envs)]
        obs, rewards, dones, infos, reset_infos = zip(*results, strict=True)
        self.reset_infos = list(reset_infos)
        return stack_obs(obs, self.observation_space), np.stack(rewards), np.stack(dones), list(infos)

    def reset(self) -> VecEnvObs:
        for i in range(self.num_envs):
            self._send(i, "reset", self._seeds[i], self._options[i])
        obs, reset_infos = zip(*(self._receive(i) for i in range(self.num_envs)), strict=True)
        self.reset_infos = list(reset_infos)
        self._reset_seeds()
        self._reset_options()
        return stack_obs(obs, self.observation_space)

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._forgotten.detach()
        for i, remote in enumerate(self.remotes):
            try:
                while self._pending[i]:
                    self._pending[i] -= 1
                    remote.recv()
                remote.send(("close", ()))
            except (OSError, EOFError):
                continue  # the process has ended already
        for process in self.processes:
            process.join()

    def get_images(self) -> Sequence[np.ndarray | None]:
        if self.render_mode != "rgb_array":
            warnings.warn(f"pictures need render_mode='rgb_array'; these envs have {self.render_mode!r}", stacklevel=2)
            return [None] * self.num_envs
        return self.env_method("render")

    def has_attr(self, attr_name: str) -> bool:
        return all(self._ask(None, "has", attr_name))

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        return self._ask(indices, "get", attr_name)

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        self._ask(indices, "set", attr_name, value)

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        return self._ask(indices, "call", method_name, method_args, method_kwargs)

    def env_is_wrapped(self, wrapper_class: type[Any], indices: VecEnvIndices = None) -> list[bool]:
        return self._ask(indices, "wrapped", wrapper_class)

    def _ask(self, indices: VecEnvIndices, command: str, *args: Any) -> list[Any]:
        chosen = list(self._get_indices(indices))
        for i in chosen:
            self._send(i, command, *args)
        return [self._receive(i) for i in chosen]

    def _send(self, i: int, command: str, *args: Any) -> None:
        # Answers to commands that an interrupt cut off are dropped: they belong to no caller any more.
        while self._pending[i]:
            self._pending[i] -= 1
            self.remotes[i].recv()
        self.remotes[i].send((command, args))
        self._pending[i] += 1

    def _receive(self, i: int) -> Any:
        works, answer = self.remotes[i].recv()
        self._pending[i] -= 1
        if not works:
            raise answer
        return answer


def stack_obs(observations: Sequence[Any], space: gym.Space[Any]) -> VecEnvObs:
    """Return the observations of N envs as arrays [N, …], in the form of their space."""
    if isinstance(space, gym.spaces.Dict):
        return {key: np.stack([obs[key] for obs in observations]) for key in space.spaces}
    if isinstance(space, gym.spaces.Tuple):
        return tuple(np.stack([obs[i] for obs in observations]) for i in range(len(space.spaces)))
    return np.stack(observations)
