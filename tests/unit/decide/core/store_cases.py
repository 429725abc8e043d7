"""What the tests that were split from test_store.py share."""

from __future__ import annotations

from surefoot.decide.core.agent import Agent, AgentConfig

NAMES = {"weather": "weather forecast, rain, sun", "music": "play songs, albums and music"}


def agent(encoder, store=None, chooser: str = "ppo") -> Agent:
    made = Agent(encoder, config=AgentConfig(chooser=chooser), store=store)
    for name, description in NAMES.items():
        made.options.add(name, description)
    return made
