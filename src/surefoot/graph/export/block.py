"""The graph inside an exported program: its JSON in comment lines at the end, with a hash of the text above.

The hash says whether the program is still what was exported; if it was edited, the graph alone would be out of date.
"""

from __future__ import annotations

import hashlib
import json
import re

from surefoot.graph.spec.model import Graph
from surefoot.graph.spec.text import FORMAT, VERSION, parse_graph, to_json

WIDTH = 110
_HEAD = "# Graph of this program, read by `surefoot graph import`; sha256 of the lines above:"
_BLOCK = re.compile(rf"\n\n{re.escape(_HEAD)}\n# ([0-9a-f]{{64}})\n((?:# .*\n?)+)\s*\Z")


def with_graph(text: str, graph: Graph) -> str:
    """Return a program with its graph below."""
    whole = json.dumps({"format": FORMAT, "version": VERSION, **to_json(graph)}, separators=(",", ":"))
    lines = [f"# {whole[at : at + WIDTH]}|" for at in range(0, len(whole), WIDTH)]  # the bar keeps spaces at line ends
    return "\n".join([text, "", _HEAD, f"# {_hash(text)}", *lines, ""])


def split_block(text: str) -> tuple[str, Graph | None, bool]:
    """Return the program, the graph below it or None, and whether the program is as it was exported."""
    found = _BLOCK.search(text)
    if found is None:
        return text, None, False
    program, chunks = text[: found.start()], found[2].splitlines()
    graph = parse_graph("".join(line.removeprefix("# ").removesuffix("|") for line in chunks))
    return program, graph, _hash(program) == found[1]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
