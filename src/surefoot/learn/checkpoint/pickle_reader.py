"""A pickle is a program for a stack machine. This one walks it and runs nothing: a name is a word to it, never a thing.

What the words mean is for the `Meaning` to say, which makes plain data of some and refuses the others. Steps that are not
known here, or not asked for, end the reading.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Protocol

from surefoot.errors import CheckpointCorrupt

LARGEST = 4 << 20
"""Bytes of a program that are read at most."""
OBJECTS = frozenset(bytes([code]) for code in b"]ae0GCB\x81\x8e\x96")
"""Steps for lists, floats, bytes and objects, which a dict of tensors does without."""


@dataclass(frozen=True, slots=True)
class Name:
    """What would be imported."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


class Meaning(Protocol):
    """What the words of a program stand for. Everything may raise CheckpointCorrupt."""

    def name(self, module: str, name: str) -> Name:
        """A name that is met."""
        ...

    def made(self, function: Any, arguments: Any) -> Any:
        """What stands for the result of a call."""
        ...

    def stated(self, thing: Any, state: Any) -> None:
        """`thing` is told its state."""
        ...

    def referred(self, said: Any) -> Any:
        """What is kept outside of the program."""
        ...


class _Mark:
    pass


def walk(program: bytes, meaning: Meaning, what: str, *, more: frozenset[bytes] = frozenset()) -> Any:
    """What a program leaves on the stack; `more` are steps besides those of a dict of tensors."""
    if len(program) > LARGEST:
        raise CheckpointCorrupt(f"{what}: its description has {len(program):,} bytes; at most {LARGEST:,} are read")
    try:
        return _Machine(program, meaning, more).run()
    except CheckpointCorrupt as why:
        raise CheckpointCorrupt(f"{what}: {why}") from why
    except (IndexError, KeyError, TypeError, ValueError, struct.error, UnicodeDecodeError, AttributeError) as why:
        raise CheckpointCorrupt(f"{what}: its description makes no sense ({type(why).__name__}: {why})") from why


class _Machine:
    """A stack machine of some forty steps."""

    def __init__(self, program: bytes, meaning: Meaning, more: frozenset[bytes]) -> None:
        self.program, self.at, self.meaning, self.more = program, 0, meaning, more
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        """What is on top in the end."""
        while True:
            step = self._take(1)
            if step == b".":
                (result,) = self.stack
                return result
            if step in OBJECTS:
                if step not in self.more:
                    raise self._refusal(step)
                self._do_object(step)
            else:
                self._do(step)

    def _do(self, step: bytes) -> None:
        stack = self.stack
        match step:
            case b"\x80":
                if self._take(1)[0] > 5:
                    raise CheckpointCorrupt("its description is of an unknown version")
            case b"\x95":
                self._take(8)
            case b"(":
                stack.append(_Mark())
            case b"}":
                stack.append({})
            case b")":
                stack.append(())
            case b"N":
                stack.append(None)
            case b"\x88" | b"\x89":
                stack.append(step == b"\x88")
            case b"K" | b"M" | b"J":
                size, form = {b"K": (1, "<B"), b"M": (2, "<H"), b"J": (4, "<i")}[step]
                stack.append(struct.unpack(form, self._take(size))[0])
            case b"\x8a":
                stack.append(int.from_bytes(self._take(self._take(1)[0]), "little", signed=True))
            case b"X" | b"\x8c":
                size = struct.unpack("<I", self._take(4))[0] if step == b"X" else self._take(1)[0]
                stack.append(self._take(size).decode("utf-8"))
            case b"q" | b"r":
                self.memo[self._index(step == b"q")] = stack[-1]
            case b"\x94":
                self.memo[len(self.memo)] = stack[-1]
            case b"h" | b"j":
                stack.append(self.memo[self._index(step == b"h")])
            case b"t":
                stack.append(tuple(self._since_mark()))
            case b"\x85" | b"\x86" | b"\x87":
                parts = [stack.pop() for _ in range(step[0] - 0x84)]
                stack.append(tuple(reversed(parts)))
            case b"s":
                value, key = stack.pop(), stack.pop()
                self._put(stack[-1], [key, value])
            case b"u":
                pairs = self._since_mark()
                self._put(stack[-1], pairs)
            case b"c":
                stack.append(self.meaning.name(self._line(), self._line()))
            case b"\x93":
                name, module = stack.pop(), stack.pop()
                stack.append(self.meaning.name(str(module), str(name)))
            case b"Q":
                stack.append(self.meaning.referred(stack.pop()))
            case b"R":
                arguments, function = stack.pop(), stack.pop()
                stack.append(self.meaning.made(function, arguments))
            case b"b":
                state = stack.pop()
                self.meaning.stated(stack[-1], state)
            case _:
                raise self._refusal(step)

    def _do_object(self, step: bytes) -> None:
        stack = self.stack
        match step:
            case b"]":
                stack.append([])
            case b"a" | b"e":
                items = [stack.pop()] if step == b"a" else self._since_mark()
                if not isinstance(stack[-1], list):
                    raise CheckpointCorrupt("its description puts items into something that is no list")
                stack[-1] += items
            case b"0":
                stack.pop()
            case b"G":
                stack.append(struct.unpack(">d", self._take(8))[0])
            case b"\x81":
                arguments, kind = stack.pop(), stack.pop()
                stack.append(self.meaning.made(kind, arguments))
            case _:
                form = {b"C": "<B", b"B": "<I", b"\x8e": "<Q", b"\x96": "<Q"}[step]
                size = struct.unpack(form, self._take(struct.calcsize(form)))[0]
                stack.append(self._take(size))

    def _refusal(self, step: bytes) -> CheckpointCorrupt:
        return CheckpointCorrupt(f"its description has the step {step!r}, which nothing that is read here needs")

    def _take(self, size: int) -> bytes:
        found = self.program[self.at : self.at + size]
        if len(found) != size:
            raise CheckpointCorrupt("its description ends in the middle")
        self.at += size
        return found

    def _line(self) -> str:
        end = self.program.find(b"\n", self.at, self.at + 200)
        if end < 0:
            raise CheckpointCorrupt("its description has a name without an end")
        return self._take(end + 1 - self.at)[:-1].decode("ascii")

    def _index(self, short: bool) -> int:
        return self._take(1)[0] if short else struct.unpack("<I", self._take(4))[0]

    def _since_mark(self) -> list[Any]:
        for place in range(len(self.stack) - 1, -1, -1):
            if isinstance(self.stack[place], _Mark):
                found = self.stack[place + 1 :]
                del self.stack[place:]
                return found
        raise CheckpointCorrupt("its description ends a list that never began")

    def _put(self, into: Any, pairs: list[Any]) -> None:
        if not isinstance(into, dict) or len(pairs) % 2:
            raise CheckpointCorrupt("its description puts pairs into something that is no dict")
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            if not isinstance(key, str):
                raise CheckpointCorrupt(f"its description has the key {key!r}; keys are names")
            into[key] = value
