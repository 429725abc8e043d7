"""Whatever is wrong with an argument is a Python exception, never a crash: every argument of every function is tried."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.native import kernel

REFUSALS = (TypeError, ValueError, IndexError, OverflowError, MemoryError)
T, N, INPUTS, OPTIONS = 4, 3, 4, 2
F, D, L = np.float32, np.float64, np.int64
KNOBS = (0.2, -1.0, 0.5, 0.01, 0.0, 0.5, -1.0, 1e-3, 0.0, 1e-5, 0.0, -1.0)
MAY_BE_NONE = {
    ("net_act", 4),
    ("net_learn", 8),
    ("net_learn", 9),
    ("net_log_probs", 4),
    ("tape_new", 3),
    ("tape_new", 4),
    ("tape_act", 5),
}
MAY_BE_NONE |= {("tape_note", 2), ("net_new", 9), ("net_new", 10), ("streams_begin", 1), ("streams_step", 6)}
MAY_BE_NONE |= {
    ("scan_forward", 5),
    ("scan_step", 5),
    ("scan_backward", 5),
    ("scan_backward", 11),
    ("scan_backward", 12),
}
ANY_SIZE = {("tape_note", 2)}
ANY_NUMBER = {("net_new", 8), ("net_point", 4), ("gae", 8), ("gae", 9)}
"""Numbers that have no wrong value within reach of the list below."""
WRONG_NUMBERS = (-1, -(2**40), 2**31, 2**32, 2**62, 2**63 - 1, -(2**63), 2**70, "7", None, 1.5, b"7")

_alive: list = []
"""What the last network and rollout point at, which the kernel does not keep alive."""


def calls(net_of) -> dict[str, list]:
    """A call of each function that is right in every argument."""
    net = net_of(inputs=INPUTS, sizes=(OPTIONS,))
    net.remember()
    kernel.net_keep(net.handle)
    shape = (T, N)
    rng = np.array([1, 2, 3, 4], np.uint64)
    row = lambda dtype=F, *more: np.zeros((N, *more), dtype)  # noqa: E731
    whole = lambda dtype=F, *more: np.zeros((*shape, *more), dtype)  # noqa: E731
    arrays = [whole(F, INPUTS), None, whole(L, 1), whole(L, 1), whole(), whole(), whole(), whole(D)]
    arrays += [whole(bool) for _ in range(4)]
    tape = kernel.tape_new(net.handle, *shape, *arrays)
    _alive[:] = [net, arrays]
    world = kernel.streams_new("CartPole-v1", N)
    kernel.streams_seed(world, rng)
    kernel.streams_begin(world, None, row(F, 4))
    addresses = np.array([[x.ctypes.data, *(s.ctypes.data for s in slots)]
                          for x, slots in zip(net.tensors, net.slots, strict=True)], np.uint64)  # fmt: skip
    learned = [row(F, INPUTS), row(L, 1), row(), row(), row(), row(), row(), np.ones((N, OPTIONS), bool)]
    tables = [np.zeros((4, 11)), np.zeros(4, np.int32)]
    low, high = np.full(2, -1, F), np.full(2, 1, F)
    gru, acting = ["base", 3, T, N, 2, whole(bool)], ["base", 3, 5, N, 2, row(bool)]
    forward = [
        whole(F, 6),
        row(F, 2),
        np.zeros((6, 2), F),
        np.zeros(6, F),
        whole(F, 2),
        row(F, 2),
        whole(F, 6),
        whole(F, 2),
    ]
    backward = [row(F, 2), np.zeros((6, 2), F), whole(F, 2), whole(F, 6), whole(F, 2), whole(F, 2), row(F, 2)]
    return {
        "net_new": ["base", INPUTS, (8,), (8,), 0, 0, 1, (2,), 0, low, high],
        "net_sizes": [net.handle],
        "net_point": [net.handle, addresses, 0, 0, 5.0],
        "net_pack": [net.handle],
        "net_keep": [net.handle],
        "net_restore": [net.handle],
        "net_act": [net.handle, rng, N, row(F, INPUTS), None, 0, row(L, 1), row(L, 1), row(), row()],
        "net_values": [net.handle, N, row(F, INPUTS), row()],
        "net_learn": [net.handle, N, *learned, np.array([[0, 1, 2], [2, 1, 0]]), np.array([1, 2]), 2, KNOBS, 0, 0, 0, *tables],
        "net_log_probs": [net.handle, N, *learned[:2], None, row()],
        "gae": [T, N, whole(), whole(), whole(), whole(bool), whole(bool), whole(bool), 0.9, 0.9, whole(), whole()],
        "describe": [N, row(), row(), row()],
        "tape_new": [net.handle, *shape, *arrays],
        "tape_act": [net.handle, rng, tape, 0, row(F, INPUTS), None],
        "tape_note": [tape, 0, row(F, INPUTS), row(D), row(bool), row(bool), np.ones(N, bool), row(D), row(L)],
        "tape_finish": [net.handle, tape, row(F, INPUTS)],
        "tape_collect": [net.handle, rng, tape, world, row(F, 4), row(bool), row(D), row(L), np.zeros((T * N, 4))],
        "scan_forward": [*gru, *forward],
        "scan_step": [*acting, row(F, 5), np.zeros((6, 5), F), np.zeros(6, F), *forward[1:4], row(F, 2), row(F, 2)],
        "scan_backward": [*gru, *backward, whole(F, 6), whole(F, 6), whole(F, 2), row(F, 2)],
        "function": ["base", 0, N, row(), row()],
        "multiply": ["base", 2, 3, 4, np.zeros((2, 4), F), np.zeros((4, 3), F), np.zeros((2, 3), F)],
        "env_describe": ["CartPole-v1"],
        "streams_new": ["CartPole-v1", N],
        "streams_seed": [world, rng],
        "streams_begin": [world, None, row(F, 4)],
        "streams_observe": [world, row(F, 4)],
        "streams_step": [world, row(L), row(F, 4), row(D), row(bool), row(bool), None],
        "streams_state": [world, np.zeros((4, N)), row(L), rng.copy()],
        "streams_set_state": [world, np.zeros((4, N)), row(L), rng.copy()],
    }  # fmt: skip


NAMES = [name for name in dir(kernel) if not name.startswith("_") and name != "instruction_sets"]


def wrong_ones(name: str, at: int, right: object) -> list:
    """Values that must be refused in place of `right`."""
    if isinstance(right, np.ndarray):
        flat = right.ravel()
        wrong = ["text", 7, [0.0], object(), right.T if right.ndim > 1 and min(right.shape) > 1 else 7]
        wrong.append(np.repeat(flat, 2)[::2])  # not contiguous
        if flat.itemsize > 1 and (name, at) not in ANY_SIZE:
            wrong.append(np.zeros(flat.nbytes + flat.itemsize, np.uint8)[1 : 1 + flat.nbytes].view(flat.dtype))
        if (name, at) not in ANY_SIZE:
            wrong += [flat[:-1], np.append(flat, flat[:1]), flat[:0]]
        return wrong if (name, at) in MAY_BE_NONE else [*wrong, None]
    if isinstance(right, str):
        return ["", "avx1024", "CartPole-v7", None, 0, "\ud800"]
    if isinstance(right, tuple):
        zeros = [(0,) * len(right)] if right is not KNOBS else []
        return [None, 3, "text", list(right), (*right, "x"), (1e9,), (2**40,), (1,) * 65, *zeros]
    if isinstance(right, float):
        return ["text", None, [], object()]
    if isinstance(right, int):
        return [x for x in WRONG_NUMBERS if (name, at) not in ANY_NUMBER or not isinstance(x, int) or x == 2**70]
    return [7, "text", object(), np.zeros(3, F)] + ([] if (name, at) in MAY_BE_NONE else [None])


def test_every_function_is_tried(net_of):
    assert sorted(calls(net_of)) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_right_call_is_taken(net_of, name):
    getattr(kernel, name)(*calls(net_of)[name])


@pytest.mark.parametrize("name", NAMES)
def test_each_wrong_argument_is_an_exception(net_of, name):
    arguments = calls(net_of)[name]
    for at, right in enumerate(arguments):
        for wrong in wrong_ones(name, at, right):
            with pytest.raises(REFUSALS):
                getattr(kernel, name)(*arguments[:at], wrong, *arguments[at + 1 :])
                pytest.fail(f"argument {at} of {name} may be {wrong!r}")


@pytest.mark.parametrize("name", NAMES)
def test_one_argument_too_few_or_too_many_is_an_exception(net_of, name):
    arguments = calls(net_of)[name]
    for some in (arguments[:-1], [*arguments, None], []):
        with pytest.raises(TypeError):
            getattr(kernel, name)(*some)


WRITTEN = {
    "net_act": (1, 6, 7, 8, 9),
    "net_values": (3,),
    "net_learn": (17, 18),
    "net_log_probs": (5,),
    "gae": (10, 11),
    "tape_new": (3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14),
    "tape_act": (1,),
    "tape_note": (7, 8),
    "tape_collect": (1, 4, 5, 6, 7, 8),
    "scan_forward": (10, 11, 12, 13),
    "scan_step": (12, 13),
    "scan_backward": (13, 14, 15, 16),
    "function": (4,),
    "multiply": (6,),
    "streams_step": (2, 3, 4, 5),
    "streams_state": (1, 2, 3),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_what_may_not_be_written_is_not_written(net_of, name):
    arguments = calls(net_of)[name]
    for at in WRITTEN[name]:
        locked = arguments[at].copy()
        locked.flags.writeable = False
        with pytest.raises((ValueError, BufferError)):
            getattr(kernel, name)(*arguments[:at], locked, *arguments[at + 1 :])


def test_a_network_without_weights_does_nothing(net_of):
    bare = kernel.net_new("base", INPUTS, (8,), (8,), 0, 0, 0, (OPTIONS,), 0, None, None)
    for name, at in {
        "net_pack": 0,
        "net_keep": 0,
        "net_act": 0,
        "net_values": 0,
        "net_learn": 0,
        "net_log_probs": 0,
        "tape_act": 0,
    }.items():
        arguments = calls(net_of)[name]
        with pytest.raises(ValueError, match="no weights yet"):
            getattr(kernel, name)(*arguments[:at], bare, *arguments[at + 1 :])


def test_an_address_that_is_missing_leaves_the_network_as_it_was(net_of):
    arguments = calls(net_of)["net_point"]
    bare = kernel.net_new("base", INPUTS, (8,), (8,), 0, 0, 0, (OPTIONS,), 0, None, None)
    missing = arguments[1].copy()
    missing[-1, 0] = 0
    with pytest.raises(ValueError, match="tensor 7 has no address"):
        kernel.net_point(bare, missing, 0, 0, 1.0)
    with pytest.raises(ValueError, match="no weights yet"):
        kernel.net_pack(bare)


def test_a_network_without_optimiser_memory_does_not_learn(net_of):
    arguments = calls(net_of)["net_learn"]
    net = net_of(inputs=INPUTS, sizes=(OPTIONS,))
    with pytest.raises(ValueError, match="optimiser's memory"):
        kernel.net_learn(net.handle, *arguments[1:])


@pytest.mark.parametrize(
    ("at", "wrong"),
    [
        (3, np.array([[0], [2], [0]])),
        (3, np.array([[0], [-1], [0]])),
        (10, np.array([[0, 1, 3], [2, 1, 0]])),
        (10, np.array([[0, -1, 2], [2, 1, 0]])),
        (11, np.array([1, 1])),
        (11, np.array([0, 3])),
        (11, np.array([4, -1])),
        (11, np.array([2**62, 2**62])),
    ],
    ids=str,
)
def test_numbers_that_point_outside_the_batch_are_refused(net_of, at, wrong):
    arguments = calls(net_of)["net_learn"]
    arguments[at] = wrong
    with pytest.raises(ValueError, match="none of 2 options|outside the batch"):
        kernel.net_learn(*arguments)


@pytest.mark.parametrize(
    "other", [{"inputs": 9}, {"sizes": (5,)}, {"sizes": (1, 1)}, {"head": "gaussian", "sizes": (2,)}], ids=str
)
def test_a_rollout_is_written_by_the_network_it_was_made_for(net_of, other):
    net = net_of(**({"inputs": INPUTS, "sizes": (OPTIONS,)} | other))
    for name, at in {"tape_act": 4, "tape_finish": 2, "tape_collect": 4}.items():
        arguments = calls(net_of)[name]
        arguments[0], arguments[at] = net.handle, np.zeros((N, net.inputs), F)
        with pytest.raises(ValueError, match="another network"):
            getattr(kernel, name)(*arguments)


@pytest.mark.parametrize("t", [-1, T, 2**40])
def test_a_step_outside_the_rollout_is_an_index_error(net_of, t):
    for name, at in {"tape_act": 3, "tape_note": 1}.items():
        arguments = calls(net_of)[name]
        arguments[at] = t
        with pytest.raises(IndexError, match="of a rollout of 4"):
            getattr(kernel, name)(*arguments)


@pytest.mark.parametrize("world", ["MountainCar-v0", "Pendulum-v1", "surefoot/CartPoleContinuous-v0"])
def test_a_world_that_takes_other_actions_is_not_stepped(net_of, world):
    arguments = calls(net_of)["tape_collect"]
    arguments[3] = kernel.streams_new(world, N)
    with pytest.raises(ValueError, match="do not fit each other"):
        kernel.tape_collect(*arguments)


def test_a_mask_comes_with_every_step_or_with_none(net_of):
    arguments = calls(net_of)["tape_act"]
    arguments[5] = np.ones((N, OPTIONS), bool)
    with pytest.raises(ValueError, match="at every step or at none"):
        kernel.tape_act(*arguments)


def test_an_action_outside_the_worlds_options_is_not_taken(net_of):
    arguments = calls(net_of)["streams_step"]
    arguments[1][1] = 2
    assert kernel.streams_step(*arguments) == -1


def test_shapes_that_contradict_each_other_are_no_network():
    right = ["base", INPUTS, (8,), (8,), 0, 0, 0, (OPTIONS,), 0, None, None]
    for at, wrong in [(7, ()), (2, (4,)), (6, 1)]:
        shared = [*right[:4], 1, *right[5:]]
        with pytest.raises((ValueError, TypeError)):
            kernel.net_new(*shared[:at], wrong, *shared[at + 1 :])
    with pytest.raises(ValueError, match="up to 8"):
        kernel.net_new("base", INPUTS, (4,) * 9, (4,), 0, 0, 0, (2,), 0, None, None)
