"""W1, W3 and W4 by PureJaxRL's own ppo.py, imported from a checkout of it. Prints JSON.

python purejaxrl_ppo.py CHECKOUT steps WORKLOAD SECONDS
python purejaxrl_ppo.py CHECKOUT solve SEED
"""

from __future__ import annotations

import ast
import sys
import time
from pathlib import Path
from typing import Any

from clock import Laps, cpu, tell
from shapes import SHAPES


def load(checkout: str) -> tuple[Any, dict[str, Any]]:
    """Its make_train, and the settings that its ppo.py runs with when it is started by itself."""
    folder = Path(checkout) / "purejaxrl"
    sys.path.insert(0, str(folder))
    _stand_in_for_absent()
    import ppo  # pyright: ignore[reportMissingImports]  # the checkout's own file

    settings = [
        ast.literal_eval(node.value)
        for node in ast.walk(ast.parse((folder / "ppo.py").read_text()))
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Dict)
        and ast.unparse(node.targets[0]) == "config"
    ]
    return ppo.make_train, {**settings[-1], "DEBUG": False}


def _stand_in_for_absent() -> None:
    """Empty modules for what its wrappers import and ppo.py never uses: Brax and Navix, which are large."""
    from importlib.util import find_spec
    from unittest.mock import MagicMock

    for package, inside in (("brax", ("envs", "envs.wrappers", "envs.wrappers.training")), ("navix", ())):
        if find_spec(package) is None:
            sys.modules |= {name: MagicMock() for name in (package, *(f"{package}.{part}" for part in inside))}


def compiled(make_train: Any, settings: dict[str, Any], key: Any) -> tuple[Any, float]:
    """Its training loop as a compiled program, and the CPU-seconds that took."""
    import jax

    begin = cpu()
    program = jax.jit(make_train(dict(settings))).lower(key).compile()
    return program, cpu() - begin


def steps(checkout: str, workload: str, seconds: float) -> None:
    import jax

    make_train, settings = load(checkout)
    shape, key = SHAPES[workload], jax.random.PRNGKey(0)
    settings |= {
        "NUM_ENVS": shape.envs,
        "NUM_STEPS": shape.steps,
        "UPDATE_EPOCHS": shape.epochs,
        "NUM_MINIBATCHES": shape.minibatches,
        "ANNEAL_LR": False,
        # A compiled program runs from its beginning to its end: the updates that are warm-up elsewhere are counted.
        "TOTAL_TIMESTEPS": shape.rollout * (shape.warm_up + shape.updates),
    }
    program, compile_seconds = compiled(make_train, settings, key)
    ready = cpu()
    jax.block_until_ready(program(key))
    laps = Laps(seconds)
    while True:
        laps.begin()
        out = jax.block_until_ready(program(key))
        laps.end(settings["TOTAL_TIMESTEPS"])
        if laps.enough:
            break
    tell(
        **laps.numbers(),
        # Steps come with the whole program, so the first is taken when that has been compiled.
        first_step_cpu_seconds=ready,
        compile_cpu_seconds=compile_seconds,
        final_return=_last_hundred(out["metrics"])[-1][1],
    )


def _last_hundred(metrics: dict[str, Any]) -> list[tuple[int, float]]:
    """[(steps so far, mean return of the last 100 episodes)], an entry for each update; from its own log."""
    import numpy as np

    ended = np.asarray(metrics["returned_episode"])
    returns = np.asarray(metrics["returned_episode_returns"])
    updates, size = ended.shape[0], ended.shape[1] * ended.shape[2]
    found: list[float] = []
    told: list[tuple[int, float]] = []
    for update in range(updates):
        found += returns[update][ended[update]].tolist()
        mean = float(np.mean(found[-100:])) if len(found) >= 100 else float("nan")
        told.append(((update + 1) * size, mean))
    return told


def solve(checkout: str, seed: int) -> None:
    import jax

    make_train, settings = load(checkout)
    key = jax.random.PRNGKey(seed)
    program, compile_seconds = compiled(make_train, settings, key)
    begin, wall = cpu(), time.perf_counter()
    out = jax.block_until_ready(program(key))
    used, wall = cpu() - begin, time.perf_counter() - wall
    curve = _last_hundred(out["metrics"])
    solved = next((step for step, mean in curve if mean >= 475), None)
    share = 1.0 if solved is None else solved / curve[-1][0]
    tell(
        solved=solved is not None,
        steps=solved or curve[-1][0],
        train_cpu_seconds=used * share,
        # The program cannot stop when it is solved; what it used after that is not held against it.
        not_counted_cpu_seconds=used * (1 - share),
        compile_cpu_seconds=compile_seconds,
        final_return=curve[-1][1],
    )


if __name__ == "__main__":
    if sys.argv[2] == "steps":
        steps(sys.argv[1], sys.argv[3], float(sys.argv[4]))
    else:
        solve(sys.argv[1], int(sys.argv[3]))
