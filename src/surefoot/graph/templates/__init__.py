"""Graphs that come with the package, ready to run: `template("cartpole")`.

Their JSON is the source; edit it in the studio (`surefoot studio`) or in a text editor. It must be the canonical text.
"""

from __future__ import annotations

import difflib
from importlib.resources import files

from surefoot.errors import GraphError
from surefoot.graph.spec.model import Graph
from surefoot.graph.spec.text import parse_graph

NAMES = ("cartpole", "cartpole_ppo", "multi_env", "hierarchical", "pendulum", "mujoco", "town", "tools", "language")


def template(name: str) -> Graph:
    """Return a shipped graph.

    Args:
        name: One of `NAMES`.
    """
    return parse_graph(template_text(name))


def template_text(name: str) -> str:
    """Return the JSON of a shipped graph."""
    if name not in NAMES:
        close = difflib.get_close_matches(name, NAMES, n=1)
        advice = f"did you mean {close[0]}?" if close else f"choose one of {', '.join(NAMES)}"
        raise GraphError(f"there is no template {name[:40]!r}; {advice}")
    return files(__name__).joinpath(f"{name}.json").read_text(encoding="utf-8")
