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


class A2C(metaclass=_Absent):
    """Not available."""


class DDPG(metaclass=_Absent):
    """Not available."""


class DQN(metaclass=_Absent):
    """Not available."""


class SAC(metaclass=_Absent):
    """Not available."""


class TD3(metaclass=_Absent):
    """Not available."""


class HerReplayBuffer(metaclass=_Absent):
    """Not available."""


class ARS(metaclass=_Absent):
    """Not available."""


class CrossQ(metaclass=_Absent):
    """Not available."""


class QRDQN(metaclass=_Absent):
    """Not available."""


class TQC(metaclass=_Absent):
    """Not available."""


class TRPO(metaclass=_Absent):
    """Not available."""


class AsyncEval(metaclass=_Absent):
    """Not available."""
