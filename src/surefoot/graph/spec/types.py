"""What may go along an edge: kind, dtype, shape, tags; and how often something does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

Shape = tuple[int | str, ...]
Parts = tuple[tuple[str, str, Shape], ...]
"""(name, dtype, shape) of each part of an observation, sorted by name."""

KINDS = {
    "any": "anything",
    "obs": "observations",
    "tensor": "an array",
    "number": "a number",
    "text": "text",
    "flag": "true or false",
    "policy_output": "a policy's output (action, value, log_prob, action_params)",
    "model": "a network (a handle)",
    "world": "an environment (a handle)",
    "learner": "a learner (a handle)",
    "manager": "a manager of sub-goals (a handle)",
    "curiosity": "a source of curiosity (a handle)",
    "schedule": "a schedule of values",
    "trigger": "a trigger",
    "dict": "a table of numbers",
    "episodes": "finished episodes",
    "queries": "questions",
    "choices": "chosen tools",
    "results": "answers of tools",
    "toolbox": "tools (a handle)",
    "encoder": "an encoder of texts (a handle)",
    "chooser": "a policy over tools (a handle)",
    "prompts": "prompts",
    "responses": "responses of a language model",
    "language": "a language model (a handle)",
}
HANDLES = frozenset({"model", "world", "learner", "manager", "curiosity", "toolbox", "encoder", "chooser", "language"})
"""What is shared rather than sent: the nodes at both ends stay in one process."""


@dataclass(frozen=True, slots=True)
class Type:
    """What a port takes or gives; None where it is not known or does not matter."""

    kind: str = "any"
    dtype: str | None = None
    shape: Shape | None = None
    parts: Parts | None = None
    """Of observations, and of the observations that a policy's output belongs to."""
    tags: frozenset[str] = frozenset()
    """Words such as raw and normalised that two ends of an edge must agree on."""

    def tagged(self, *tags: str) -> Type:
        """The same with these tags in place of its own."""
        return replace(self, tags=frozenset(tags))

    def __str__(self) -> str:
        words = [self.kind]
        if self.parts is not None:
            inside = ", ".join(f"{name} {_shape(shape)} {dtype}" for name, dtype, shape in self.parts)
            words.append(f"{{{inside}}}")
        if self.shape is not None:
            words.append(_shape(self.shape))
        if self.dtype is not None:
            words.append(self.dtype)
        return " ".join([*words, *sorted(self.tags)])

    def to_json(self) -> dict[str, Any]:
        """For the editor."""
        told: dict[str, Any] = {"kind": self.kind, "text": str(self)}
        if self.dtype is not None:
            told["dtype"] = self.dtype
        if self.shape is not None:
            told["shape"] = list(self.shape)
        if self.parts is not None:
            told["parts"] = {name: {"dtype": dtype, "shape": list(shape)} for name, dtype, shape in self.parts}
        if self.tags:
            told["tags"] = sorted(self.tags)
        return told


ANY = Type()


def tensor(dtype: str | None = None, *shape: int | str) -> Type:
    """An array; without a shape, of any."""
    return Type("tensor", dtype, shape or None)


def misfit(given: Type, wanted: Type) -> str | None:
    """None if `given` may go where `wanted` is asked for, else a sentence that says why not."""
    if "any" in (given.kind, wanted.kind):
        return None
    if given.kind != wanted.kind:
        if (given.kind, wanted.kind) in (("number", "tensor"), ("flag", "tensor")):
            return None
        return f"it takes {KINDS[wanted.kind]} and was given {KINDS[given.kind]}"
    if None not in (given.dtype, wanted.dtype) and given.dtype != wanted.dtype:
        return f"it takes {wanted.dtype} and was given {given.dtype}"
    if given.shape is not None and wanted.shape is not None and not _same_shape(given.shape, wanted.shape):
        return f"it takes {_shape(wanted.shape)} and was given {_shape(given.shape)}"
    if given.tags and wanted.tags and not given.tags & wanted.tags:
        return (
            f"it takes what is {' or '.join(sorted(wanted.tags))} and was given what is {' '.join(sorted(given.tags))}"
        )
    if given.parts is not None and wanted.parts is not None:
        return _misfit_parts(given.parts, wanted.parts)
    return None


def _misfit_parts(given: Parts, wanted: Parts) -> str | None:
    has, needs = {name: shape for name, _, shape in given}, {name: shape for name, _, shape in wanted}
    if set(has) != set(needs):
        return f"it takes the parts {', '.join(sorted(needs))} and was given {', '.join(sorted(has))}"
    for name, shape in needs.items():
        if not _same_shape(has[name], shape):
            return f"it takes {name} {_shape(shape)} and was given {_shape(has[name])}"
    return None


def _same_shape(a: Shape, b: Shape) -> bool:
    return len(a) == len(b) and all(
        isinstance(x, str) or isinstance(y, str) or x == y for x, y in zip(a, b, strict=True)
    )


def _shape(shape: Shape) -> str:
    return f"[{', '.join(map(str, shape))}]"


@dataclass(frozen=True, slots=True)
class Clock:
    """When a value is there: always (const), in the first tick (once), in every tick, every n ticks, or when another is."""

    kind: str
    n: int = 1
    of: str = ""

    @property
    def rate(self) -> float:
        """Values a tick in the long run; at most that for `when`."""
        return {"const": 0.0, "once": 0.0, "tick": 1.0, "every": 1.0 / self.n, "when": 1.0}[self.kind]

    def __str__(self) -> str:
        match self.kind:
            case "every":
                return f"every({self.n})"
            case "when":
                return f"when({self.of})"
            case kind:
                return kind


CONST, ONCE, TICK = Clock("const"), Clock("once"), Clock("tick")


def every(n: int) -> Clock:
    """Once in n ticks, in the last of them."""
    return TICK if n == 1 else Clock("every", n)


def when(port: str) -> Clock:
    """Whenever that port has something to say."""
    return Clock("when", of=port)


def may_meet(a: Clock, b: Clock) -> bool:
    """True if both can have a value in the same tick."""
    if "once" in (a.kind, b.kind):
        other = b if a.kind == "once" else a
        return not (other.kind == "every" and other.n > 1)  # the first tick is never the last of several
    return True
