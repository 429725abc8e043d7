"""Algorithms of Stable-Baselines3 that this package does not have. They can be imported, not used."""

from __future__ import annotations

from typing import Any, NoReturn


class OtherAlgorithmError(NotImplementedError):
    """An algorithm other than PPO was used."""


class _Absent(type):
    """Raises when one of its classes is called, or one of its attributes is read."""

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise OtherAlgorithmError(
            f"surefoot.sb3 has PPO, not {cls.__name__}; import it from stable_baselines3 or sb3_contrib, which can be "
            "installed beside it"
        )

    def load(cls, *args: Any, **kwargs: Any) -> None:
        """Raise `OtherAlgorithmError`."""
        cls(*args, **kwargs)


def _absent(*names: str) -> list[_Absent]:
    return [_Absent(name, (), {"__doc__": "Not available."}) for name in names]


A2C, DDPG, DQN, SAC, TD3, HerReplayBuffer = _absent("A2C", "DDPG", "DQN", "SAC", "TD3", "HerReplayBuffer")
ARS, CrossQ, QRDQN, TQC, TRPO, AsyncEval = _absent("ARS", "CrossQ", "QRDQN", "TQC", "TRPO", "AsyncEval")
