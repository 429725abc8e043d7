"""sb3-contrib's `evaluate_policy` and `MaskableEvalCallback`."""

from __future__ import annotations

from typing import Any

from surefoot.compat.sb3 import evaluation
from surefoot.compat.sb3.contrib.masks import get_action_masks, require_masks
from surefoot.compat.sb3.eval_callback import EvalCallback


def evaluate_policy(model: Any, env: Any, *args: Any, use_masking: bool = True, **kwargs: Any) -> Any:
    """Return what `surefoot.sb3.common.evaluation.evaluate_policy` returns, with its arguments.

    With `use_masking`, the model gets the action masks of the env.
    """
    if not use_masking:
        return evaluation.evaluate_policy(model, env, *args, **kwargs)
    require_masks(env)
    return evaluation.evaluate_policy(
        model, env, *args, extra=lambda vec_env: {"action_masks": get_action_masks(vec_env)}, **kwargs
    )


class MaskableEvalCallback(EvalCallback):
    """`EvalCallback` whose evaluations use the action masks of the env."""

    def __init__(self, *args: Any, use_masking: bool = True, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.use_masking = use_masking

    def _evaluate(self, **arguments: Any) -> Any:
        return evaluate_policy(self.model, self.eval_env, use_masking=self.use_masking, **arguments)
