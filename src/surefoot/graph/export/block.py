"""The graph inside an exported program: its JSON in comment lines at the end, with a hash of the text above.

The hash shows whether the program was edited; then the graph alone would be out of date.
"""

from __future__ import annotations

import hashlib
import json
import re

from surefoot.graph.spec.model import Graph
from surefoot.graph.spec.text import FORMAT, VERSION, parse_graph, to_json

# Characters per comment line; any width works, as the reader joins the lines.
WIDTH = 110
_HEAD = "# Graph of this program, read by `surefoot graph import`; sha256 of the lines above:"
_BLOCK = re.compile(rf"\n\n{re.escape(_HEAD)}\n# ([0-9a-f]{{64}})\n((?:# .*\n?)+)\s*\Z")


def with_graph(text: str, graph: Graph) -> str:
    """Return a program with its graph at the end."""
    content = json.dumps({"format": FORMAT, "version": VERSION, **to_json(graph)}, separators=(",", ":"))
    # The bar protects spaces at line ends from editors that strip them.
    lines = [f"# {content[start : start + WIDTH]}|" for start in range(0, len(content), WIDTH)]
    return "\n".join([text, "", _HEAD, f"# {_hash(text)}", *lines, ""])


def split_block(text: str) -> tuple[str, Graph | None, bool]:
    """Return the program, the graph at its end or None, and whether the program is unchanged."""
    match = _BLOCK.search(text)
    if match is None:
        return text, None, False
    program, chunks = text[: match.start()], match[2].splitlines()
    graph = parse_graph("".join(line.removeprefix("# ").removesuffix("|") for line in chunks))
    return program, graph, _hash(program) == match[1]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
