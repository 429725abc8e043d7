"""Stores or learns until it is killed, and says what was acknowledged: `stored ID`, `saved DIGEST`. `look` loads it again."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from surefoot.decide.encoders import HashingEncoder
from surefoot.decide.tools import ToolAgent, tool


@tool
def left(text: str) -> str:
    """Go to the left."""
    return "left"


@tool
def right(text: str) -> str:
    """Go to the right."""
    return "right"


def digest(agent: ToolAgent) -> str:
    """Of everything the policy has learned."""
    core = agent.policy.core
    state = core.policy.weight.detach().numpy().tobytes() + core.model.theta().tobytes()
    return hashlib.sha256(state).hexdigest()


def say(kind: str, word: str) -> None:
    sys.stdout.write(f"{kind} {word}\n")
    sys.stdout.flush()


def main() -> int:
    what, directory, seed = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    agent = ToolAgent([left, right], encoder=HashingEncoder(32), directory=directory, seed=seed)
    known = directory / "digests.txt"
    if what == "look":
        there = known.read_text().split() if known.exists() else []
        print("good" if not agent.policy.version or digest(agent) in there else "bad")
        return 0
    for n in range(100_000):
        woven = agent.weave_sync(f"where to at {n % 7}?")
        agent.reflect_sync(woven, {"helpful": woven.tool_used == ("left" if n % 7 < 3 else "right")})
        say("stored", woven.id)
        if what == "learn" and n % 5 == 4:
            agent.learn_sync(force=n % 10 == 9)
            with known.open("a") as file:  # before saving: whatever is loaded later must be one of these
                file.write(digest(agent) + "\n")
            agent.save()
            say("saved", digest(agent))
    return 0


if __name__ == "__main__":
    sys.exit(main())
