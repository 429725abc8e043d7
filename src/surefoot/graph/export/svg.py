"""A graph as an SVG picture, and as a page that carries the graph; delayed edges run below the boxes."""

from __future__ import annotations

from html import escape

from surefoot.errors import GraphError
from surefoot.graph.nodes import REGISTRY
from surefoot.graph.spec.check import check
from surefoot.graph.spec.model import ABSENT, Edge, Graph
from surefoot.graph.spec.text import canonical

# Pixels at font size 11: the longest node type fits into the width, a port into a row.
WIDTH, HEAD, ROW = 170, 34, 18
GAP, COLUMN_HEIGHT = 70.0, 190.0
_BEGIN = '<script type="application/json" id="surefoot-graph">'
_COLOURS = {"RL/PPO": "#0f766e", "RL/Hierarchy": "#7c3aed", "World": "#1d4ed8", "Flow": "#b45309", "Look": "#475569"}


def layout_of(graph: Graph) -> dict[str, tuple[float, float]]:
    """Return the positions of the layout; if it is incomplete, columns by the distance from a source."""
    if graph.nodes and all(id in graph.layout for id in graph.nodes):
        return dict(graph.layout)
    column: dict[str, int] = {}
    order = [id for id in check(graph).order if id in graph.nodes] or sorted(graph.nodes)
    before = {id: [e.source.node for e in graph.edges if e.target.node == id and e.delay is None] for id in graph.nodes}
    # Nodes of a graph with errors have no order; they come last.
    for id in [*order, *sorted(set(graph.nodes) - set(order))]:
        column[id] = 1 + max((column.get(each, -1) for each in before[id]), default=-1)
    rows: dict[int, int] = {}
    places: dict[str, tuple[float, float]] = {}
    for id in sorted(column, key=lambda each: (column[each], each)):
        row = rows.setdefault(column[id], 0)
        places[id] = (column[id] * (WIDTH + GAP), row * COLUMN_HEIGHT)
        rows[column[id]] += 1
    return places


def to_svg(graph: Graph) -> str:
    """Return the SVG text."""
    places = layout_of(graph)
    boxes = {id: _ports(graph, id) for id in graph.nodes}
    heights = {id: HEAD + ROW * max(1, len(a), len(b)) + 8 for id, (a, b) in boxes.items()}
    right = max((x + WIDTH for x, _ in places.values()), default=200) + 40
    bottom = max((places[id][1] + heights[id] for id in graph.nodes), default=80)
    delayed = [edge for edge in graph.edges if edge.delay is not None]
    # Each delayed edge has its own lane below the boxes.
    lanes = {edge.target: bottom + 24 + 16 * number for number, edge in enumerate(delayed)}
    lines = [_edge(edge, places, boxes, lanes.get(edge.target)) for edge in graph.edges]
    top = min((y for _, y in places.values()), default=0) - 20
    left = min((x for x, _ in places.values()), default=0) - 40
    height = bottom + 40 + 16 * len(delayed) - top
    body = "\n".join([*lines, *(_box(graph, id, places[id], boxes[id], heights[id]) for id in sorted(graph.nodes))])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left:g} {top:g} {right - left:g} {height:g}" '
        f'width="{right - left:g}" height="{height:g}" font-family="system-ui, sans-serif" font-size="11" role="img">\n'
        f"<title>{escape(graph.name)}</title>\n"
        f'<rect x="{left:g}" y="{top:g}" width="{right - left:g}" height="{height:g}" fill="#f8fafc"/>\n{body}\n</svg>\n'
    )


def to_page(graph: Graph) -> str:
    """Return a HTML page with the picture of a graph and the graph itself, which `graph_of_page` reads back."""
    # "<" cannot end the script element if it is written as an escape.
    text = canonical(graph).replace("<", "\\u003c")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(graph.name)}</title></head><body>\n'
        f"<h1>{escape(graph.name)}</h1>\n<p>{escape(graph.about)}</p>\n{to_svg(graph)}"
        "<p>Drop this file on the page of <code>surefoot studio</code> to open the graph.</p>\n"
        f"{_BEGIN}{text}</script>\n</body></html>\n"
    )


def graph_of_page(text: str) -> str:
    """Return the JSON text of the graph in a page; raise `GraphError` if it has none."""
    _, begin, rest = text.partition(_BEGIN)
    content, end, _ = rest.partition("</script>")
    if not begin or not end:
        raise GraphError("this page carries no graph; pages that the studio shares do")
    return content


def _ports(graph: Graph, id: str) -> tuple[list[str], list[str]]:
    declared = REGISTRY.find(graph.nodes[id].type)
    used = (
        {e.target.port for e in graph.edges if e.target.node == id},
        {e.source.port for e in graph.edges if e.source.node == id},
    )
    if declared is None:
        return sorted(used[0]), sorted(used[1])
    inputs = [port.name for port in declared.inputs if port.name in used[0] or not port.optional]
    outputs = [port.name for port in declared.outputs if port.name in used[1]]
    return [*inputs, *sorted(used[0] - set(inputs))], [*outputs, *sorted(used[1] - set(outputs))]


def _box(graph: Graph, id: str, place: tuple[float, float], ports: tuple[list[str], list[str]], height: float) -> str:
    x, y = place
    node = graph.nodes[id]
    declared = REGISTRY.find(node.type)
    colour = _COLOURS.get(declared.category if declared else "", "#334155")
    parts = [
        f'<g><rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{height:g}" rx="6" fill="white" stroke="{colour}"/>',
        f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="26" rx="6" fill="{colour}"/>',
        f'<text x="{x + 8:g}" y="{y + 17:g}" fill="white" font-weight="600">{escape(id)}</text>',
        f'<text x="{x + WIDTH - 8:g}" y="{y + 17:g}" fill="white" text-anchor="end" opacity="0.8">{escape(node.type)}</text>',
    ]
    for side, names in enumerate(ports):
        for row, name in enumerate(names):
            px, py = x + side * WIDTH, y + HEAD + ROW * row + 8
            anchor, shift = ("end", -8) if side else ("start", 8)
            parts.append(f'<circle cx="{px:g}" cy="{py:g}" r="3.5" fill="{colour}"/>')
            parts.append(
                f'<text x="{px + shift:g}" y="{py + 4:g}" text-anchor="{anchor}" fill="#334155">{escape(name)}</text>'
            )
    return "".join([*parts, "</g>"])


def _edge(
    edge: Edge,
    places: dict[str, tuple[float, float]],
    boxes: dict[str, tuple[list[str], list[str]]],
    below: float | None,
) -> str:
    if edge.source.node not in places or edge.target.node not in places:
        return ""
    x1, y1 = _end(places[edge.source.node], boxes[edge.source.node][1], edge.source.port, WIDTH)
    x2, y2 = _end(places[edge.target.node], boxes[edge.target.node][0], edge.target.port, 0)
    if below is None:
        bend = max(30.0, abs(x2 - x1) / 2)
        return f'<path d="M{x1:g},{y1:g} C{x1 + bend:g},{y1:g} {x2 - bend:g},{y2:g} {x2:g},{y2:g}" fill="none" stroke="#94a3b8"/>'
    initial = "absent" if edge.delay is None or edge.delay.initial is ABSENT else str(edge.delay.initial)
    path = f"M{x1:g},{y1:g} h14 V{below:g} H{x2 - 14:g} V{y2:g} H{x2:g}"
    label_at = f'x="{(x1 + x2) / 2:g}" y="{below - 3:g}" fill="#b45309" text-anchor="middle"'
    label = f"<text {label_at}>1 tick, first {escape(initial)}</text>"
    return f'<path d="{path}" fill="none" stroke="#d97706" stroke-dasharray="5 3"/>{label}'


def _end(place: tuple[float, float], names: list[str], port: str, shift: float) -> tuple[float, float]:
    row = names.index(port) if port in names else 0
    return place[0] + shift, place[1] + HEAD + ROW * row + 8
