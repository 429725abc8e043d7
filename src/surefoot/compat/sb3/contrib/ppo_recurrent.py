"""sb3-contrib's `RecurrentPPO`."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from surefoot.compat.sb3.contrib.recurrent_policies import (
    RecurrentActorCriticCnnPolicy,
    RecurrentActorCriticPolicy,
    RecurrentMultiInputActorCriticPolicy,
)
from surefoot.compat.sb3.engine.policies import EnginePolicy
from surefoot.compat.sb3.engine.recurrent_policies import RecurrentEnginePolicy
from surefoot.compat.sb3.ppo import PPO

MlpLstmPolicy, CnnLstmPolicy = RecurrentActorCriticPolicy, RecurrentActorCriticCnnPolicy
MultiInputLstmPolicy = RecurrentMultiInputActorCriticPolicy


class RecurrentPPO(PPO):
    """`PPO` with an LSTM. Arguments are those of PPO; `n_steps` and `batch_size` are 128.

    Minibatches are made of complete rollouts of some envs or, if `batch_size` is below `n_steps`, of sequences of that length.
    """

    policy_aliases: ClassVar[dict[str, type[Any]]] = {
        "MlpLstmPolicy": RecurrentActorCriticPolicy,
        "CnnLstmPolicy": RecurrentActorCriticCnnPolicy,
        "MultiInputLstmPolicy": RecurrentMultiInputActorCriticPolicy,
    }

    def __init__(
        self,
        policy: Any,
        env: Any,
        learning_rate: Any = 3e-4,
        n_steps: int = 128,
        batch_size: int = 128,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(policy, env, learning_rate, n_steps, batch_size, *args, **kwargs)

    def _setup_model(self) -> None:
        super()._setup_model()
        if not isinstance(self.policy, RecurrentActorCriticPolicy):
            raise ValueError(
                f"{self.policy_class.__name__} is no RecurrentActorCriticPolicy; derive it from that class, or pass "
                "'MlpLstmPolicy'"
            )

    def _adapter(self) -> EnginePolicy:
        return RecurrentEnginePolicy(self.policy, self.sde_sample_freq)

    def _sequence(self) -> int | None:
        return self.batch_size if self.batch_size < self.n_steps else None

    def learn(
        self,
        total_timesteps: int,
        callback: Any = None,
        log_interval: int | None = 1,
        tb_log_name: str = "RecurrentPPO",
        *args: Any,
        **kwargs: Any,
    ) -> Self:
        """Train for at least `total_timesteps` steps; the arguments are those of `PPO.learn`."""
        return super().learn(total_timesteps, callback, log_interval, tb_log_name, *args, **kwargs)
