"""sb3-contrib's `MaskablePPO`."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from gymnasium import spaces

from surefoot.compat.sb3.contrib.mask_policies import (
    MaskableActorCriticCnnPolicy,
    MaskableActorCriticPolicy,
    MaskableMultiInputActorCriticPolicy,
)
from surefoot.compat.sb3.contrib.masks import require_masks
from surefoot.compat.sb3.ppo import PPO

MlpPolicy, CnnPolicy = MaskableActorCriticPolicy, MaskableActorCriticCnnPolicy
MultiInputPolicy = MaskableMultiInputActorCriticPolicy


class MaskablePPO(PPO):
    """`PPO` for discrete actions of which some are forbidden in each step. Arguments are those of PPO without gSDE."""

    policy_aliases: ClassVar[dict[str, type[Any]]] = {
        "MlpPolicy": MaskableActorCriticPolicy,
        "CnnPolicy": MaskableActorCriticCnnPolicy,
        "MultiInputPolicy": MaskableMultiInputActorCriticPolicy,
    }
    settings: ClassVar[tuple[str, ...]] = tuple(x for x in PPO.settings if x not in ("use_sde", "sde_sample_freq"))

    def _setup_model(self) -> None:
        allowed = (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
        assert isinstance(self.action_space, allowed), (
            "The algorithm only supports Discrete, MultiDiscrete and MultiBinary as action spaces but "
            f"{self.action_space} was provided"
        )
        super()._setup_model()
        if not isinstance(self.policy, MaskableActorCriticPolicy):
            raise ValueError(
                f"{self.policy_class.__name__} is no MaskableActorCriticPolicy; derive it from that class, or pass 'MlpPolicy'"
            )

    def _policy_arguments(self) -> dict[str, Any]:
        return self.policy_kwargs

    def learn(  # pyright: ignore[reportIncompatibleMethodOverride]  # sb3-contrib's order of arguments
        self,
        total_timesteps: int,
        callback: Any = None,
        log_interval: int | None = 1,
        tb_log_name: str = "MaskablePPO",
        reset_num_timesteps: bool = True,
        use_masking: bool = True,
        progress_bar: bool = False,
        on_interrupt: str = "raise",
    ) -> Self:
        """Train for at least `total_timesteps` steps; `use_masking=False` allows all actions."""
        if use_masking:
            require_masks(self.env)
        self.use_masking = use_masking
        return super().learn(
            total_timesteps, callback, log_interval, tb_log_name, reset_num_timesteps, progress_bar, on_interrupt
        )

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
        action_masks: Any = None,
    ) -> tuple[Any, Any]:
        """Return (action for one observation or a batch, `state` unchanged)."""
        return self.policy.predict(observation, state, episode_start, deterministic, action_masks=action_masks)
