"""Stores or learns until it is killed, and says what was acknowledged; afterwards somebody looks at what it left."""

from __future__ import annotations

import hashlib
from multiprocessing.connection import Connection
from pathlib import Path

from surefoot.decide.encoders.encoder import HashingEncoder
from surefoot.decide.policy.replay import ReplayChooser
from surefoot.decide.tools import ToolAgent, tool
from surefoot.errors import SurefootError


@tool
def left(text: str) -> str:
    """Go to the left."""
    return "left"


@tool
def right(text: str) -> str:
    """Go to the right."""
    return "right"


def agent_in(directory: Path, seed: int) -> ToolAgent:
    return ToolAgent([left, right], encoder=HashingEncoder(32), directory=directory, seed=seed)


def digest(agent: ToolAgent) -> str:
    """Of everything the policy has learned."""
    core = agent.agent.chooser
    assert isinstance(core, ReplayChooser)
    return hashlib.sha256(core.state()["table"].tobytes()).hexdigest()


def work(what: str, directory: Path, seed: int, ear: Connection) -> None:
    """`stored ID` once an outcome is acknowledged, `saved DIGEST` once a version is; without an end."""
    agent, n = agent_in(directory, seed), 0
    while True:
        run = agent.answer(f"where to at {n % 7}?")
        agent.feedback(run, {"helpful": run.tool == ("left" if n % 7 < 3 else "right")})
        ear.send(("stored", run.id))
        if what == "learn" and n % 5 == 4:
            agent.learn(force=n % 10 == 9)
            with (directory / "digests.txt").open("a") as file:  # before saving: what is loaded later is one of these
                file.write(digest(agent) + "\n")
            agent.save()
            ear.send(("saved", digest(agent)))
        n += 1


def left_behind(directory: Path, seed: int, stored: list[str], saved: list[str]) -> dict[str, int]:
    """How much is lost, whether the policy loads, and whether it is the acknowledged one or one that came later."""
    try:
        agent = agent_in(directory, seed)
    except (SurefootError, OSError):
        return {"lost": len(stored), "unloadable": 1, "other_digits": 0}
    lost = sum(not agent.runs.journal.has("episode", id) for id in stored)
    other = False
    if saved:
        known = (directory / "digests.txt").read_text().split()
        other = digest(agent) not in known[known.index(saved[-1]) :]
    agent.runs.close()
    return {"lost": lost, "unloadable": 0, "other_digits": int(other)}
