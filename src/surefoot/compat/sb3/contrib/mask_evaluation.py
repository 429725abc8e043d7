"""sb3-contrib's `evaluate_policy` and `MaskableEvalCallback`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from surefoot.compat.sb3.contrib.masks import get_action_masks, require_masks
from surefoot.compat.sb3.eval_callback import EvalCallback
from surefoot.compat.sb3.evaluation import play_episodes


def evaluate_policy(
    model: Any,
    env: Any,
    n_eval_episodes: int = 10,
    deterministic: bool = True,
    render: bool = False,
    callback: Callable[[dict[str, Any], dict[str, Any]], None] | None = None,
    reward_threshold: float | None = None,
    return_episode_rewards: bool = False,
    warn: bool = True,
    use_masking: bool = True,
) -> Any:
    """Return mean and deviation of the returns of complete episodes, or all returns and lengths.

    The arguments are those of `surefoot.sb3.common.evaluation.evaluate_policy`. With `use_masking`, the model gets the action
    masks of the env.
    """

    def masks(vec_env: Any) -> dict[str, Any]:
        return {"action_masks": get_action_masks(vec_env)} if use_masking else {}

    if use_masking:
        require_masks(env)
    return play_episodes(
        *(model, env, n_eval_episodes, deterministic, render, callback, reward_threshold, return_episode_rewards, warn),
        extra=masks,
    )


class MaskableEvalCallback(EvalCallback):
    """`EvalCallback` whose evaluations use the action masks of the env."""

    def __init__(self, *args: Any, use_masking: bool = True, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.use_masking = use_masking

    def _evaluate(self, **arguments: Any) -> Any:
        return evaluate_policy(self.model, self.eval_env, use_masking=self.use_masking, **arguments)
