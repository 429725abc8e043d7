"""All names of `stable_baselines3.common.callbacks`."""

from __future__ import annotations

from surefoot.compat.sb3.callbacks import BaseCallback as BaseCallback
from surefoot.compat.sb3.callbacks import CallbackList as CallbackList
from surefoot.compat.sb3.callbacks import CheckpointCallback as CheckpointCallback
from surefoot.compat.sb3.callbacks import ConvertCallback as ConvertCallback
from surefoot.compat.sb3.callbacks import EventCallback as EventCallback
from surefoot.compat.sb3.eval_callback import EvalCallback as EvalCallback
from surefoot.compat.sb3.stop_callbacks import EveryNTimesteps as EveryNTimesteps
from surefoot.compat.sb3.stop_callbacks import LogEveryNTimesteps as LogEveryNTimesteps
from surefoot.compat.sb3.stop_callbacks import ProgressBarCallback as ProgressBarCallback
from surefoot.compat.sb3.stop_callbacks import StopTrainingOnMaxEpisodes as StopTrainingOnMaxEpisodes
from surefoot.compat.sb3.stop_callbacks import StopTrainingOnNoModelImprovement as StopTrainingOnNoModelImprovement
from surefoot.compat.sb3.stop_callbacks import StopTrainingOnRewardThreshold as StopTrainingOnRewardThreshold
