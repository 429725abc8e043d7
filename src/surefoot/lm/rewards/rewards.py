"""Rewards for responses: functions of prompt and response, torch modules, or weighted sums of them."""

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
    """The responses of one step, as text and as tokens."""

    prompts: list[str]
    responses: list[str]
    prompt_ids: list[np.ndarray]
    response_ids: list[np.ndarray]
    """Without the end token."""
    conversations: list[list[dict[str, str]]] = field(default_factory=list[list[dict[str, str]]])
    """All messages, the response as the last one."""
    rows: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    """The rows of the prompts file, with all its columns."""


@dataclass(frozen=True, slots=True)
class RewardPart:
    """One of several rewards."""

    name: str
    score: Callable[[RewardInputs], Sequence[float]]
    weight: float = 1.0


class Rewards:
    """The weighted sum of its parts; each part has `timeout` seconds per batch. `kind` is its name in errors."""

    def __init__(self, parts: Sequence[RewardPart], *, timeout: float = 300.0, kind: str = "reward") -> None:
        if not parts:
            raise ConfigError(f"there is no {kind}; pass a function, a module, or a list of them")
        names = [part.name for part in parts]
        if len(set(names)) < len(names):
            raise ConfigError(f"two {kind}s have the same name: {', '.join(names)}")
        self.parts, self.timeout, self.kind = list(parts), timeout, kind

    def __call__(self, inputs: RewardInputs) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return (sum [N], {name: scores [N]}). NaN stays NaN: training leaves such responses out and counts them."""
        each = {part.name: self._one(part, inputs) for part in self.parts}
        total = sum((part.weight * each[part.name] for part in self.parts), np.zeros(len(inputs.responses)))
        return np.asarray(total), each

    def _one(self, part: RewardPart, inputs: RewardInputs) -> np.ndarray:
        """Return the scores of one part. It may raise or hang without taking the run down."""
        box: dict[str, Any] = {}

        def compute() -> None:
            try:
                box["scores"] = part.score(inputs)
            except BaseException as why:  # raised in the waiting thread
                box["error"] = why

        if math.isinf(self.timeout):
            compute()
        else:
            # A daemon: a function that never returns must not keep the process alive.
            thread = threading.Thread(target=compute, daemon=True, name=f"reward {part.name}")
            thread.start()
            thread.join(self.timeout)
            if thread.is_alive():
                raise RewardError(
                    f"the {self.kind} {part.name} did not return within {self.timeout:g} s for {len(inputs.responses)} "
                    "responses; nothing of this step was learned. Raise reward_timeout if it needs longer"
                )
        if "error" in box:
            why = box["error"]
            # Ctrl-C in a reward must end the run, not look like a faulty reward.
            if isinstance(why, RewardError | KeyboardInterrupt):
                raise why
            raise RewardError(f"the {self.kind} {part.name} raised {type(why).__name__}: {why}") from why
        return _numbers(box["scores"], f"the {self.kind} {part.name}", len(inputs.responses))


def _numbers(scores: Any, name: str, count: int) -> np.ndarray:
    if isinstance(scores, Tensor):
        scores = scores.detach().float().cpu().numpy()
    try:
        numbers = np.asarray([math.nan if x is None else float(x) for x in scores], dtype=np.float64)
    except (TypeError, ValueError) as why:
        raise RewardError(f"{name} returned {scores!r:.120}; it must return one number per response") from why
    if len(numbers) != count:
        raise RewardError(f"{name} returned {len(numbers)} numbers for {count} responses")
    return numbers


def as_rewards(
    reward: Any, *, timeout: float = 300.0, device: torch.device | None = None, pad: int = 0, kind: str = "reward"
) -> Rewards:
    """Return `Rewards` for a function, a module, a list of them, or {name: (reward, weight)}."""
    if isinstance(reward, Rewards):
        return reward
    if isinstance(reward, Mapping):
        parts: list[RewardPart] = []
        for name, entry in reward.items():
            function, weight = entry if isinstance(entry, tuple) else (entry, 1.0)
            parts.append(RewardPart(str(name), _scorer(function, device, pad, kind), float(weight)))
        return Rewards(parts, timeout=timeout, kind=kind)
    several: list[Any] = list(reward) if isinstance(reward, list | tuple) else [reward]
    parts = [RewardPart(_name(f, i), _scorer(f, device, pad, kind)) for i, f in enumerate(several)]
    return Rewards(parts, timeout=timeout, kind=kind)


def _name(function: Any, number: int) -> str:
    named = getattr(function, "__name__", None) or type(function).__name__
    return str(named) if number == 0 else f"{named}_{number}"


# Parameter names that a reward or judge may have, and the field of `RewardInputs` that each receives.
_PARAMETERS = {"prompt": "prompts", "response": "responses", "conversation": "conversations", "row": "rows"}


def _scorer(
    function: Any, device: torch.device | None, pad: int, kind: str
) -> Callable[[RewardInputs], Sequence[float]]:
    """Return a function of `RewardInputs`. Singular names receive one response per call, plural names the batch."""
    if isinstance(function, nn.Module):
        return lambda inputs: _by_module(function, inputs, device, pad)
    takes = f"it must take (prompt, response), or any of {', '.join(_PARAMETERS)} by name, or their plurals for a batch"
    if not callable(function):
        raise ConfigError(f"{function!r} is not a {kind}; pass a torch module or a function: {takes}")
    call: Function = function
    required = [
        p.name
        for p in inspect.signature(call).parameters.values()
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    # Two parameters of any name are the prompt and the response.
    known = {*_PARAMETERS, *_PARAMETERS.values()}
    names = ["prompt", "response"] if len(required) == 2 and not set(required) <= known else required
    batch = {name in _PARAMETERS.values() for name in names}
    if not names or not set(names) <= known or len(batch) != 1:
        raise ConfigError(f"the {kind} {_name(function, 0)} takes ({', '.join(required)}); {takes}")
    if batch == {True}:
        return lambda inputs: call(*(getattr(inputs, name) for name in names))
    return lambda inputs: [
        call(*one) for one in zip(*(getattr(inputs, _PARAMETERS[name]) for name in names), strict=True)
    ]


@torch.no_grad()
def _by_module(module: nn.Module, inputs: RewardInputs, device: torch.device | None, pad: int) -> list[float]:
    """Return `module(input_ids, attention_mask)`, [B], of the sampled tokens, padded on the right."""
    # The sampled tokens themselves: encoding the text again can give others.
    rows = [np.concatenate([p, r]) for p, r in zip(inputs.prompt_ids, inputs.response_ids, strict=True)]
    size = max(len(row) for row in rows)
    ids = torch.full((len(rows), size), pad, dtype=torch.int64, device=device)
    mask = torch.zeros_like(ids)
    for i, row in enumerate(rows):
        ids[i, : len(row)], mask[i, : len(row)] = torch.from_numpy(row), 1
    training = module.training
    module.eval()
    try:
        scores: Tensor = module(ids, mask)
    finally:
        module.train(training)
    if scores.shape != (len(rows),):
        raise RewardError(f"the reward module returned {list(scores.shape)}; it must return [B] = [{len(rows)}]")
    return scores.float().tolist()


@dataclass(slots=True)
class ScoreScale:
    """Scales scores for learning: to mean 0 and standard deviation 1 over all so far if `normalize`, then clips them."""

    normalize: bool = False
    clip: float | None = None
    count: float = 0.0
    mean: float = 0.0
    m2: float = 0.0

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """Add the scores to the statistics and return them scaled; NaN stays NaN and is not counted."""
        if self.normalize:
            # Welford's algorithm: a sum of squares would cancel for large means.
            for x in scores[np.isfinite(scores)]:
                self.count += 1
                delta = x - self.mean
                self.mean += delta / self.count
                self.m2 += delta * (x - self.mean)
            deviation = math.sqrt(self.m2 / self.count) if self.count > 1 else 0.0
            scores = (scores - self.mean) / (deviation if deviation > 1e-8 else 1.0)
        return scores if self.clip is None else np.clip(scores, -self.clip, self.clip)

    def state(self) -> dict[str, float]:
        """Return the running statistics."""
        return {"count": self.count, "mean": self.mean, "m2": self.m2}

    def set_state(self, state: Mapping[str, float]) -> None:
        """Restore what `state` returned."""
        self.count, self.mean, self.m2 = state["count"], state["mean"], state["m2"]


def repetition(tokens: Sequence[int]) -> float:
    """Return the share of bigrams that occurred before in the response; 0 if nothing repeats."""
    pairs = list(itertools.pairwise(tokens))
    return 1.0 - len(set(pairs)) / len(pairs) if pairs else 0.0


# Nats per token that count as fluent in any case: large models write English at 2 to 3, so a rise from 0.8 to 1.3 ruins nothing.
FLUENT_NLL = 1.5


@dataclass(slots=True)
class ResponseDrift:
    """Changes of length and repetition since the first step: signs of an over-optimised reward."""

    first: dict[str, float] = field(default_factory=dict[str, float])

    def see(self, **now: float) -> dict[str, float]:
        """Return {name_drift: current / first} for length and nll, current - first for shares."""
        for name, x in now.items():
            self.first.setdefault(name, x)
        then = self.first | {name: max(x, FLUENT_NLL) for name, x in self.first.items() if name == "nll"}
        return {
            f"{name}_drift": x / then[name] if name in ("length", "nll") and then[name] > 0 else x - then[name]
            for name, x in now.items()
        }
