"""What a program takes from the library."""

import inspect

from surefoot.core import losses
from surefoot.core.advantage import gae
from surefoot.graph.export import program
from surefoot.graph.export.bundle import _module, bundle
from surefoot.graph.export.standalone import to_standalone
from surefoot.graph.templates import template


def test_a_change_in_the_library_changes_the_program(monkeypatch) -> None:
    graph = template("cartpole")
    before = to_standalone(graph)
    for name in ("gae", "clipped_surrogate", "value_loss", "ppo_loss"):
        library = inspect.getsource(getattr(losses, name, gae))
        without_docstrings = [line for line in library.splitlines() if '"""' not in line and "return" in line]
        assert all(line in before for line in without_docstrings), name
    source = inspect.getsource

    def changed(module: object) -> str:
        return source(module).replace("torch.maximum(-advantage", "torch.minimum(-advantage")  # type: ignore[arg-type]

    monkeypatch.setattr(inspect, "getsource", changed)
    _module.cache_clear()
    try:
        after = to_standalone(graph)
    finally:
        _module.cache_clear()
    assert "torch.minimum(-advantage" in after
    assert "torch.minimum(-advantage" not in before


def test_only_methods_that_something_mentions_are_copied_and_docstrings_have_one_line() -> None:
    result = bundle(program.run, imports={}, reading_order=("surefoot",)).definitions
    assert "def recent" not in result  # only a type annotation leads to the log of episodes
    assert "def step" not in result
    assert '"""Read weights and optimiser as `save` wrote them; the streams begin anew."""' in result
