"""Pictures of graphs."""

import xml.etree.ElementTree as ET

from surefoot.graph.export.svg import to_svg
from surefoot.graph.spec.model import Graph
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
