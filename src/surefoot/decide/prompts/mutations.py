"""The five mutations, by name and by number, and which of them make sense for a prompt."""

from __future__ import annotations

import numpy as np

from surefoot.decide.prompts import constrain, decompose, expand, fallback, reduce
from surefoot.decide.prompts.classify import Category, classify
from surefoot.decide.prompts.variation import PromptVariation
from surefoot.errors import ConfigError

MUTATIONS = (fallback.NAME, reduce.NAME, expand.NAME, constrain.NAME, decompose.NAME)
"""In the order of their numbers on the wire."""
STOP = "stop"
ACTIONS = (*MUTATIONS, STOP)
"""What a policy chooses from: leaving the prompt as it is comes last."""

_POSSIBLE = (fallback.possible, reduce.possible, expand.possible, constrain.possible, decompose.possible)


def mutate(prompt: str, mutation: str | int, *, category: Category | None = None, seed: int = 0) -> PromptVariation:
    """The prompt after a mutation. The same prompt, mutation and seed give the same text."""
    name = MUTATIONS[mutation] if isinstance(mutation, int) and 0 <= mutation < len(MUTATIONS) else mutation
    if name == constrain.NAME:
        return constrain.apply(prompt, category or classify(prompt).category, seed)
    for module in (fallback, reduce, expand, decompose):
        if name == module.NAME:
            return module.apply(prompt)
    raise ConfigError(
        f"there is no mutation {mutation!r}; there are {', '.join(MUTATIONS)} (0 to {len(MUTATIONS) - 1})"
    )


def allowed(prompt: str) -> np.ndarray:
    """[6] bool over ACTIONS: where a mutation would do nothing, or do again what was done, it is not offered."""
    return np.array([*(possible(prompt) for possible in _POSSIBLE), True])
