"""Reads a pickle without unpickling it: globals are returned as strings, never imported, and nothing is called.

A pickle is a program for a stack machine. `pickletools.genops` splits it into opcodes and does not execute them; this
module keeps the stack. A `PickleHandler` decides what globals and calls stand for. Every opcode that is not listed here is
refused.
"""

from __future__ import annotations

import pickletools
from dataclasses import dataclass
from typing import Any, Protocol

from surefoot.errors import CheckpointCorrupt

# A thousand tensors take 0.1 MB (measured); the bound keeps a hostile file from filling memory.
LARGEST = 4 << 20
# Opcodes for lists, floats, bytes and objects. A dict of tensors has none of them.
OBJECTS = frozenset(
    {"EMPTY_LIST", "APPEND", "APPENDS", "POP", "BINFLOAT", "NEWOBJ"}
    | {"SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8"}
)
_MARK = object()


@dataclass(frozen=True, slots=True)
class Name:
    """A global that `pickle` would import."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


class PickleHandler(Protocol):
    """Decides what the parts of a program stand for. Every method may raise `CheckpointCorrupt`."""

    def name(self, module: str, name: str) -> Name:
        """Return the name of a global, if it is allowed."""
        ...

    def call(self, function: Any, arguments: Any) -> Any:
        """Return what stands for the result of a call."""
        ...

    def set_state(self, target: Any, state: Any) -> None: ...

    def persistent(self, reference: Any) -> Any:
        """Return an object that is stored outside of the program."""
        ...


def read_pickle(program: bytes, handler: PickleHandler, what: str, *, more: frozenset[str] = frozenset()) -> Any:
    """Return the object that a program leaves on the stack; `more` allows opcodes of `OBJECTS` besides the basic ones."""
    if len(program) > LARGEST:
        raise CheckpointCorrupt(f"{what}: its pickle has {len(program):,} bytes; at most {LARGEST:,} are read")
    try:
        stack: list[Any] = []
        memo: dict[int, Any] = {}
        for opcode, argument, _ in pickletools.genops(program):
            name = opcode.name
            if name in OBJECTS and name not in more:
                raise CheckpointCorrupt(f"its pickle has the opcode {name}, which a dict of tensors does not need")
            _execute(name, argument, stack, memo, handler)
        (result,) = stack
        return result
    except CheckpointCorrupt as why:
        raise CheckpointCorrupt(f"{what}: {why}") from why
    except (IndexError, KeyError, TypeError, ValueError, AttributeError) as why:
        raise CheckpointCorrupt(f"{what}: its pickle is damaged ({type(why).__name__}: {why})") from why


def _execute(name: str, argument: Any, stack: list[Any], memo: dict[int, Any], handler: PickleHandler) -> None:
    match name:
        case "PROTO":
            if argument > 5:
                raise CheckpointCorrupt(f"its pickle has the protocol {argument}; up to 5 are read")
        case "FRAME" | "STOP":
            pass
        case "MARK":
            stack.append(_MARK)
        case "EMPTY_DICT" | "EMPTY_LIST" | "EMPTY_TUPLE":
            stack.append({"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}[name]())
        case "NONE" | "NEWTRUE" | "NEWFALSE":
            stack.append({"NONE": None, "NEWTRUE": True, "NEWFALSE": False}[name])
        case "BININT" | "BININT1" | "BININT2" | "LONG1" | "BINFLOAT" | "BINUNICODE" | "SHORT_BINUNICODE":
            stack.append(argument)
        case "SHORT_BINBYTES" | "BINBYTES" | "BINBYTES8" | "BYTEARRAY8":
            stack.append(bytes(argument))
        case "BINPUT" | "LONG_BINPUT" | "MEMOIZE":
            memo[len(memo) if argument is None else argument] = stack[-1]
        case "BINGET" | "LONG_BINGET":
            stack.append(memo[argument])
        case "TUPLE":
            stack.append(tuple(_since_mark(stack)))
        case "TUPLE1" | "TUPLE2" | "TUPLE3":
            parts = [stack.pop() for _ in range(int(name[-1]))]
            stack.append(tuple(reversed(parts)))
        case "APPEND" | "APPENDS":
            items = [stack.pop()] if name == "APPEND" else _since_mark(stack)
            if not isinstance(stack[-1], list):
                raise CheckpointCorrupt("its pickle appends items to an object that is not a list")
            stack[-1] += items
        case "SETITEM" | "SETITEMS":
            pairs = [stack.pop(), stack.pop()][::-1] if name == "SETITEM" else _since_mark(stack)
            if not isinstance(stack[-1], dict):
                raise CheckpointCorrupt("its pickle sets items of an object that is not a dict")
            for key, value in zip(pairs[::2], pairs[1::2], strict=True):
                if not isinstance(key, str):
                    raise CheckpointCorrupt(f"its pickle has the key {key!r}; keys must be strings")
                stack[-1][key] = value
        case "POP":
            stack.pop()
        case "GLOBAL":
            module, _, attribute = argument.partition(" ")
            stack.append(handler.name(module, attribute))
        case "STACK_GLOBAL":
            attribute, module = stack.pop(), stack.pop()
            stack.append(handler.name(str(module), str(attribute)))
        case "BINPERSID":
            stack.append(handler.persistent(stack.pop()))
        case "REDUCE" | "NEWOBJ":
            arguments, function = stack.pop(), stack.pop()
            stack.append(handler.call(function, arguments))
        case "BUILD":
            state = stack.pop()
            handler.set_state(stack[-1], state)
        case _:
            raise CheckpointCorrupt(f"its pickle has the opcode {name}, which is not allowed")


def _since_mark(stack: list[Any]) -> list[Any]:
    """Remove and return everything above the topmost mark."""
    for i in range(len(stack) - 1, -1, -1):
        if stack[i] is _MARK:
            items = stack[i + 1 :]
            del stack[i:]
            return items
    raise CheckpointCorrupt("its pickle ends a list that never began")
