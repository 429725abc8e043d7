"""Wrappers of vec envs: transposed images, checks for NaN, episode statistics, one part of a dict, videos."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import gymnasium as gym
import numpy as np

from surefoot.compat.sb3.record.monitor import Monitor, ResultsWriter
from surefoot.compat.sb3.spaces import is_image_space, is_image_space_channels_first
from surefoot.compat.sb3.vec_env.base import VecEnv, VecEnvStepReturn, VecEnvWrapper
from surefoot.compat.sb3.vec_env.dummy import DummyVecEnv
from surefoot.compat.sb3.vec_env.subproc import SubprocVecEnv


class VecTransposeImage(VecEnvWrapper):
    """Images [H, W, C] as [C, H, W], which convolutions take. `skip` leaves everything unchanged."""

    def __init__(self, venv: VecEnv, skip: bool = False) -> None:
        space = venv.observation_space
        self.skip = skip
        self.image_space_keys: list[str] = []
        if skip:
            super().__init__(venv)
            return
        if isinstance(space, gym.spaces.Dict):
            # Only uint8: a float image was prepared by the user.
            self.image_space_keys = [k for k, part in space.spaces.items() if _is_picture(part)]
            parts = {
                k: self.transpose_space(part, k) if k in self.image_space_keys else part
                for k, part in space.spaces.items()
            }
            super().__init__(venv, observation_space=gym.spaces.Dict(parts))
        else:
            super().__init__(venv, observation_space=self.transpose_space(space))

    @staticmethod
    def transpose_space(observation_space: Any, key: str = "") -> gym.spaces.Box:
        assert is_image_space(observation_space), f"the observation {key} is not an image: {observation_space}"
        first = is_image_space_channels_first(observation_space)
        assert not first, f"the channels of the observation {key} are first already"
        height, width, channels = observation_space.shape
        return gym.spaces.Box(0, 255, (channels, height, width), observation_space.dtype)

    @staticmethod
    def transpose_image(image: np.ndarray) -> np.ndarray:
        """Return one image or a batch with the channels first."""
        return np.moveaxis(image, -1, -3)

    def transpose_observations(self, observations: Any) -> Any:
        if self.skip:
            return observations
        if isinstance(observations, dict):
            moved = {key: self.transpose_image(observations[key]) for key in self.image_space_keys}
            return {**observations, **moved}
        return self.transpose_image(observations)

    def step_wait(self) -> VecEnvStepReturn:
        obs, rewards, dones, infos = self.venv.step_wait()
        for i, done in enumerate(dones):
            if done and "terminal_observation" in infos[i]:
                infos[i]["terminal_observation"] = self.transpose_observations(infos[i]["terminal_observation"])
        return self.transpose_observations(obs), rewards, dones, infos

    def reset(self) -> Any:
        return self.transpose_observations(self.venv.reset())


def _is_picture(space: gym.Space[Any]) -> bool:
    return is_image_space(space) and not is_image_space_channels_first(space)


class VecCheckNan(VecEnvWrapper):
    """Raises, or warns, at the first NaN or infinity in an action, observation or reward."""

    def __init__(
        self, venv: VecEnv, raise_exception: bool = False, warn_once: bool = True, check_inf: bool = True
    ) -> None:
        super().__init__(venv)
        self.raise_exception, self.warn_once, self.check_inf = raise_exception, warn_once, check_inf
        self._warned = False
        self._last = "the reset"

    def step_async(self, actions: Any) -> None:
        self._check(action=actions)
        self._last = f"the actions {actions}"
        self.venv.step_async(actions)

    def step_wait(self) -> VecEnvStepReturn:
        obs, rewards, dones, infos = self.venv.step_wait()
        self._check(observation=obs, reward=rewards)
        return obs, rewards, dones, infos

    def reset(self) -> Any:
        obs = self.venv.reset()
        self._check(observation=obs)
        return obs

    def _check(self, **values: Any) -> None:
        if self._warned and self.warn_once and not self.raise_exception:
            return
        bad = [
            f"{kind} in the {name}" for name, value in values.items() for kind in self.check_array_value(name, value)
        ]
        if not bad:
            return
        self._warned = True
        text = f"found {', '.join(bad)} after {self._last}"
        if self.raise_exception:
            raise ValueError(text)
        warnings.warn(text, UserWarning, stacklevel=3)

    def check_array_value(self, name: str, value: Any) -> list[str]:
        """Return the kinds of bad numbers in an array or a dict of arrays: "NaN", "infinity"."""
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else [value]
        # Integers are always finite, and actions of Dict spaces are arrays of objects.
        arrays = [x for x in map(np.asarray, parts) if x.dtype.kind == "f"]
        bad = ["NaN"] if any(np.isnan(x).any() for x in arrays) else []
        return [*bad, "infinity"] if self.check_inf and any(np.isinf(x).any() for x in arrays) else bad


class VecMonitor(VecEnvWrapper):
    """Return, length and time of each episode in `infos[i]["episode"]`, and in a CSV file if `filename` is set."""

    def __init__(self, venv: VecEnv, filename: str | None = None, info_keywords: tuple[str, ...] = ()) -> None:
        try:
            monitored = venv.env_is_wrapped(Monitor)[0]
        except AttributeError:
            monitored = False
        if monitored:
            warnings.warn(
                "the envs have a Monitor already, whose statistics VecMonitor overwrites; use one of both",
                UserWarning,
                stacklevel=2,
            )
        super().__init__(venv)
        self.episode_count, self.t_start = 0, time.time()
        env_id = None
        if (spec := getattr(venv, "spec", None)) is not None:
            env_id = spec.id
        self.results_writer: ResultsWriter | None = None
        if filename:
            header = {"t_start": self.t_start, "env_id": str(env_id)}
            self.results_writer = ResultsWriter(filename, header=header, extra_keys=info_keywords)
        self.info_keywords = info_keywords
        self.episode_returns = np.zeros(self.num_envs, np.float32)
        self.episode_lengths = np.zeros(self.num_envs, np.int32)

    def reset(self) -> Any:
        obs = self.venv.reset()
        self.episode_returns[:], self.episode_lengths[:] = 0.0, 0
        return obs

    def step_wait(self) -> VecEnvStepReturn:
        obs, rewards, dones, infos = self.venv.step_wait()
        self.episode_returns += rewards
        self.episode_lengths += 1
        new_infos = list(infos)
        for i in np.flatnonzero(dones):
            info: dict[str, Any] = dict(infos[i])
            episode = {
                "r": float(self.episode_returns[i]),
                "l": int(self.episode_lengths[i]),
                "t": round(time.time() - self.t_start, 6),
                **{key: info[key] for key in self.info_keywords},
            }
            info["episode"], new_infos[i] = episode, info
            self.episode_count += 1
            self.episode_returns[i], self.episode_lengths[i] = 0.0, 0
            if self.results_writer is not None:
                self.results_writer.write_row(episode)
        return obs, rewards, dones, new_infos

    def close(self) -> None:
        if self.results_writer is not None:
            self.results_writer.close()
        self.venv.close()


class VecExtractDictObs(VecEnvWrapper):
    """One part of dict observations as the observation."""

    def __init__(self, venv: VecEnv, key: str) -> None:
        self.key = key
        assert isinstance(venv.observation_space, gym.spaces.Dict), "VecExtractDictObs needs Dict observations"
        super().__init__(venv, observation_space=venv.observation_space.spaces[key])

    def reset(self) -> Any:
        return self.venv.reset()[self.key]

    def step_wait(self) -> VecEnvStepReturn:
        obs, rewards, dones, infos = self.venv.step_wait()
        for info in infos:
            if "terminal_observation" in info:
                info["terminal_observation"] = info["terminal_observation"][self.key]
        return obs[self.key], rewards, dones, infos


class VecVideoRecorder(VecEnvWrapper):
    """Records a video of `video_length` steps whenever `record_video_trigger(step)` is True. Needs moviepy."""

    def __init__(
        self,
        venv: VecEnv,
        video_folder: str,
        record_video_trigger: Callable[[int], bool],
        video_length: int = 200,
        name_prefix: str = "rl-video",
    ) -> None:
        super().__init__(venv)
        inner = venv.unwrapped
        if isinstance(inner, DummyVecEnv | SubprocVecEnv):
            # Frames per second of the recording, if the envs declare it.
            self.frames_per_sec = inner.get_attr("metadata")[0].get("render_fps", 30)
            modes = inner.get_attr("render_mode")
        else:
            self.frames_per_sec, modes = 30, [venv.render_mode]
        assert modes[0] == "rgb_array", f"a video needs envs with render_mode='rgb_array', not {modes[0]!r}"
        self.record_video_trigger, self.video_length = record_video_trigger, video_length
        self.video_folder, self.name_prefix = os.path.abspath(video_folder), name_prefix
        os.makedirs(self.video_folder, exist_ok=True)
        self.step_id, self.recording, self.recorded_frames = 0, False, list[np.ndarray]()
        self.video_name = self.video_path = ""

    def reset(self) -> Any:
        obs = self.venv.reset()
        if self._video_enabled():
            self._start_video_recorder()
        return obs

    def step_wait(self) -> VecEnvStepReturn:
        result = self.venv.step_wait()
        self.step_id += 1
        if self.recording:
            self._capture_frame()
            if len(self.recorded_frames) > self.video_length:
                self._stop_recording()
        elif self._video_enabled():
            self._start_video_recorder()
        return result

    def close(self) -> None:
        """Write a video that is being recorded, and close the envs."""
        if self.recording:
            self._stop_recording()
        self.venv.close()

    def _video_enabled(self) -> bool:
        return self.record_video_trigger(self.step_id)

    def _start_video_recorder(self) -> None:
        if self.recording:
            self._stop_recording()
        self.video_name = f"{self.name_prefix}-step-{self.step_id}-to-step-{self.step_id + self.video_length}.mp4"
        self.video_path = os.path.join(self.video_folder, self.video_name)
        self.recording, self.recorded_frames = True, []
        self._capture_frame()

    def _capture_frame(self) -> None:
        frame: Any = self.render("rgb_array")
        if isinstance(frame, np.ndarray):
            self.recorded_frames.append(frame)
        else:
            self.recording = False
            warnings.warn(f"the video was stopped: render returned {type(frame).__name__}, not a picture", stacklevel=2)

    def _stop_recording(self) -> None:
        self.recording = False
        if not self.recorded_frames:
            return
        try:
            clip: Any = import_module("moviepy.video.io.ImageSequenceClip").ImageSequenceClip
        except ImportError as why:
            raise ImportError("a video needs moviepy: pip install moviepy") from why
        clip(self.recorded_frames, fps=self.frames_per_sec).write_videofile(self.video_path, logger=None)
        self.recorded_frames = []
