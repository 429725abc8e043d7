"""An assistant for 1,000 users with repeated questions: it learns which of five tools answers what, nobody at the keyboard.

python examples/compat/hololoom_tool_learning.py
"""

import asyncio
import os
import tempfile
import time
from pathlib import Path

import numpy as np

from surefoot.decide.tools import QueryCache, TrainingSchedule
from surefoot.decide.tools.toolbox.assistant import assistant, questions

COUNT = int(os.environ.get("SUREFOOT_EXAMPLE_STEPS", "1000"))
MARKS = (100, 300, 500, 1000)


async def main(directory: Path) -> None:
    asked = [(question, tool) for tool, rows in questions().items() for question, _ in rows]
    generator = np.random.default_rng(0)
    generator.shuffle(asked)
    weight = 1.0 / np.arange(1, len(asked) + 1)  # some questions are far more frequent than others
    plan = TrainingSchedule(warmup=20, interval=5, min_samples=20)
    agent = assistant(directory, encoder="hashing", learning=plan, cache=QueryCache())
    right = list[bool]()
    for user in range(1, COUNT + 1):
        question, tool = asked[int(generator.choice(len(asked), p=weight / weight.sum()))]
        run = await agent.answer_async(question, bypass_cache=True)  # an answer from the cache teaches nothing
        right.append(run.tool == tool)
        agent.feedback(run, {"helpful": right[-1]})
        agent.wait()
        if user in MARKS or user == COUNT:
            print(f"after {user:5,} users: {np.mean(right[-100:]):.0%} of the last 100 to the right tool")
    print(f"first 50: {np.mean(right[:50]):.0%}   last 50: {np.mean(right[-50:]):.0%}")

    question = asked[0][0]
    run = await agent.answer_async(question)  # kept from here on
    begin = time.perf_counter()
    for _ in range(100):
        await agent.answer_async(question)
    cached = (time.perf_counter() - begin) / 100
    print(f"that answer took {run.trace.duration_ms:.2f} ms, an answer from the cache {1e6 * cached:.0f} µs")
    print(agent.explain(run))
    agent.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(main(Path(place)))
