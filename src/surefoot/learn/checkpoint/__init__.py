"""Checkpoints: writing, reading and retention, without pickle."""

from surefoot._moved import moved_names

__getattr__ = moved_names(__name__, f"{__name__}.checkpoint")
