"""An assistant for 1,000 users with repeated questions: it learns which of five tools answers what, nobody at the keyboard.

python examples/ppo_learning_demo.py
"""

import os
import tempfile
import time
from pathlib import Path

import numpy as np

from surefoot.decide.tools import QueryCache, TrainingSchedule
from surefoot.decide.tools.demo import assistant, questions

COUNT = int(os.environ.get("SUREFOOT_EXAMPLE_STEPS", "1000"))
SEED = int(os.environ.get("SUREFOOT_EXAMPLE_SEED", "0"))
MARKS = (100, 300, 500, 1000)


def main() -> None:
    asked = [(question, tool) for tool, rows in questions().items() for question, _ in rows]
    generator = np.random.default_rng(SEED)
    generator.shuffle(asked)
    weight = 1.0 / np.arange(1, len(asked) + 1)  # some questions are asked far more often than others
    plan = TrainingSchedule(warmup=20, interval=5, min_samples=20)
    with tempfile.TemporaryDirectory() as directory:
        agent = assistant(Path(directory), encoder="hashing", learning=plan, cache=QueryCache(), seed=SEED)
        right = list[bool]()
        for user in range(1, COUNT + 1):
            question, tool = asked[int(generator.choice(len(asked), p=weight / weight.sum()))]
            woven = agent.weave_sync(question, bypass_cache=True)  # an answer from the cache teaches nothing
            right.append(woven.tool_used == tool)
            agent.reflect_sync(woven, {"helpful": right[-1]})
            agent.wait()
            if user in MARKS or user == COUNT:
                print(f"after {user:5,} users: {np.mean(right[-100:]):.0%} of the last 100 to the right tool")
        print(f"first 50: {np.mean(right[:50]):.0%}   last 50: {np.mean(right[-50:]):.0%}")
        weave, cached = timed(agent, asked[0][0])
        print(f"a weave takes {1e3 * weave:.2f} ms, a cached answer {1e6 * cached:.1f} µs")
        print(agent.explain(agent.weave_sync(asked[0][0], bypass_cache=True)))
        agent.close()


def timed(agent, question: str) -> tuple[float, float]:
    """Seconds of a weave that starts from nothing, and of an answer from the cache."""
    import asyncio

    async def both() -> tuple[float, float]:
        await agent.weave(question)
        begin = time.perf_counter()
        await agent.weave(question, bypass_cache=True)
        middle = time.perf_counter()
        for _ in range(100):
            await agent.weave(question)
        return middle - begin, (time.perf_counter() - middle) / 100

    return asyncio.run(both())


if __name__ == "__main__":
    main()
