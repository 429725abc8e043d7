"""Encoders that map texts to unit vectors."""

from surefoot._moved import moved_names

__getattr__ = moved_names(__name__, f"{__name__}.encoder")
