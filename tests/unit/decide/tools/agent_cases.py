"""What the tests that were split from test_agent.py share."""

from __future__ import annotations

from surefoot.decide.policy.ppo import PPOChooser
from surefoot.decide.tools import ToolAgent, tool


@tool
def weather(text: str) -> str:
    """Weather forecast: rain, sun, temperature."""
    return "sunny"


@tool
def music(text: str) -> str:
    """Play music, songs and albums."""
    return "playing"


def agent(encoder, **options) -> ToolAgent:
    return ToolAgent([weather, music], encoder=encoder, **options)


def core(made: ToolAgent) -> PPOChooser:
    assert isinstance(made.chooser, PPOChooser)
    return made.chooser
