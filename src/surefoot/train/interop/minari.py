"""Minari's datasets in and out: whole episodes, terminated and truncated kept apart, nothing pickled.

Minari is `pip install surefoot[minari]`. Its datasets are where $MINARI_DATASETS_PATH says, else under ~/.minari.
"""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces as gym_spaces

from surefoot.data.spaces import ActionSpace, Box, Discrete, Hybrid, MultiDiscrete
from surefoot.data.trajectory import Recording, Trajectory
from surefoot.envs.gym.spaces import MASK
from surefoot.envs.register import action_to_gym, observation_to_gym
from surefoot.errors import ConfigError, RecordingError, SpaceError
from surefoot.train.predict import Spaces


def read_minari(name: str) -> Recording:
    """A dataset of this machine as a recording. Observations are read as a world would show them (one-hots, float32)."""
    minari = _minari()
    try:
        dataset = minari.load_dataset(name)
    except Exception as why:
        here = ", ".join(sorted(minari.list_local_datasets())) or "none"
        raise RecordingError(f"no Minari dataset {name!r} on this machine ({why}); there are: {here}") from why
    spaces = Spaces(dataset.observation_space, dataset.action_space)
    spec = dataset.spec.env_spec
    return Recording(
        env=spec.id if spec is not None else name,
        observation=spaces.observation,
        action=spaces.action,
        episodes=[_trajectory(episode, spaces) for episode in dataset.iterate_episodes()],
    )


def write_minari(recording: Recording, name: str, *, algorithm: str = "surefoot PPO") -> None:
    """Write a recording as the Minari dataset `name`, such as cartpole/expert-v0.

    Observations are the arrays that policies here see: a Discrete one is written as its one-hot. Masks become a part
    of a Dict observation called "action_mask", which `read_minari` takes for what it is.
    """
    minari = _minari()
    from minari.data_collector import EpisodeBuffer

    masked = any(episode.action_mask is not None for episode in recording.episodes)
    observation, write = (
        _observation_space(recording, masked),
        Spaces(observation_to_gym(recording.observation), action_to_gym(recording.action)),
    )
    buffers = [
        EpisodeBuffer(
            id=i,
            observations=_observations(episode, observation),
            actions=write.answer(episode.action, single=False),
            rewards=episode.reward.tolist(),
            terminations=_last(episode.steps, episode.terminated),
            truncations=_last(episode.steps, not episode.terminated),
        )
        for i, episode in enumerate(recording.episodes)
    ]
    env = recording.env if recording.env in gym.registry else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # it would like to know an author, a mail, a permalink
            minari.create_dataset_from_buffers(
                name,
                buffers,
                env=env,
                observation_space=observation,
                action_space=write.gym_action,
                algorithm_name=algorithm,
                data_format="hdf5",
                description=f"{len(buffers)} episodes of {recording.env}, mean return {recording.mean_return:.1f}",
            )
    except (ValueError, OSError) as why:
        raise RecordingError(f"cannot write the Minari dataset {name!r}: {why}") from why


def _minari() -> Any:
    try:
        import h5py  # noqa: F401  # pyright: ignore[reportUnusedImport]  # Minari only asks for it while reading
        import minari
    except ImportError as why:
        raise ConfigError(f"Minari datasets need the package {why.name}: pip install 'surefoot[minari]'") from why
    return minari


def _trajectory(episode: Any, spaces: Spaces) -> Trajectory:
    observations = spaces.read(episode.observations)
    mask = observations.action_mask
    terminated = bool(np.asarray(episode.terminations)[-1])
    return Trajectory(
        obs=observations.obs,
        action=_world_action(np.asarray(episode.actions), spaces.gym_action, spaces.action),
        reward=np.asarray(episode.rewards, np.float64),
        terminated=terminated,
        truncated=bool(np.asarray(episode.truncations)[-1]) and not terminated,
        action_mask=None if mask is None else mask[:-1],
    )


def _world_action(action: np.ndarray, space: gym.Space[Any], ours: ActionSpace) -> np.ndarray:
    """Gymnasium's actions [T, …] as our worlds take them."""
    match ours:
        case Discrete():
            return action.astype(np.int64).reshape(len(action))
        case MultiDiscrete():
            start = space.start if isinstance(space, gym_spaces.MultiDiscrete) else 0
            return (action - start).astype(np.int64).reshape(len(action), -1)
        case Box():
            return action.astype(np.float32).reshape(len(action), *ours.shape)
        case Hybrid():
            raise SpaceError("a Minari dataset of nested actions cannot be read yet; only plain spaces can")


def _observation_space(recording: Recording, masked: bool) -> gym.Space[Any]:
    plain = observation_to_gym(recording.observation)
    if not masked:
        return plain
    if isinstance(recording.action, Box):
        raise SpaceError("the recording has action masks but its actions are real numbers; only choices can be masked")
    width = recording.action.n if isinstance(recording.action, Discrete) else sum(recording.action.nvec)
    parts = dict(plain.spaces) if isinstance(plain, gym_spaces.Dict) else {"obs": plain}
    return gym_spaces.Dict({**parts, MASK: gym_spaces.MultiBinary(width)})


def _observations(episode: Trajectory, space: gym.Space[Any]) -> Any:
    """[T + 1, …], or a dict of such."""
    if not isinstance(space, gym_spaces.Dict):
        return episode.obs["obs"]
    parts: dict[str, np.ndarray] = dict(episode.obs)
    if MASK in space.spaces:
        mask = episode.action_mask
        assert mask is not None
        parts[MASK] = np.concatenate([mask, np.ones_like(mask[:1])]).astype(np.int8)
    return parts


def _last(steps: int, ended: bool) -> list[bool]:
    return [False] * (steps - 1) + [ended]
