"""Pictures of graphs."""

import xml.etree.ElementTree as ET

import pytest

from surefoot.errors import GraphError
from surefoot.graph.export.svg import graph_of_page, to_page, to_svg
from surefoot.graph.spec.model import Graph
from surefoot.graph.spec.text import parse_graph
from surefoot.graph.templates import template


def test_a_picture_is_well_formed_shows_every_node_and_escapes_its_words() -> None:
    graph = template("multi_env")
    graph.name = "<script>"
    picture = to_svg(graph)
    texts = [each.text for each in ET.fromstring(picture).iter() if each.text]
    assert set(graph.nodes) <= set(texts)
    assert "<script>" not in picture
    assert sum("1 tick" in text for text in texts) == 3
    graph.layout = {}
    ET.fromstring(to_svg(graph))
    ET.fromstring(to_svg(Graph()))


def test_a_page_carries_its_graph_whatever_its_text_contains() -> None:
    graph = template("cartpole")
    graph.about = "</script><script>alert(1)</script>"
    page = to_page(graph)
    assert page.count("<script") == 1
    assert parse_graph(graph_of_page(page)) == graph
    with pytest.raises(GraphError, match="carries no graph"):
        graph_of_page("<html></html>")
