"""Directive-023, a prompt-mutation server: its trainer class and its eight endpoints."""

from typing import TYPE_CHECKING

from surefoot._lazy import lazy_names

if TYPE_CHECKING:
    from surefoot.compat.directive023.endpoints import Directive023 as Directive023
    from surefoot.compat.directive023.trainer import Experience as Experience
    from surefoot.compat.directive023.trainer import PPOConfig as PPOConfig
    from surefoot.compat.directive023.trainer import PPOTrainer as PPOTrainer

__getattr__, __dir__ = lazy_names(__name__)
