"""The run doctor: signals, rules, findings and alerts."""

from surefoot._moved import moved_names

__getattr__ = moved_names(__name__, f"{__name__}.doctor")
