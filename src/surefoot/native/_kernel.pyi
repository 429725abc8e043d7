"""What the compiled module offers. Buffers are C-contiguous arrays; the comments in src/bind_*.c say what is in them."""

from typing import Any, NewType

import numpy as np
from typing_extensions import Buffer, CapsuleType

Net = NewType("Net", object)
Tape = NewType("Tape", object)
Array = np.ndarray[Any, Any]

def instruction_sets() -> list[str]: ...
def net_new(
    instruction_set: str,
    inputs: int,
    actor_widths: tuple[int, ...],
    critic_widths: tuple[int, ...],
    shared: int,
    activation: int,
    head: int,
    sizes: tuple[int, ...],
    first_option: int,
    low: Array | None,
    high: Array | None,
    /,
) -> Net: ...
def net_sizes(net: Net, /) -> tuple[int, ...]: ...
def net_point(net: Net, addresses: Array, shift: int, scale: int, obs_clip: float, /) -> None: ...
def net_pack(net: Net, /) -> None: ...
def net_keep(net: Net, /) -> None: ...
def net_restore(net: Net, /) -> None: ...
def net_act(
    net: Net,
    rng: Array,
    n: int,
    obs: Array,
    mask: Array | None,
    deterministic: int,
    action: Array,
    env_action: Array,
    log_prob: Array,
    value: Array,
    /,
) -> None: ...
def net_values(net: Net, n: int, obs: Array, value: Array, /) -> None: ...
def net_learn(
    net: Net,
    samples: int,
    features: Array,
    action: Array,
    log_prob: Array,
    value: Array,
    advantage: Array,
    target: Array,
    ref_log_prob: Array | None,
    mask: Array | None,
    order: Array,
    sizes: Array,
    epochs: int,
    knobs: tuple[float, ...],
    standardize: int,
    optimizer: int,
    bad_in_a_row: int,
    table: Array,
    epoch_of: Array,
    /,
) -> tuple[int, int, int, int, int, int, float]: ...
def net_log_probs(
    net: Net, samples: int, features: Array, action: Array, mask: Array | None, log_prob: Array, /
) -> None: ...
def gae(
    steps: int,
    streams: int,
    reward: Array,
    value: Array,
    next_value: Array,
    terminated: Array,
    truncated: Array,
    valid: Array,
    gamma: float,
    lam: float,
    advantage: Array,
    target: Array,
    /,
) -> None: ...
def describe(n: int, reward: Array, value: Array, target: Array, /) -> tuple[float, ...]: ...
def tape_new(net: Net, steps: int, streams: int, obs: Array | None, mask: Array | None, /, *arrays: Array) -> Tape: ...
def tape_act(net: Net, rng: Array, tape: Tape, t: int, obs: Array, mask: Array | None, /) -> None: ...
def tape_note(
    tape: Tape,
    t: int,
    obs: Array | None,
    reward: Array,
    terminated: Array,
    truncated: Array,
    valid: Array,
    returns: Array,
    lengths: Array,
    /,
) -> int: ...
def tape_finish(net: Net, tape: Tape, obs: Array, /) -> None: ...
def tape_collect(
    net: Net,
    rng: Array,
    tape: Tape,
    streams: CapsuleType,
    obs: Array,
    start: Array,
    returns: Array,
    lengths: Array,
    ended: Array,
    /,
) -> tuple[int, float]: ...
def scan_forward(
    instruction_set: str,
    gates: int,
    steps: int,
    streams: int,
    size: int,
    start: Array | None,
    inward: Array,
    carry: Array,
    weight: Array,
    bias: Array,
    hidden: Array,
    carried: Array,
    kept_gates: Array | None,
    kept: Array | None,
    /,
) -> None: ...
def scan_step(
    instruction_set: str,
    gates: int,
    inputs: int,
    streams: int,
    size: int,
    start: Array | None,
    x: Array,
    weight_in: Array,
    bias_in: Array,
    carry: Array,
    weight: Array,
    bias: Array,
    hidden: Array,
    carried: Array,
    /,
) -> None: ...
def scan_backward(
    instruction_set: str,
    gates: int,
    steps: int,
    streams: int,
    size: int,
    start: Array | None,
    carry: Array,
    weight: Array,
    hidden: Array,
    kept_gates: Array,
    kept: Array,
    d_hidden: Array | None,
    d_carried: Array | None,
    d_inward: Array,
    d_onward: Array | None,
    before: Array,
    d_carry: Array,
    /,
) -> None: ...
def function(instruction_set: str, which: int, n: int, x: Array, y: Array, /) -> None: ...
def multiply(instruction_set: str, m: int, n: int, k: int, a: Array, b: Array, c: Array, /) -> None: ...
def env_describe(which: str | int, /) -> tuple[Any, ...]: ...
def streams_new(which: str | int, n: int, /) -> CapsuleType: ...
def streams_seed(streams: CapsuleType, rng: Buffer, /) -> None: ...
def streams_begin(streams: CapsuleType, which: Buffer | None, obs: Buffer, /) -> None: ...
def streams_observe(streams: CapsuleType, obs: Buffer, /) -> None: ...
def streams_step(
    streams: CapsuleType,
    action: Buffer,
    obs: Buffer,
    reward: Buffer,
    terminated: Buffer,
    truncated: Buffer,
    final_obs: Buffer | None,
    /,
) -> int: ...
def streams_state(streams: CapsuleType, task: Buffer, elapsed: Buffer, rng: Buffer, /) -> None: ...
def streams_set_state(streams: CapsuleType, task: Buffer, elapsed: Buffer, rng: Buffer, /) -> None: ...
