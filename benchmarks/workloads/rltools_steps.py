"""W1-pendulum by RLtools: its PPO, its Pendulum, compiled here for this processor. Prints JSON.

python rltools_steps.py WORKLOAD SECONDS

RLtools has no CartPole and no discrete actions in PPO, so the comparison is on Pendulum, whose equations are Gymnasium's on
both sides. The program is compiled once and cached by RLtools; compiling is not counted.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path
from typing import Any

from clock import Laps, cpu, tell
from shapes import SHAPES

ENVIRONMENT = """#include <rl_tools/rl/environments/pendulum/operations_cpu.h>
template <typename T, typename TI>
using ENVIRONMENT_FACTORY =
    rl_tools::rl::environments::Pendulum<rl_tools::rl::environments::pendulum::Specification<T, TI>>;
"""


def compiled(workload: str) -> Any:
    """Return the module of a training with this workload's shape."""
    from rltools import PPO  # pyright: ignore[reportMissingImports, reportUnknownVariableType]

    shape = SHAPES[workload]
    # A fixed folder: its path is part of the compiler's command line, by which RLtools recognises what is already built.
    folder = Path(tempfile.gettempdir()) / "surefoot-rltools-pendulum"
    folder.mkdir(exist_ok=True)
    header = folder / "environment.h"
    if not header.exists():
        header.write_text(ENVIRONMENT)
    return PPO(
        {"path": str(folder), "observation_dim": 3, "action_dim": 1},
        interface_name=workload.replace("-", "_").lower(),
        enable_evaluation=False,
        enable_blas=True,
        N_ENVIRONMENTS=shape.envs,
        ON_POLICY_RUNNER_STEPS_PER_ENV=shape.steps,
        N_EPOCHS=shape.epochs,
        BATCH_SIZE=shape.minibatch,
        STEP_LIMIT=shape.warm_up + shape.updates,
        # RLtools counts the output layer: three are two hidden layers of 64.
        ACTOR_NUM_LAYERS=3,
        CRITIC_NUM_LAYERS=3,
        ACTOR_HIDDEN_DIM=64,
        CRITIC_HIDDEN_DIM=64,
        ACTOR_ACTIVATION_FUNCTION="TANH",
        CRITIC_ACTIVATION_FUNCTION="TANH",
    )


def main(workload: str, seconds: float) -> None:
    with contextlib.redirect_stdout(sys.stderr):  # it prints about its cache
        module = compiled(workload)
    shape, laps, first = SHAPES[workload], Laps(seconds), 0.0
    seed = 0
    while not laps.enough:
        state, seed = module.State(seed), seed + 1
        for _ in range(shape.warm_up):
            state.step()
            first = first or cpu()
        laps.begin()
        for _ in range(shape.updates):
            state.step()
        laps.end(shape.updates * shape.rollout)
    tell(**laps.numbers(), first_step_cpu_seconds=first)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
