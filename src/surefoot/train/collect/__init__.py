"""Collection of rollouts from environments, replay and external loops."""

from surefoot._moved import moved_names

__getattr__ = moved_names(__name__, f"{__name__}.collector")
