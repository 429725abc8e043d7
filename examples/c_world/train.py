"""A world in C: compiled, checked, trained, and landed.

python examples/c_world/train.py
"""

import os
import subprocess
from pathlib import Path

from surefoot import PPO, check_env, evaluate_policy, make_world
from surefoot.envs.register import WorldEnv
from surefoot.native import include_dir

STEPS = int(os.environ.get("SUREFOOT_EXAMPLE_STEPS", "100_000"))
SOURCE = Path(__file__).with_name("lander.c")


def build(where: Path) -> str:
    """Compile the world into `where`; the path of the library."""
    library = str(where / "lander.so")
    compiler = os.environ.get("CC", "cc")
    subprocess.run(
        [compiler, "-O2", "-shared", "-fPIC", f"-I{include_dir()}", str(SOURCE), "-o", library, "-lm"], check=True
    )
    return library


if __name__ == "__main__":
    lander = build(Path.cwd())
    single = WorldEnv(make_world(lander, allow_import=True))
    print("\n".join(map(str, check_env(single))) or "check_env has nothing to complain about")
    model = PPO("MlpPolicy", make_world(lander, 8, allow_import=True), n_steps=256, seed=1).learn(STEPS)
    mean, std = evaluate_policy(model, make_world(lander, 8, allow_import=True), n_eval_episodes=100)
    print(f"mean return {mean:.1f} ± {std:.1f} over 100 episodes; a soft landing on the pad gives about 17")
