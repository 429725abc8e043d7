"""What a response is worth: any function of prompt and response, any module, several of them weighted."""

from __future__ import annotations

import inspect
import itertools
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from surefoot.errors import ConfigError, RewardError

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class RewardInputs:
    """One step's responses as text and as tokens."""

    prompts: list[str]
    responses: list[str]
    prompt_ids: list[np.ndarray]
    response_ids: list[np.ndarray]
    """Without the end token."""


@dataclass(frozen=True, slots=True)
class RewardPart:
    """One reward of several."""

    name: str
    score: Callable[[RewardInputs], Sequence[float]]
    weight: float = 1.0


class Rewards:
    """The weighted sum of its parts, each within `timeout` seconds a batch."""

    def __init__(self, parts: Sequence[RewardPart], *, timeout: float = 300.0) -> None:
        if not parts:
            raise ConfigError("there is no reward; give a function, a module, or several of them")
        names = [part.name for part in parts]
        if len(set(names)) < len(names):
            raise ConfigError(f"two rewards have the same name: {', '.join(names)}")
        self.parts, self.timeout = list(parts), timeout

    def __call__(self, said: RewardInputs) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """(sum [N], {name: its own [N]}). NaN is handed on: whoever learns leaves such responses out and counts them."""
        each = {part.name: self._one(part, said) for part in self.parts}
        total = sum((part.weight * each[part.name] for part in self.parts), np.zeros(len(said.responses)))
        return np.asarray(total), each

    def _one(self, part: RewardPart, said: RewardInputs) -> np.ndarray:
        """Ask one function; it may raise or never come back, and must not take the run with it."""
        box: dict[str, Any] = {}

        def ask() -> None:
            try:
                box["scores"] = part.score(said)
            except BaseException as why:  # handed to the thread that waits
                box["error"] = why

        if math.isinf(self.timeout):
            ask()
        else:
            # A daemon: a function that never returns must not keep the process alive.
            asking = threading.Thread(target=ask, daemon=True, name=f"reward {part.name}")
            asking.start()
            asking.join(self.timeout)
            if asking.is_alive():
                raise RewardError(
                    f"the reward {part.name} gave no answer within {self.timeout:g} s for {len(said.responses)} responses; "
                    "nothing of this step was learned. Raise reward_timeout if it needs longer"
                )
        if "error" in box:
            why = box["error"]
            if isinstance(why, RewardError | KeyboardInterrupt):
                raise why
            raise RewardError(f"the reward {part.name} raised {type(why).__name__}: {why}") from why
        return _numbers(box["scores"], part.name, len(said.responses))


def _numbers(scores: Any, name: str, count: int) -> np.ndarray:
    if isinstance(scores, Tensor):
        scores = scores.detach().float().cpu().numpy()
    try:
        found = np.asarray([math.nan if x is None else float(x) for x in scores], dtype=np.float64)
    except (TypeError, ValueError) as why:
        raise RewardError(f"the reward {name} gave {scores!r:.120}; it must give one number a response") from why
    if len(found) != count:
        raise RewardError(f"the reward {name} gave {len(found)} numbers for {count} responses")
    return found


def as_rewards(given: Any, *, timeout: float = 300.0, device: torch.device | None = None, pad: int = 0) -> Rewards:
    """Rewards out of what people have: a function, a module, a list of either, or {name: (reward, weight)}."""
    if isinstance(given, Rewards):
        return given
    if isinstance(given, Mapping):
        parts: list[RewardPart] = []
        for name, entry in given.items():
            function, weight = entry if isinstance(entry, tuple) else (entry, 1.0)
            parts.append(RewardPart(str(name), _scorer(function, device, pad), float(weight)))
        return Rewards(parts, timeout=timeout)
    several: list[Any] = list(given) if isinstance(given, list | tuple) else [given]
    return Rewards([RewardPart(_name(f, i), _scorer(f, device, pad)) for i, f in enumerate(several)], timeout=timeout)


def _name(function: Any, number: int) -> str:
    named = getattr(function, "__name__", None) or type(function).__name__
    return str(named) if number == 0 else f"{named}_{number}"


def _scorer(function: Any, device: torch.device | None, pad: int) -> Callable[[RewardInputs], Sequence[float]]:
    if isinstance(function, nn.Module):
        return lambda said: _by_module(function, said, device, pad)
    if not callable(function):
        raise ConfigError(f"{function!r} is no reward; give a function of (prompt, response) or a torch module")
    asked: Function = function
    names = [*inspect.signature(asked).parameters]
    if len(names) < 2:
        raise ConfigError(f"the reward {_name(function, 0)} takes {names}; it must take (prompt, response)")
    if names[0] == "prompts":  # all at once
        return lambda said: asked(said.prompts, said.responses)
    return lambda said: [asked(p, r) for p, r in zip(said.prompts, said.responses, strict=True)]


@torch.no_grad()
def _by_module(module: nn.Module, said: RewardInputs, device: torch.device | None, pad: int) -> list[float]:
    """`module(input_ids, attention_mask) → [B]`, on the tokens that were sampled, padded on the right."""
    rows = [np.concatenate([p, r]) for p, r in zip(said.prompt_ids, said.response_ids, strict=True)]
    size = max(len(row) for row in rows)
    ids = torch.full((len(rows), size), pad, dtype=torch.int64, device=device)
    mask = torch.zeros_like(ids)
    for i, row in enumerate(rows):
        ids[i, : len(row)], mask[i, : len(row)] = torch.from_numpy(row), 1
    was = module.training
    module.eval()
    try:
        scores: Tensor = module(ids, mask)
    finally:
        module.train(was)
    if scores.shape != (len(rows),):
        raise RewardError(f"the reward module gave {list(scores.shape)}; it must give [B] = [{len(rows)}]")
    return scores.float().tolist()


@dataclass(slots=True)
class ScoreScale:
    """Scores as learning sees them: mean 0 and deviation 1 over all so far if `normalize`, then held to ± `clip`."""

    normalize: bool = False
    clip: float | None = None
    count: float = 0.0
    mean: float = 0.0
    m2: float = 0.0

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Take the scores in and give them back; NaN stays NaN and is not counted."""
        if self.normalize:
            for x in scores[np.isfinite(scores)]:
                self.count += 1
                delta = x - self.mean
                self.mean += delta / self.count
                self.m2 += delta * (x - self.mean)
            deviation = math.sqrt(self.m2 / self.count) if self.count > 1 else 0.0
            scores = (scores - self.mean) / (deviation if deviation > 1e-8 else 1.0)
        return scores if self.clip is None else np.clip(scores, -self.clip, self.clip)

    def state(self) -> dict[str, float]:
        """What it has seen."""
        return {"count": self.count, "mean": self.mean, "m2": self.m2}

    def set_state(self, state: Mapping[str, float]) -> None:
        """Go on from there."""
        self.count, self.mean, self.m2 = state["count"], state["mean"], state["m2"]


def repetition(tokens: Sequence[int]) -> float:
    """Share of a response's bigrams that were there before; 0 for text that never repeats itself."""
    pairs = list(itertools.pairwise(tokens))
    return 1.0 - len(set(pairs)) / len(pairs) if pairs else 0.0


def distinct(responses: Sequence[Sequence[int]], n: int = 2) -> float:
    """Distinct n-grams over all n-grams of all responses: falls when everybody says the same."""
    grams = [tuple(r[i : i + n]) for r in responses for i in range(len(r) - n + 1)]
    return len(set(grams)) / len(grams) if grams else 1.0


@dataclass(slots=True)
class ResponseDrift:
    """How length and repetition compare with the first step's: what a policy does that games its reward."""

    first: dict[str, float] = field(default_factory=dict[str, float])

    def see(self, **now: float) -> dict[str, float]:
        """{name_drift: now over then} for positive numbers, now minus then for shares."""
        for name, x in now.items():
            self.first.setdefault(name, x)
        then = self.first
        return {
            f"{name}_drift": x / then[name] if name == "length" and then[name] > 0 else x - then[name]
            for name, x in now.items()
        }
