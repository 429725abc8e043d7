"""Two tools and an agent for the tests."""

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


def core(tool_agent: ToolAgent) -> PPOChooser:
    assert isinstance(tool_agent.chooser, PPOChooser)
    return tool_agent.chooser
