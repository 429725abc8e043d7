"""Share of the CPU time of `learn` that is spent in the env itself: one seed of `sb3_curve.py` with `surefoot.sb3`.

python benchmarks/workloads/sb3_env_share.py SCRIPT TASK RESULT.json
SCRIPT is the curve's script with `stable_baselines3` replaced. Counted is the time inside of `step` and `reset` of the env's own
class (Box2D or MuJoCo and Gymnasium's code around it), without any wrapper; 0 means that a built-in world replaced the env.
"""

from __future__ import annotations

import json
import runpy
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium as gym


def main() -> None:
    """Train, and write {"share", "steps"}."""
    script, task, target = sys.argv[1:]
    kind: Any = type(gym.make(task).unwrapped)
    inside, calls = 0, 0

    def timed(method: Any) -> Any:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal inside, calls
            begin = time.process_time_ns()
            result = method(self, *args, **kwargs)
            inside, calls = inside + time.process_time_ns() - begin, calls + 1
            return result

        return call

    kind.step, kind.reset = timed(kind.step), timed(kind.reset)
    sys.argv = [script, task, "0", target]
    runpy.run_path(script, run_name="__main__")
    seconds = json.loads(Path(target).read_text())["cpu_seconds"]
    Path(target).write_text(json.dumps({"share": round(inside / 1e9 / seconds, 3), "steps": calls}))


if __name__ == "__main__":
    main()
