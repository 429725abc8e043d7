"""Recordings of episodes, in memory and as a safetensors file. Reading a file runs no code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from surefoot.data.spaces import Box, space_from_json, space_to_json
from surefoot.data.trajectory import Recording, Trajectory
from surefoot.envs.api import World
from surefoot.errors import EnvError, RecordingError, SurefootError
from surefoot.nets.policy import Policy
from surefoot.train.evaluate import LONGEST_EPISODE, chooser, episodes_per_stream

# Written into the metadata of every file; the last part is the version of the layout.
FORMAT = "surefoot.recording.1"


@torch.no_grad()
def record(
    policy: Policy,
    world: World,
    episodes: int,
    *,
    seed: int,
    deterministic: bool = True,
    device: str | torch.device = "cpu",
) -> Recording:
    """Return complete episodes played by a policy.

    Args:
        policy: The policy that acts.
        world: The environments to play in.
        episodes: Number of episodes.
        seed: Seed of the environments and of sampled actions.
        deterministic: Take the most likely actions instead of sampling.
        device: Device of the policy.
    """
    streams = world.num_envs
    quota = episodes_per_stream(episodes, streams)
    choose = chooser(policy, streams, seed=seed, deterministic=deterministic, device=torch.device(device))
    view, start = world.reset(seed), np.ones(streams, dtype=bool)
    running, done = [_EpisodeBuffer() for _ in range(streams)], list[Trajectory]()
    while quota.any():
        action = choose(view, start)
        step = world.step(action)
        ended = step.terminated | step.truncated
        for i in np.flatnonzero(step.valid & (quota > 0)).tolist():
            buffer = running[i]
            buffer.obs.append({name: x[i].copy() for name, x in view.obs.items()})
            buffer.action.append(np.array(action[i]))
            buffer.reward.append(float(step.reward[i]))
            if view.action_mask is not None:
                buffer.mask.append(view.action_mask[i].copy())
            if ended[i]:
                # `step.view` is already the first observation of the next episode.
                assert step.final_obs is not None
                last = {name: x[i].copy() for name, x in step.final_obs.items()}
                done.append(buffer.close(last, terminated=bool(step.terminated[i])))
                running[i], quota[i] = _EpisodeBuffer(), quota[i] - 1
            elif len(buffer.reward) >= LONGEST_EPISODE:
                raise EnvError(
                    f"{world.name} did not end an episode within {LONGEST_EPISODE:,} steps; set a time limit"
                )
        view, start = step.view, ended | ~step.valid
    return Recording(env=world.name, observation=world.observation, action=world.action, episodes=done)


class _EpisodeBuffer:
    """The steps of an episode that is still running."""

    def __init__(self) -> None:
        self.obs: list[dict[str, np.ndarray]] = []
        self.action: list[np.ndarray] = []
        self.reward: list[float] = []
        self.mask: list[np.ndarray] = []

    def close(self, last: dict[str, np.ndarray], *, terminated: bool) -> Trajectory:
        observations = [*self.obs, last]
        return Trajectory(
            obs={name: np.stack([obs[name] for obs in observations]) for name in last},
            action=np.stack(self.action),
            reward=np.array(self.reward),
            terminated=terminated,
            truncated=not terminated,
            action_mask=np.stack(self.mask) if self.mask else None,
        )


def save_recording(recording: Recording, path: str | Path) -> Path:
    """Write a recording to one file, with the episodes concatenated, and return its path.

    Args:
        recording: The episodes.
        path: The file; missing folders are created.
    """
    path, episodes = Path(path), recording.episodes
    arrays = {f"obs.{name}": np.concatenate([e.obs[name] for e in episodes]) for name in episodes[0].obs}
    arrays |= {name: np.concatenate([getattr(e, name) for e in episodes]) for name in ("action", "reward")}
    arrays |= {name: np.array([getattr(e, name) for e in episodes]) for name in ("steps", "terminated", "truncated")}
    masks = [e.action_mask for e in episodes if e.action_mask is not None]
    if masks:
        arrays["action_mask"] = np.concatenate(masks)
    about = {
        "env": recording.env,
        "observation": {name: space_to_json(box) for name, box in recording.observation.items()},
        "action": space_to_json(recording.action),
    }
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file(
            {name: np.ascontiguousarray(x) for name, x in arrays.items()},
            path,
            metadata={"format": FORMAT, "about": json.dumps(about)},
        )
    except OSError as why:
        raise RecordingError(f"cannot write {path}: {why.strerror or why}") from why
    return path


def load_recording(path: str | Path) -> Recording:
    """Return the recording that `save_recording` wrote.

    Args:
        path: The file.
    """
    try:
        # The type stubs of safetensors do not declare the methods of the handle.
        with cast("Any", safe_open)(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != FORMAT:
                raise RecordingError(
                    f"{path} is not a recording: its format is {metadata.get('format')!r}, not {FORMAT!r}"
                )
            arrays: dict[str, np.ndarray] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        description = json.loads(metadata["about"])
        boxes = {name: space_from_json(spec) for name, spec in description["observation"].items()}
        return Recording(
            env=str(description["env"]),
            observation={name: box for name, box in boxes.items() if isinstance(box, Box)},
            action=space_from_json(description["action"]),
            episodes=list(_split_episodes(arrays)),
        )
    except (OSError, SafetensorError) as why:
        raise RecordingError(f"{path} cannot be read as a recording: {why}") from why
    # A damaged file can lack any key or contain a value of any type.
    except (KeyError, TypeError, ValueError, AttributeError) as why:
        if isinstance(why, SurefootError):
            raise RecordingError(f"{path} is damaged: {why}") from why
        raise RecordingError(f"{path} lacks a part of a recording ({why!r})") from why


def _split_episodes(arrays: dict[str, np.ndarray]) -> Iterator[Trajectory]:
    steps = [int(n) for n in arrays["steps"]]
    if min(steps) < 1 or sum(steps) != len(arrays["reward"]):
        raise ValueError(f"the episodes have {sum(steps)} steps but there are {len(arrays['reward'])} rewards")
    offset = 0
    for i, n in enumerate(steps):
        mask = arrays.get("action_mask")
        yield Trajectory(
            # An episode of n steps has n + 1 observations, so their offset grows by one more per episode.
            obs={
                k.removeprefix("obs."): x[offset + i : offset + i + n + 1]
                for k, x in arrays.items()
                if k.startswith("obs.")
            },
            action=arrays["action"][offset : offset + n],
            reward=arrays["reward"][offset : offset + n],
            terminated=bool(arrays["terminated"][i]),
            truncated=bool(arrays["truncated"][i]),
            action_mask=None if mask is None else mask[offset : offset + n],
        )
        offset += n
