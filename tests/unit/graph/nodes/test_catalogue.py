"""Kinds of parameters as declarations write them, and the YAML files themselves."""

from __future__ import annotations

from importlib import resources

import pytest

from surefoot.graph.nodes import REGISTRY
from surefoot.graph.nodes.catalogue import declare, kind_of
from surefoot.learn.config import PPOConfig


@pytest.mark.parametrize(
    ("text", "legal", "illegal"),
    [
        ("float > 0", 1e-9, 0.0),
        ("float >= 0", 0.0, -1.0),
        ("float > 0 <= 1", 1.0, 1.5),
        ("int >= 1 <= 64", 64, 65),
        ("int >= 1 <= 64", 1, 2.5),
        ("bool", True, "yes"),
        ("text 4", "four", "seven"),
        (["a", "b"], "b", "c"),
    ],
)
def test_a_kind_accepts_what_its_text_says(text: str | list[str], legal: object, illegal: object) -> None:
    kind = kind_of(text)
    assert kind.accept(legal) == legal
    with pytest.raises((ValueError, TypeError)):
        kind.accept(illegal)


def test_or_none_allows_null_besides() -> None:
    kind = kind_of("float > 0 or none")
    assert kind.accept(None) is None
    assert kind.parse("none") is None
    with pytest.raises(ValueError, match="above 0"):
        kind.accept(0.0)


def test_a_setting_has_the_name_the_help_and_the_kind_of_its_config() -> None:
    param = REGISTRY.get("PPOTrainerNode").param("learning_rate")
    field = PPOConfig.__dataclass_fields__["lr"]
    assert param is not None
    assert (param.name, param.help, param.kind) == ("lr", field.metadata["help"], field.metadata["kind"])


def test_a_behaviour_for_a_node_that_the_file_does_not_have_is_an_error() -> None:
    with pytest.raises(AssertionError, match="no Nonesuch"):
        declare("inspection", Nonesuch={})


def test_every_file_has_a_runtime_module() -> None:
    files = {path.name for path in resources.files("surefoot.graph.nodes").iterdir() if path.name.endswith(".yaml")}
    modules = {
        each.partition(":")[0].rpartition(".")[2] for each in REGISTRY.runtimes() if each.startswith("surefoot.")
    }
    assert files == {f"{module}.yaml" for module in modules}
