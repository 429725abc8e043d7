"""Reading pickles without unpickling: the values that pickle itself would give, and refusals instead of calls."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from surefoot.errors import CheckpointCorrupt
from surefoot.learn.checkpoint.pickle_reader import LARGEST, OBJECTS, Name, read_pickle


class Recorder:
    """Allows every global and records what would be called."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    def name(self, module: str, name: str) -> Name:
        return Name(module, name)

    def call(self, function: Any, arguments: Any) -> Any:
        self.calls.append((str(function), arguments))
        return {}

    def set_state(self, target: Any, state: Any) -> None:
        target["state"] = state

    def persistent(self, reference: Any) -> Any:
        return ("stored", reference)


VALUES = [
    {"a": 1, "b": -7, "c": 300, "d": 70_000, "e": 2**70, "f": "text", "g": None, "h": True, "i": False},
    {"nested": {"tuple": (1, (2, 3), ()), "four": (1, 2, 3, 4)}, "same": ("x" * 300, "x" * 300)},
    {"list": [1, 2.5, [b"raw", b"x" * 300]], "empty": []},
]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("value", VALUES, ids=["scalars", "tuples", "lists"])
def test_plain_values_are_those_that_pickle_gives(value, protocol):
    if protocol == 2 and "list" in value:
        value = {"list": [1, 2.5, []]}  # protocol 2 writes bytes as a call
    program = pickle.dumps(value, protocol=protocol)
    assert read_pickle(program, Recorder(), "x", more=OBJECTS) == pickle.loads(program)


def test_a_call_is_handed_to_the_handler_and_not_made():
    handler = Recorder()
    read_pickle(pickle.dumps(complex(1.0, 2.0)), handler, "x", more=OBJECTS)
    assert handler.calls == [("builtins.complex", (1.0, 2.0))]


def test_lists_and_floats_need_to_be_allowed():
    with pytest.raises(CheckpointCorrupt, match="x: its pickle has the opcode EMPTY_LIST"):
        read_pickle(pickle.dumps([1]), Recorder(), "x")


@pytest.mark.parametrize(
    "program",
    [b"", b"\x80\x04", b"\x80\x06N.", b"N", b"NN.", b"t.", b"h\x00.", b"\xff.", b"(Nu.", b"}K\x01Ns.", b"S'old'\n."],
    ids=[
        "empty",
        "cut",
        "protocol",
        "no stop",
        "two results",
        "no mark",
        "no memo",
        "no opcode",
        "no dict",
        "key",
        "old",
    ],
)
def test_a_damaged_program_is_refused_with_the_name_of_the_file(program):
    with pytest.raises(CheckpointCorrupt, match=r"^weights\.pt: its pickle"):
        read_pickle(program, Recorder(), "weights.pt")


def test_a_program_that_is_too_long_is_not_read():
    with pytest.raises(CheckpointCorrupt, match="at most 4,194,304 are read"):
        read_pickle(b"N" * (LARGEST + 1), Recorder(), "x")
