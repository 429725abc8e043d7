"""The compiled module. Buffers are C-contiguous arrays; the headers in src/ give their types and shapes."""

from typing import Any, NewType

import numpy as np
from typing_extensions import Buffer, CapsuleType

Net = NewType("Net", object)
Rollout = NewType("Rollout", object)
Array = np.ndarray[Any, Any]

ACTIVATIONS: tuple[str, ...]
HEADS: tuple[str, ...]
OPTIMIZERS: tuple[str, ...]
MAX_DEPTH: int
MAX_CHOICES: int
TABLE_COLUMNS: int
RECORDED: int
EPISODE_ENDED: int
NON_FINITE: int

def instruction_sets() -> list[str]: ...
def net_new(
    *,
    instruction_set: str,
    inputs: int,
    critic_inputs: int,
    actor_widths: tuple[int, ...],
    critic_widths: tuple[int, ...],
    shared: bool,
    activation: str,
    head: str,
    sizes: tuple[int, ...],
    numbers: int,
    first_option: int,
    log_std_low: float,
    log_std_high: float,
    noise_every: int,
    memory: str,
    memory_size: int,
    low: Array | None,
    high: Array | None,
) -> Net: ...
def net_sizes(net: Net, /) -> tuple[int, ...]: ...
def net_point(
    net: Net, addresses: Array, shift: int, scale: int, critic_shift: int, critic_scale: int, obs_clip: float, /
) -> None: ...
def net_pack(net: Net, /) -> None: ...
def net_temperature(net: Net, temperature: float, /) -> None: ...
def holds(containers: tuple[Any, ...], items: tuple[tuple[Any, ...], ...], /) -> bool: ...
def net_act(
    net: Net,
    /,
    *,
    n: int,
    rng: Array,
    obs: Array,
    mask: Array | None,
    deterministic: bool,
    action: Array,
    env_action: Array,
    log_prob: Array,
    value: Array,
    start: Array | None,
    carry: Array | None,
    critic_carry: Array | None,
) -> None: ...
def net_values(net: Net, n: int, obs: Array, carry: Array | None, value: Array, /) -> None: ...
def net_save(net: Net, /) -> None: ...
def net_restore(net: Net, /) -> None: ...
def net_learn(
    net: Net,
    /,
    *,
    samples: int,
    minibatches: int,
    epochs: int,
    clip: float,
    value_clip: float,
    dual_clip: float,
    log_ratio_limit: float,
    vf_coef: float,
    ent_coef: float,
    kl_coef: float,
    kl_limit: float,
    standardize: bool,
    max_grad_norm: float,
    optimizer: str,
    lr: float,
    critic_lr_scale: float,
    weight_decay: float,
    eps: float,
    momentum: float,
    beta1: float,
    beta2: float,
    alpha: float,
    max_bad_steps: int,
    bad_in_a_row: int,
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
    table: Array,
    epoch_of: Array,
    length: int = ...,
    start: Array | None = ...,
    valid: Array | None = ...,
    carry: Array | None = ...,
    critic_carry: Array | None = ...,
) -> tuple[int, int, int, int, int, int, float]: ...
def net_log_probs(
    net: Net, samples: int, features: Array, action: Array, mask: Array | None, result: Array, /
) -> None: ...
def gae(
    *,
    steps: int,
    streams: int,
    gamma: float,
    lam: float,
    reward: Array,
    value: Array,
    next_value: Array,
    terminated: Array,
    truncated: Array,
    valid: Array,
    advantage: Array,
    target: Array,
) -> None: ...
def rollout_statistics(n: int, reward: Array, value: Array, target: Array, /) -> dict[str, float]: ...
def rollout_new(
    net: Net,
    /,
    *,
    steps: int,
    streams: int,
    obs: Array | None,
    mask: Array | None,
    action: Array,
    env_action: Array,
    log_prob: Array,
    value: Array,
    next_value: Array,
    reward: Array,
    terminated: Array,
    truncated: Array,
    start: Array,
    valid: Array,
    carry: Array | None,
    critic_carry: Array | None,
) -> Rollout: ...
def rollout_act(net: Net, rollout: Rollout, rng: Array, t: int, obs: Array, mask: Array | None, /) -> None: ...
def rollout_record(
    rollout: Rollout,
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
def rollout_finish(net: Net, rollout: Rollout, obs: Array, /) -> None: ...
def rollout_collect(
    net: Net,
    rollout: Rollout,
    rng: Array,
    streams: CapsuleType,
    /,
    *,
    deterministic: bool,
    obs: Array,
    start: Array,
    returns: Array,
    lengths: Array,
    ended: Array,
) -> tuple[int, float]: ...
def scan_forward(
    *,
    instruction_set: str,
    gates_per_unit: int,
    streams: int,
    size: int,
    steps: int,
    start: Array | None,
    inward: Array,
    carry: Array,
    weight: Array,
    bias: Array,
    hidden: Array,
    carried: Array,
    gates: Array | None,
    saved: Array | None,
) -> None: ...
def scan_step(
    *,
    instruction_set: str,
    gates_per_unit: int,
    streams: int,
    size: int,
    inputs: int,
    start: Array | None,
    x: Array,
    weight_in: Array,
    bias_in: Array,
    carry: Array,
    weight: Array,
    bias: Array,
    hidden: Array,
    carried: Array,
) -> None: ...
def scan_backward(
    *,
    instruction_set: str,
    gates_per_unit: int,
    streams: int,
    size: int,
    steps: int,
    start: Array | None,
    carry: Array,
    weight: Array,
    hidden: Array,
    gates: Array,
    saved: Array,
    d_hidden: Array | None,
    d_carried: Array | None,
    d_inward: Array,
    d_onward: Array | None,
    before: Array,
    d_carry: Array,
) -> None: ...
def function(instruction_set: str, which: int, n: int, x: Array, y: Array, /) -> None: ...
def multiply(instruction_set: str, m: int, n: int, k: int, a: Array, b: Array, c: Array, /) -> None: ...
def env_describe(which: str | int | CapsuleType, /) -> tuple[Any, ...]: ...
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
def mujoco_new(*, n: int, threads: int, name: str, **members: Any) -> CapsuleType: ...
def mujoco_point(streams: CapsuleType, addresses: Array, elapsed: Array, kept: Any, /) -> None: ...
def town_new(
    *,
    A: int,
    O: int,
    T: int,
    E: int,
    cells: int,
    day: int,
    events: int,
    rules: Array,
    **tables: Array,
) -> CapsuleType: ...
def town_tick(town: CapsuleType, towns: int, /, *arrays: Any) -> bytes: ...
def town_view(town: CapsuleType, towns: int, /, *arrays: Any) -> None: ...
