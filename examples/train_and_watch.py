"""Train Pendulum from Python, see what it scores, and keep an episode as a GIF.

python examples/train_and_watch.py
"""

import os
from pathlib import Path

from surefoot import PPO, evaluate_policy
from surefoot.envs.make import make_world
from surefoot.train.render import film, write_gif

STEPS = int(os.environ.get("SUREFOOT_EXAMPLE_STEPS", "100_000"))
OUT = Path("runs/examples")


def main() -> None:
    model = PPO("MlpPolicy", "Pendulum-v1", seed=1, verbose=1)
    model.learn(STEPS, log_interval=5)
    mean, std = evaluate_policy(model, "Pendulum-v1", n_eval_episodes=10)
    print(f"{mean:.0f} ± {std:.0f} over 10 episodes; about -1200 is falling, about -150 is standing up")

    model.save(OUT / "pendulum")
    again = PPO.load(OUT / "pendulum")
    frames, returns = film(again.policy, make_world("Pendulum-v1"), 1, seed=7, deterministic=True, longest=200)
    print(f"return {returns[0]:.0f} in {write_gif(frames, OUT / 'pendulum.gif', fps=30)}")


if __name__ == "__main__":
    main()
