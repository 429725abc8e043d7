"""Types and clocks of ports: which values an edge may carry (kind, dtype, shape, tags), and in which ticks."""

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
    "curiosity": "a curiosity module (a handle)",
    "schedule": "a schedule of values",
    "trigger": "a trigger",
    "dict": "a table of numbers",
    "episodes": "finished episodes",
    "queries": "questions",
    "choices": "chosen tools",
    "results": "results of tools",
    "toolbox": "tools (a handle)",
    "encoder": "a text encoder (a handle)",
    "chooser": "a policy over tools (a handle)",
    "prompts": "prompts",
    "responses": "responses of a language model",
    "language": "a language model (a handle)",
}
# Values that a file can hold, such as the first one of a delay.
WRITABLE = frozenset({"any", "tensor", "number", "text", "flag", "trigger", "dict"})
# Handles are live objects: they are passed by reference and never serialised, so both ends stay in one process.
HANDLES = frozenset({"model", "world", "learner", "manager", "curiosity", "toolbox", "encoder", "chooser", "language"})


@dataclass(frozen=True, slots=True)
class Type:
    """The type of a port; None means unknown or irrelevant."""

    kind: str = "any"
    dtype: str | None = None
    shape: Shape | None = None
    parts: Parts | None = None
    """Parts of the observations; for a policy's output, of the observations that it acted on."""
    tags: frozenset[str] = frozenset()
    """Words such as raw and normalised on which both ends of an edge must agree."""
    choices: tuple[int, ...] | None = None
    """Numbers of discrete actions that an environment has or an agent chooses among."""

    def tagged(self, *tags: str) -> Type:
        """Return this type with `tags` instead of its tags."""
        return replace(self, tags=frozenset(tags))

    def __str__(self) -> str:
        words = [self.kind]
        if self.parts is not None:
            parts = ", ".join(f"{name} {_shape(shape)} {dtype}" for name, dtype, shape in self.parts)
            words.append(f"{{{parts}}}")
        if self.shape is not None:
            words.append(_shape(self.shape))
        if self.dtype is not None:
            words.append(self.dtype)
        return " ".join([*words, *sorted(self.tags)])

    def to_json(self) -> dict[str, Any]:
        """Return the type for the editor; fields that are unknown are left out."""
        fields = {
            "dtype": self.dtype,
            "shape": None if self.shape is None else list(self.shape),
            "parts": self.parts and {name: {"dtype": dtype, "shape": list(shape)} for name, dtype, shape in self.parts},
            "tags": sorted(self.tags) or None,
        }
        return {"kind": self.kind, "text": str(self)} | {k: value for k, value in fields.items() if value is not None}


ANY = Type()


def tensor(dtype: str | None = None, *shape: int | str) -> Type:
    """Return an array type; without sizes it has any shape."""
    return Type("tensor", dtype, shape or None)


def misfit(source: Type, target: Type) -> str | None:
    """Return None if a value of type `source` may enter a port of type `target`, else the reason as a sentence."""
    if "any" in (source.kind, target.kind):
        return None
    if source.kind != target.kind:
        # numpy treats numbers and flags as arrays without axes.
        if (source.kind, target.kind) in (("number", "tensor"), ("flag", "tensor")):
            return None
        return f"it takes {KINDS[target.kind]} but gets {KINDS[source.kind]}"
    if None not in (source.dtype, target.dtype) and source.dtype != target.dtype:
        return f"it takes {target.dtype} but gets {source.dtype}"
    if source.shape is not None and target.shape is not None and not _same_shape(source.shape, target.shape):
        return f"it takes {_shape(target.shape)} but gets {_shape(source.shape)}"
    if source.tags and target.tags and not source.tags & target.tags:
        return f"it takes {' or '.join(sorted(target.tags))} values but gets {' '.join(sorted(source.tags))} ones"
    if source.parts is None or target.parts is None:
        return None
    has, needs = ({name: shape for name, _, shape in parts} for parts in (source.parts, target.parts))
    if set(has) != set(needs):
        return f"it takes the parts {', '.join(sorted(needs))} but gets {', '.join(sorted(has))}"
    for name, shape in needs.items():
        if not _same_shape(has[name], shape):
            return f"it takes {name} {_shape(shape)} but gets {_shape(has[name])}"
    return None


def _same_shape(a: Shape, b: Shape) -> bool:
    # A letter such as "N" stands for a size that is not known yet and fits any size.
    return len(a) == len(b) and all(
        isinstance(x, str) or isinstance(y, str) or x == y for x, y in zip(a, b, strict=True)
    )


def _shape(shape: Shape) -> str:
    return f"[{', '.join(map(str, shape))}]"


@dataclass(frozen=True, slots=True)
class Clock:
    """The ticks in which a port has a value: const (all), once (the first), tick (each), every(n), or when(another has)."""

    kind: str
    n: int = 1
    of: str = ""

    @property
    def rate(self) -> float:
        """Values per tick in the long run; for `when` the upper bound."""
        return {"const": 0.0, "once": 0.0, "tick": 1.0, "every": 1.0 / self.n, "when": 1.0}[self.kind]

    def __str__(self) -> str:
        argument = {"every": self.n, "when": self.of}.get(self.kind)
        return self.kind if argument is None else f"{self.kind}({argument})"


CONST, ONCE, TICK = Clock("const"), Clock("once"), Clock("tick")


def every(n: int) -> Clock:
    """Return the clock of one value per n ticks, in the last of them."""
    return TICK if n == 1 else Clock("every", n)


def when(port: str) -> Clock:
    """Return the clock of values that come with those of `port`."""
    return Clock("when", of=port)


def may_meet(a: Clock, b: Clock) -> bool:
    """Return whether both can have a value in the same tick."""
    if "once" in (a.kind, b.kind):
        other = b if a.kind == "once" else a
        # every(n) has its first value in tick n - 1, which for n > 1 is not the first tick.
        return not (other.kind == "every" and other.n > 1)
    return True
