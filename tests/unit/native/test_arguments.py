"""Whatever is wrong with an argument is a Python exception, never a crash: every argument of every function is tried."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from surefoot.native import kernel
from surefoot.town.scenarios.scenario import parse_scenario
from surefoot.town.sim.engine import KernelEngine
from surefoot.town.sim.layout import make_layout
from surefoot.town.sim.state import begin, make_randomness

REFUSALS = (TypeError, ValueError, IndexError, OverflowError, MemoryError)
T, N, INPUTS, OPTIONS = 4, 3, 4, 2
F, D, L = np.float32, np.float64, np.int64
KNOBS = {
    "clip": 0.2,
    "value_clip": -1.0,
    "dual_clip": -1.0,
    "log_ratio_limit": 20.0,
    "vf_coef": 0.5,
    "ent_coef": 0.01,
    "kl_coef": 0.0,
    "kl_limit": -1.0,
    "standardize": 0,
    "max_grad_norm": 0.5,
    "optimizer": "adam",
    "lr": 1e-3,
    "critic_lr_scale": 1.0,
    "weight_decay": 0.0,
    "eps": 1e-5,
    "momentum": 0.0,
    "beta1": 0.9,
    "beta2": 0.999,
    "alpha": 0.99,
    "max_bad_steps": 3,
    "bad_in_a_row": 0,
}
MUJOCO_NUMBERS = (
    *(
        "dt",
        "timestep",
        "total_mass",
        "reset_noise_scale",
        "healthy_reward",
        "state_limit",
        "z_low",
        "z_high",
        "angle_low",
    ),
    *("angle_high", "forward_reward_weight", "ctrl_cost_weight", "contact_cost_weight", "force_low", "force_high"),
    *("cost_high", "near_weight", "dist_weight"),
)
MAY_BE_NONE = {
    *(("net_act", "mask"), ("net_act", "start"), ("net_act", "carry"), ("net_act", "critic_carry"), ("net_values", 3)),
    *(
        ("rollout_new", "carry"),
        ("rollout_new", "critic_carry"),
        ("net_learn", "ref_log_prob"),
        ("net_learn", "mask"),
        ("net_log_probs", 4),
    ),
    *(("rollout_new", "obs"), ("rollout_new", "mask"), ("rollout_act", 5), ("rollout_record", 2)),
    *(("net_new", "low"), ("net_new", "high"), ("streams_begin", 1), ("streams_step", 6)),
    *(("scan_forward", "start"), ("scan_step", "start"), ("scan_backward", "start")),
    *(("scan_backward", "d_hidden"), ("scan_backward", "d_carried"), ("town_view", 42)),
}
RAW = {("streams_seed", 1), ("streams_state", 3), ("streams_set_state", 3)}
"""Plain bytes, which may lie anywhere and be of any type."""
ANY_NUMBER = {("net_new", "first_option"), ("net_point", 6)}
"""Numbers that have no wrong value within reach of the list below."""
WRONG_NUMBERS = (-1, -(2**40), 2**31, 2**32, 2**62, 2**63 - 1, -(2**63), 2**70, "7", None, 1.5, b"7")

_alive: list = []
"""What the last network and rollout point at, which the kernel does not keep alive."""


Arguments = dict[int | str, Any]
"""The arguments of a call: positional ones by their number, keywords by their name."""


def positional(*arguments: object) -> Arguments:
    return dict(enumerate(arguments))


def call(name: str, arguments: Arguments) -> Any:
    values = [x for at, x in arguments.items() if isinstance(at, int)]
    return getattr(kernel, name)(*values, **{at: x for at, x in arguments.items() if isinstance(at, str)})


TOWN = """\
name: small
ticks: 9
grid: [3, 2]
objects: [{id: s, type: shower, position: [0, 0]}, {id: f, type: fridge, position: [2, 1]}]
agents: [{id: a, position: [1, 0], job: j}, {id: b, position: [1, 1]}, {id: c, position: [1, 1]}]
jobs: {j: {start: 1, end: 2, location: s}}
ticks_per_day: 4
perturbations: {events: [{kind: blackout}, {kind: outage}]}
"""


def town_calls() -> dict[str, Arguments]:
    """The calls of a small town, as the engine makes them."""
    made: dict[str, Arguments] = {}

    class Spy:
        def __getattr__(self, name: str) -> Any:
            def function(*args: Any, **keywords: Any) -> Any:
                made[name] = positional(*args) | keywords
                return call(name, made[name])

            return function

    layout, rng = make_layout(parse_scenario(TOWN)), make_randomness(0)
    engine = KernelEngine(layout)
    engine.kernel = Spy()
    engine.make_town()
    state, _ = engine.tick(begin(layout, 2, rng), np.zeros((2, 3), L), rng)
    engine.view(state)
    _alive[2:] = [engine, state, rng]
    return made


def calls(net_of) -> dict[str, Arguments]:
    """A call of each function that is right in every argument."""
    net = net_of(inputs=INPUTS, sizes=(OPTIONS,))
    net.remember()
    kernel.net_save(net.handle)
    rng = np.array([1, 2, 3, 4], np.uint64)
    row = lambda dtype=F, *more: np.zeros((N, *more), dtype)  # noqa: E731
    whole = lambda dtype=F, *more: np.zeros((T, N, *more), dtype)  # noqa: E731
    rollout: Arguments = {
        0: net.handle,
        "steps": T,
        "streams": N,
        "obs": whole(F, INPUTS),
        "mask": None,
        "action": whole(L, 1),
        "env_action": whole(L, 1),
        **{name: whole() for name in ("log_prob", "value", "next_value")},
        "reward": whole(D),
        **{name: whole(bool) for name in ("terminated", "truncated", "start", "valid")},
        "carry": None,
        "critic_carry": None,
    }
    handle = call("rollout_new", rollout)
    _alive[:] = [net, rollout]
    world = kernel.streams_new("CartPole-v1", N)
    kernel.streams_seed(world, rng)
    kernel.streams_begin(world, None, row(F, 4))
    addresses = np.array([[x.ctypes.data, *(s.ctypes.data for s in slots)]
                          for x, slots in zip(net.tensors, net.slots, strict=True)], np.uint64)  # fmt: skip
    learned = {
        "features": row(F, INPUTS),
        "action": row(L, 1),
        "ref_log_prob": row(),
        **{name: row() for name in ("log_prob", "value", "advantage", "target")},
        "mask": np.ones((N, OPTIONS), bool),
        "order": np.array([[0, 1, 2], [2, 1, 0]]),
        "sizes": np.array([1, 2]),
        "table": np.zeros((4, 11)),
        "epoch_of": np.zeros(4, np.int32),
    }
    body: Arguments = {
        "name": "Hopper-v5",
        **dict.fromkeys(("obs_size", "nq", "nv", "nu", "nbody", "pieces"), 2),
        **dict.fromkeys(("max_episode_steps", "frame_skip"), 1),
        **dict.fromkeys(("fused", "body", "other", "target"), 0),
        "functions": np.ones(6, np.uint64),
        **dict.fromkeys(MUJOCO_NUMBERS, 0.0),
        **{name: np.zeros(2) for name in ("init_qpos", "init_qvel", "body_mass")},
        "piece": np.array([[0, 0, 1, 0, 0], [1, 1, 1, 0, 0]]),
        "lengths": np.full(11, 2),
        **{name: np.zeros(2, F) for name in ("low", "high")},
    }
    simulations = kernel.mujoco_new(n=N, threads=0, **body)
    gru = {"instruction_set": "base", "gates_per_unit": 3, "streams": N, "size": 2}
    weights = {"carry": row(F, 2), "weight": np.zeros((6, 2), F)}
    return {
        **town_calls(),
        "net_new": {
            "instruction_set": "base",
            "inputs": INPUTS,
            "critic_inputs": 0,
            "actor_widths": (8,),
            "critic_widths": (8,),
            "shared": 0,
            "activation": "tanh",
            "head": "gaussian",
            "sizes": (2,),
            "numbers": 2,
            "first_option": 0,
            "log_std_low": -20.0,
            "log_std_high": 2.0,
            "noise_every": 0,
            "memory": "none",
            "memory_size": 1,
            "low": np.full(2, -1, F),
            "high": np.full(2, 1, F),
        },
        "net_sizes": positional(net.handle),
        "net_point": positional(net.handle, addresses, 0, 0, 0, 0, 5.0),
        "net_pack": positional(net.handle),
        "net_temperature": positional(net.handle, 2.0),
        "holds": positional(({"a": net},), ((net,),)),
        "net_save": positional(net.handle),
        "net_restore": positional(net.handle),
        "net_act": {
            0: net.handle,
            "n": N,
            "rng": rng,
            "obs": row(F, INPUTS),
            "mask": None,
            "deterministic": 0,
            "action": row(L, 1),
            "env_action": row(L, 1),
            "log_prob": row(),
            "value": row(),
            "start": None,
            "carry": None,
            "critic_carry": None,
        },
        "net_values": positional(net.handle, N, row(F, INPUTS), None, row()),
        "net_learn": {0: net.handle, "samples": N, "minibatches": 2, "epochs": 2, **KNOBS, **learned},
        "net_log_probs": positional(net.handle, N, learned["features"], learned["action"], None, row()),
        "gae": {
            "steps": T,
            "streams": N,
            "gamma": 0.9,
            "lam": 0.9,
            **{name: whole() for name in ("reward", "value", "next_value", "advantage", "target")},
            **{name: whole(bool) for name in ("terminated", "truncated", "valid")},
        },
        "rollout_statistics": positional(N, row(), row(), row()),
        "rollout_new": rollout,
        "rollout_act": positional(net.handle, handle, rng, 0, row(F, INPUTS), None),
        "rollout_record": positional(
            handle, 0, row(F, INPUTS), row(D), row(bool), row(bool), np.ones(N, bool), row(D), row(L)
        ),
        "rollout_finish": positional(net.handle, handle, row(F, INPUTS)),
        "rollout_collect": {
            0: net.handle,
            1: handle,
            2: rng,
            3: world,
            "deterministic": 0,
            "obs": row(F, 4),
            "start": row(bool),
            "returns": row(D),
            "lengths": row(L),
            "ended": np.zeros((T * N, 4)),
        },
        "scan_forward": {
            **gru,
            "steps": T,
            "start": whole(bool),
            "inward": whole(F, 6),
            **weights,
            "bias": np.zeros(6, F),
            "hidden": whole(F, 2),
            "carried": row(F, 2),
            "gates": whole(F, 6),
            "saved": whole(F, 2),
        },
        "scan_step": {
            **gru,
            "inputs": 5,
            "start": row(bool),
            "x": row(F, 5),
            "weight_in": np.zeros((6, 5), F),
            "bias_in": np.zeros(6, F),
            **weights,
            "bias": np.zeros(6, F),
            "hidden": row(F, 2),
            "carried": row(F, 2),
        },
        "scan_backward": {
            **gru,
            "steps": T,
            "start": whole(bool),
            **weights,
            "hidden": whole(F, 2),
            "gates": whole(F, 6),
            "saved": whole(F, 2),
            "d_hidden": whole(F, 2),
            "d_carried": row(F, 2),
            "d_inward": whole(F, 6),
            "d_onward": whole(F, 6),
            "before": whole(F, 2),
            "d_carry": row(F, 2),
        },
        "function": positional("base", 0, N, row(), row()),
        "multiply": positional("base", 2, 3, 4, np.zeros((2, 4), F), np.zeros((4, 3), F), np.zeros((2, 3), F)),
        "env_describe": positional("CartPole-v1"),
        "streams_new": positional("CartPole-v1", N),
        "streams_seed": positional(world, rng),
        "streams_begin": positional(world, None, row(F, 4)),
        "streams_observe": positional(world, row(F, 4)),
        "streams_step": positional(world, row(L), row(F, 4), row(D), row(bool), row(bool), None),
        "streams_state": positional(world, np.zeros((4, N)), row(L), rng.copy()),
        "streams_set_state": positional(world, np.zeros((4, N)), row(L), rng.copy()),
        "mujoco_new": {"n": N, "threads": 1, **body},
        "mujoco_point": positional(simulations, np.zeros((N, 14), np.uint64), row(L), {}),
    }


NAMES = [name for name in dir(kernel) if callable(getattr(kernel, name)) and not name.startswith("_")]
NAMES.remove("instruction_sets")


def wrong_ones(name: str, at: int | str, right: object) -> list:
    """Values that must be refused in place of `right`."""
    if isinstance(right, np.ndarray):
        flat = right.ravel()
        wrong = ["text", 7, [0.0], object(), right.T if right.ndim > 1 and min(right.shape) > 1 else 7]
        wrong.append(np.repeat(flat, 2)[::2])  # not contiguous
        wrong += [flat[:-1], np.append(flat, flat[:1]), flat[:0]]
        if (name, at) not in RAW:
            same_size = {1: "S1", 2: "u2", 4: "u4", 8: "m8[s]"}[flat.itemsize]
            wrong += [flat.view(same_size), flat.astype(object), np.zeros(len(flat), np.float16)]
            others = {"f4": "i4", "f8": "i8", "i8": "f8", "i4": "f4", "u8": "i8"}
            if (other := others.get(flat.dtype.str[1:])) is not None:
                wrong += [flat.view(other), flat.astype(flat.dtype.newbyteorder())]
                wrong.append(np.zeros(flat.nbytes + flat.itemsize, np.uint8)[1 : 1 + flat.nbytes].view(flat.dtype))
        return wrong if (name, at) in MAY_BE_NONE else [*wrong, None]
    if isinstance(right, str):
        return ["", "avx1024", "CartPole-v7", None, 0, "\ud800"]
    if isinstance(right, tuple) and name == "holds":
        return [None, 3, list(right), right * 2, ({},) if at == 1 else ()]
    if isinstance(right, tuple):
        return [None, 3, "text", list(right), (*right, "x"), (1e9,), (2**40,), (1,) * 65, (0,) * len(right)]
    if isinstance(right, float):
        return ["text", None, [], object()]
    if isinstance(right, int):
        return [x for x in WRONG_NUMBERS if (name, at) not in ANY_NUMBER or not isinstance(x, int) or x == 2**70]
    return [7, "text", object(), np.zeros(3, F)] + ([] if (name, at) in MAY_BE_NONE else [None])


def test_every_function_is_tried(net_of):
    assert sorted(calls(net_of)) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_right_call_is_taken(net_of, name):
    call(name, calls(net_of)[name])


@pytest.mark.parametrize("name", NAMES)
def test_each_wrong_argument_is_an_exception(net_of, name):
    arguments = calls(net_of)[name]
    for at, right in arguments.items():
        for wrong in wrong_ones(name, at, right):
            with pytest.raises(REFUSALS):
                call(name, arguments | {at: wrong})
                pytest.fail(f"argument {at} of {name} may be {wrong!r}")


@pytest.mark.parametrize("name", NAMES)
def test_one_argument_too_few_or_too_many_is_an_exception(net_of, name):
    arguments = calls(net_of)[name]
    for at in arguments:
        fewer = {k: v for k, v in arguments.items() if k != at}
        with pytest.raises(TypeError, match=f"'{at}'" if isinstance(at, str) else None):
            call(name, positional(*fewer.values()) if isinstance(at, int) and len(fewer) == at else fewer)
    for more in ({len([at for at in arguments if isinstance(at, int)]): None}, {"more": None}):
        with pytest.raises(TypeError):
            call(name, arguments | more)
    with pytest.raises(TypeError):
        call(name, {})


def test_an_unknown_keyword_is_named(net_of):
    with pytest.raises(TypeError, match="net_learn has no argument 'learning_rate'"):
        call("net_learn", calls(net_of)["net_learn"] | {"learning_rate": 1.0})


def test_keywords_may_come_in_any_order(net_of):
    for name in ("net_learn", "net_new", "gae"):
        arguments = calls(net_of)[name]
        call(name, dict(reversed(arguments.items())))


WRITTEN = {
    "net_act": ("rng", "action", "env_action", "log_prob", "value"),
    "net_values": (4,),
    "net_learn": ("table", "epoch_of"),
    "net_log_probs": (5,),
    "gae": ("advantage", "target"),
    "rollout_new": (
        *("obs", "action", "env_action", "log_prob", "value", "next_value", "reward"),
        *("terminated", "truncated", "start", "valid"),
    ),
    "rollout_act": (2,),
    "rollout_record": (7, 8),
    "rollout_collect": (2, "obs", "start", "returns", "lengths", "ended"),
    "scan_forward": ("hidden", "carried", "gates", "saved"),
    "scan_step": ("hidden", "carried"),
    "scan_backward": ("d_inward", "d_onward", "before", "d_carry"),
    "function": (4,),
    "multiply": (6,),
    "streams_step": (2, 3, 4, 5),
    "streams_state": (1, 2, 3),
    "town_tick": (*range(2, 41), *range(43, 49)),
    "town_view": (41, 42),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_what_may_not_be_written_is_not_written(net_of, name):
    arguments = calls(net_of)[name]
    for at in WRITTEN[name]:
        locked = arguments[at].copy()
        locked.flags.writeable = False
        with pytest.raises((ValueError, BufferError)):
            call(name, arguments | {at: locked})


def bare_net(net_of):
    """A network whose weights have no address."""
    arguments = calls(net_of)["net_new"]
    return call(
        "net_new", arguments | {"head": "categorical", "sizes": (OPTIONS,), "numbers": 0, "low": None, "high": None}
    )


def test_a_network_without_weights_does_nothing(net_of):
    bare = bare_net(net_of)
    for name in ("net_pack", "net_save", "net_act", "net_values", "net_learn", "net_log_probs", "rollout_act"):
        with pytest.raises(ValueError, match="no weights yet"):
            call(name, calls(net_of)[name] | {0: bare})


def test_an_address_that_is_missing_leaves_the_network_as_it_was(net_of):
    arguments = calls(net_of)["net_point"]
    bare = bare_net(net_of)
    missing = arguments[1].copy()
    missing[-1, 0] = 0
    with pytest.raises(ValueError, match="tensor 7 has no address"):
        kernel.net_point(bare, missing, 0, 0, 0, 0, 1.0)
    with pytest.raises(ValueError, match="no weights yet"):
        kernel.net_pack(bare)


def test_a_network_without_optimiser_memory_does_not_learn(net_of):
    arguments = calls(net_of)["net_learn"]
    net = net_of(inputs=INPUTS, sizes=(OPTIONS,))
    with pytest.raises(ValueError, match="optimizer's slots"):
        call("net_learn", arguments | {0: net.handle})


@pytest.mark.parametrize(
    ("at", "wrong"),
    [
        ("action", np.array([[0], [2], [0]])),
        ("action", np.array([[0], [-1], [0]])),
        ("order", np.array([[0, 1, 3], [2, 1, 0]])),
        ("order", np.array([[0, -1, 2], [2, 1, 0]])),
        ("sizes", np.array([1, 1])),
        ("sizes", np.array([0, 3])),
        ("sizes", np.array([4, -1])),
        ("sizes", np.array([2**62, 2**62])),
    ],
    ids=str,
)
def test_numbers_that_point_outside_the_batch_are_refused(net_of, at, wrong):
    arguments = calls(net_of)["net_learn"]
    arguments[at] = wrong
    with pytest.raises(ValueError, match="none of 2 options|outside the batch"):
        call("net_learn", arguments)


@pytest.mark.parametrize(
    "other", [{"inputs": 9}, {"sizes": (5,)}, {"sizes": (1, 1)}, {"head": "gaussian", "sizes": (2,)}], ids=str
)
def test_a_rollout_is_written_by_the_network_it_was_made_for(net_of, other):
    net = net_of(**({"inputs": INPUTS, "sizes": (OPTIONS,)} | other))
    for name, at in {"rollout_act": 4, "rollout_finish": 2, "rollout_collect": "obs"}.items():
        arguments = calls(net_of)[name] | {0: net.handle, at: np.zeros((N, net.inputs), F)}
        with pytest.raises(ValueError, match="another network"):
            call(name, arguments)


@pytest.mark.parametrize("t", [-1, T, 2**40])
def test_a_step_outside_the_rollout_is_an_index_error(net_of, t):
    for name, at in {"rollout_act": 3, "rollout_record": 1}.items():
        with pytest.raises(IndexError, match="of a rollout of 4"):
            call(name, calls(net_of)[name] | {at: t})


@pytest.mark.parametrize("world", ["MountainCar-v0", "Pendulum-v1", "surefoot/CartPoleContinuous-v0"])
def test_a_world_that_takes_other_actions_is_not_stepped(net_of, world):
    arguments = calls(net_of)["rollout_collect"]
    arguments[3] = kernel.streams_new(world, N)
    with pytest.raises(ValueError, match="do not fit each other"):
        call("rollout_collect", arguments)


def test_a_mask_comes_with_every_step_or_with_none(net_of):
    arguments = calls(net_of)["rollout_act"]
    arguments[5] = np.ones((N, OPTIONS), bool)
    with pytest.raises(ValueError, match="at every step or at none"):
        call("rollout_act", arguments)


def test_an_action_outside_the_worlds_options_is_not_taken(net_of):
    arguments = calls(net_of)["streams_step"]
    arguments[1][1] = 2
    assert call("streams_step", arguments) == -1


def test_shapes_that_contradict_each_other_are_no_network(net_of):
    right = calls(net_of)["net_new"] | {"head": "categorical", "sizes": (2,), "numbers": 0, "low": None, "high": None}
    call("net_new", right | {"shared": 1})
    for at, wrong in [
        *(("sizes", ()), ("actor_widths", (4,)), ("head", "gaussian"), ("numbers", 1), ("critic_inputs", 3)),
    ]:
        with pytest.raises((ValueError, TypeError)):
            call("net_new", right | {"shared": 1, at: wrong})
    with pytest.raises(ValueError, match="up to 8"):
        call("net_new", right | {"actor_widths": (4,) * 9, "critic_widths": (4,)})


def test_arrays_stay_exported_while_a_rollout_points_at_them(net_of):
    arguments = calls(net_of)["rollout_new"]
    arguments["reward"] = reward = np.zeros(T * N)
    handle = call("rollout_new", arguments)
    with pytest.raises(ValueError, match="resize"):
        reward.resize(2 * T * N, refcheck=True)
    del handle
    call("rollout_new", calls(net_of)["rollout_new"])  # a capsule that is freed releases what it held


@pytest.mark.parametrize(
    ("container", "items", "same"),
    [
        ({"a": REFUSALS}, (REFUSALS,), True),
        ({"a": REFUSALS, "b": T}, (REFUSALS, ...), True),
        ({"a": REFUSALS}, (WRONG_NUMBERS,), False),
        ({"a": REFUSALS}, (), False),
        ({}, (REFUSALS,), False),
        ([REFUSALS], (REFUSALS,), True),
        ([REFUSALS], (WRONG_NUMBERS,), False),
        ([], (REFUSALS,), False),
        (REFUSALS, (), False),
    ],
)
def test_holds_compares_by_identity(container, items, same):
    assert kernel.holds((container,), (items,)) is same


def test_a_network_or_an_environment_in_use_by_another_thread_is_refused(net_of):
    arguments = calls(net_of)
    n = 400_000
    rng = np.random.default_rng(0)
    many = arguments["net_learn"] | {
        "samples": n,
        "minibatches": 1,
        "epochs": 1,
        "features": np.zeros((n, INPUTS), F),
        "action": np.zeros((n, 1), L),
        **{name: np.zeros(n, F) for name in ("log_prob", "value", "advantage", "target", "ref_log_prob")},
        "mask": None,
        "order": rng.permutation(n),
        "sizes": np.array([n]),
    }
    many |= {"table": np.zeros((1, 11)), "epoch_of": np.zeros(1, np.int32)}
    errors: list[RuntimeError] = []
    learning = threading.Thread(target=lambda: call("net_learn", many))
    learning.start()
    while learning.is_alive():
        try:
            call("net_pack", arguments["net_pack"])
        except RuntimeError as error:
            errors.append(error)
            break
    learning.join()
    assert "in use by another thread" in str(errors[0])
    call("net_pack", arguments["net_pack"])  # free again


def test_simulations_are_not_stepped_before_they_are_there(net_of):
    simulations = call("mujoco_new", calls(net_of)["mujoco_new"])
    with pytest.raises(RuntimeError, match="no simulations yet"):
        kernel.streams_observe(simulations, np.zeros((N, 2), F))
