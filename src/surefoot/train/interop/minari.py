"""Import and export of Minari datasets: complete episodes, termination and truncation distinguished, no pickles.

Install with `pip install "surefoot[minari]"`. Datasets are in $MINARI_DATASETS_PATH, by default ~/.minari.
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
    """Return a local dataset as a recording. Observations are converted as for training (one-hot, float32).

    Args:
        name: Name of the dataset, such as "cartpole/expert-v0".
    """
    minari = _minari()
    try:
        dataset = minari.load_dataset(name)
    # Minari has no base class for its errors: FileNotFoundError, ValueError, ImportError and h5py's are possible.
    except Exception as why:
        names = ", ".join(sorted(minari.list_local_datasets())) or "none"
        raise RecordingError(f"no Minari dataset {name!r} on this machine ({why}); available: {names}") from why
    spaces = Spaces(dataset.observation_space, dataset.action_space)
    spec = dataset.spec.env_spec
    return Recording(
        env=spec.id if spec is not None else name,
        observation=spaces.observation,
        action=spaces.action,
        episodes=[_trajectory(episode, spaces) for episode in dataset.iterate_episodes()],
    )


def write_minari(recording: Recording, name: str, *, algorithm: str = "surefoot PPO") -> None:
    """Write a recording as a Minari dataset.

    Observations are written as policies get them: a Discrete one as one-hot. Action masks become the entry "action_mask" of
    a Dict observation; `read_minari` reads them back as masks.

    Args:
        recording: The episodes.
        name: Name of the dataset, such as "cartpole/expert-v0".
        algorithm: Name of the policy for the metadata.
    """
    minari = _minari()
    from minari.data_collector import EpisodeBuffer

    masked = any(episode.action_mask is not None for episode in recording.episodes)
    observation = _observation_space(recording, masked)
    spaces = Spaces(observation_to_gym(recording.observation), action_to_gym(recording.action))
    buffers = [
        EpisodeBuffer(
            id=i,
            observations=_observations(episode, observation),
            actions=spaces.answer(episode.action, single=False),
            rewards=episode.reward.tolist(),
            terminations=_last(episode.steps, episode.terminated),
            truncations=_last(episode.steps, not episode.terminated),
        )
        for i, episode in enumerate(recording.episodes)
    ]
    # Minari creates the env from its id to store its spec, which fails for an env that Gymnasium does not know.
    env = recording.env if recording.env in gym.registry else None
    try:
        with warnings.catch_warnings():
            # Minari warns about each missing author, e-mail address and permalink.
            warnings.simplefilter("ignore", UserWarning)
            minari.create_dataset_from_buffers(
                name,
                buffers,
                env=env,
                observation_space=observation,
                action_space=spaces.gym_action,
                algorithm_name=algorithm,
                data_format="hdf5",
                description=f"{len(buffers)} episodes of {recording.env}, mean return {recording.mean_return:.1f}",
            )
    except (ValueError, OSError) as why:
        raise RecordingError(f"cannot write the Minari dataset {name!r}: {why}") from why


def _minari() -> Any:
    try:
        # Minari imports h5py only when it reads a dataset, so a missing package would be reported late.
        import h5py  # noqa: F401  # pyright: ignore[reportUnusedImport]
        import minari
    except ImportError as why:
        raise ConfigError(f"Minari datasets need the package {why.name}: pip install 'surefoot[minari]'") from why
    return minari


def _trajectory(episode: Any, spaces: Spaces) -> Trajectory:
    observations = spaces.read(episode.observations)
    mask = observations.action_mask
    # Termination wins if both flags are set: a terminal state must not be bootstrapped.
    terminated = bool(np.asarray(episode.terminations)[-1])
    return Trajectory(
        obs=observations.obs,
        action=_world_action(np.asarray(episode.actions), spaces.gym_action, spaces.action),
        reward=np.asarray(episode.rewards, np.float64),
        terminated=terminated,
        truncated=bool(np.asarray(episode.truncations)[-1]) and not terminated,
        action_mask=None if mask is None else mask[:-1],
    )


def _world_action(action: np.ndarray, gym_space: gym.Space[Any], space: ActionSpace) -> np.ndarray:
    """Return Gymnasium's actions [T, …] in the form that worlds take."""
    match space:
        case Discrete():
            return action.astype(np.int64).reshape(len(action))
        case MultiDiscrete():
            # Gymnasium counts from `start`, worlds from 0.
            start = gym_space.start if isinstance(gym_space, gym_spaces.MultiDiscrete) else 0
            return (action - start).astype(np.int64).reshape(len(action), -1)
        case Box():
            return action.astype(np.float32).reshape(len(action), *space.shape)
        case Hybrid():
            raise SpaceError(
                "a Minari dataset with nested actions cannot be read; only Discrete, MultiDiscrete and Box actions can"
            )


def _observation_space(recording: Recording, masked: bool) -> gym.Space[Any]:
    plain = observation_to_gym(recording.observation)
    if not masked:
        return plain
    if isinstance(recording.action, Box):
        raise SpaceError(
            "the recording has action masks but its actions are continuous; only discrete actions can be masked"
        )
    width = recording.action.n if isinstance(recording.action, Discrete) else sum(recording.action.nvec)
    parts = dict(plain.spaces) if isinstance(plain, gym_spaces.Dict) else {"obs": plain}
    return gym_spaces.Dict({**parts, MASK: gym_spaces.MultiBinary(width)})


def _observations(episode: Trajectory, space: gym.Space[Any]) -> Any:
    """Return the observations, [T + 1, …] or a dict of such arrays."""
    if not isinstance(space, gym_spaces.Dict):
        return episode.obs["obs"]
    parts: dict[str, np.ndarray] = dict(episode.obs)
    if MASK in space.spaces:
        mask = episode.action_mask
        assert mask is not None
        # Minari needs T + 1 masks like observations; no action follows the last one, so everything is allowed there.
        parts[MASK] = np.concatenate([mask, np.ones_like(mask[:1])]).astype(np.int8)
    return parts


def _last(steps: int, ended: bool) -> list[bool]:
    """Return a flag per step that is False except for the last."""
    return [False] * (steps - 1) + [ended]
