"""sb3-contrib's env wrappers under one path."""

from __future__ import annotations

from surefoot.compat.sb3.contrib.masks import ActionMasker
from surefoot.compat.sb3.contrib.time_feature import TimeFeatureWrapper

__all__ = ["ActionMasker", "TimeFeatureWrapper"]
