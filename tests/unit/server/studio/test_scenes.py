"""Environments as the page shows them."""

import base64
import io

from PIL import Image

from surefoot.graph.run.interpreter import Interpreter
from surefoot.graph.templates import template
from surefoot.server.studio.scenes import scenes_of


def test_a_town_is_shown_as_pictures(tmp_path) -> None:
    graph = template("town")
    graph.remove("print")
    graph.nodes["env"].params["towns"] = 2
    with Interpreter(graph, into=tmp_path) as engine:
        (scene,) = scenes_of(engine)
        assert scene.frame(engine) is None
        engine.tick()
        told = scene.frame(engine)
    assert told is not None
    assert told["env_id"] == "town/queue_conflict"
    assert len(told["pictures"]) == 2
    with Image.open(io.BytesIO(base64.b64decode(told["pictures"][0].partition(",")[2]))) as seen:
        assert seen.size == (168, 168)
        assert len(seen.convert("RGB").getcolors(1 << 16) or []) > 3
