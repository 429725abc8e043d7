"""Node declarations as data: one YAML file per room lists the ports and parameters of its nodes.

A parameter's `kind` is a list of words to choose from, a number such as `float > 0` or `int >= 1 <= 64`, or one of `KINDS`;
`… or none` allows null. `setting: PPOConfig.lr` takes kind and help from that field of the config class instead.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypedDict, cast

from surefoot.data.kinds import Interval, Kind, choice, flag, integer, optional, real
from surefoot.data.shipped_yaml import read_shipped
from surefoot.graph.nodes import param_kinds
from surefoot.graph.spec.declare import REQUIRED, Clocks, Infer, Lint, NodeType, Param, Port, Streams
from surefoot.graph.spec.types import Clock, Type
from surefoot.learn.config import PPOConfig
from surefoot.nets.config import NetConfig
from surefoot.train.config import CollectConfig

CONFIGS = {each.__name__: each for each in (PPOConfig, NetConfig, CollectConfig)}
KINDS: dict[str, Callable[[], Kind]] = {
    "bool": flag,
    "count": lambda: param_kinds.COUNT,
    "counts": param_kinds.counts,
    "env_id": param_kinds.env_id,
    "folder": param_kinds.folder,
    "lines": param_kinds.lines,
    "names": param_kinds.names,
    "numbers": param_kinds.numbers,
    "schedule": param_kinds.schedule,
    "size": param_kinds.shape,
    "text": param_kinds.text,
}
_NUMBER = re.compile(r"(int|float)(?: (>=?) (\S+))?(?: (<=?) (\S+))?")


class NodeBehaviour(TypedDict, total=False):
    """The parts of a declaration that are not data."""

    infer: Infer
    clocks: Clocks
    lint: Lint
    streams: Streams
    presets: Mapping[str, Mapping[str, Any]]


def declare(
    room: str, words: Mapping[str, tuple[str, ...]] | None = None, **behaviour: NodeBehaviour
) -> dict[str, NodeType]:
    """Return the nodes of a room by name.

    Args:
        room: Name of the YAML file.
        words: Choices that are only known at run time, by the `kind` that the file calls them.
        **behaviour: Per node, its functions (`infer`, `clocks`, `lint`, `streams`) and fields that are computed.
    """
    loaded: dict[str, dict[str, Any]] = read_shipped("surefoot.graph.nodes", f"{room}.yaml")
    nodes: dict[str, NodeType] = {}
    for name, entry in loaded.items():
        fields: dict[str, Any] = {
            key: tuple(cast(list[Any], x)) if isinstance(x, list) else x for key, x in entry.items()
        }
        for side in ("inputs", "outputs"):
            fields[side] = tuple(_port(**port) for port in entry.get(side, ()))
        fields["params"] = tuple(_param(words or {}, **param) for param in entry.get("params", ()))
        if "source" in entry:
            fields["source"] = Clock(entry["source"])
        fields |= cast(dict[str, Any], behaviour.pop(name, {}))
        nodes[name] = NodeType(name=name, **fields)
    assert not behaviour, f"{room}.yaml has no {', '.join(behaviour)}"
    return nodes


def _port(*, name: str, type: str, help: str, aliases: list[str] | None = None, **flags: bool) -> Port:
    kind, _, dtype = type.partition(" ")
    return Port(name, Type(kind, dtype or None), help, aliases=tuple(aliases or ()), **flags)


def _param(
    words: Mapping[str, tuple[str, ...]],
    *,
    name: str,
    kind: str | list[str] | None = None,
    help: str = "",
    default: Any = REQUIRED,
    aliases: list[str] | None = None,
    setting: str = "",
) -> Param:
    config, _, knob = setting.partition(".")
    others = list(aliases or ())
    chosen = None if kind is None else kind_of(words.get(kind, kind) if isinstance(kind, str) else kind)
    if config:
        entry = next(each for each in dataclasses.fields(CONFIGS[config]) if each.name == knob)
        chosen, help = chosen or entry.metadata["kind"], entry.metadata["help"]
        former = [old for old, new in CONFIGS[config].vocabulary().former.items() if new == knob]
        others = [other for other in (knob, *others, *former) if other != name]
    assert chosen is not None, f"{name} has neither a kind nor a setting"
    value = default if default is REQUIRED else chosen.accept(default)
    return Param(name, chosen, help, value, aliases=tuple(others), config=CONFIGS.get(config), setting=knob)


def kind_of(text: str | list[str] | tuple[str, ...]) -> Kind:
    """Return the kind that a declaration writes as `text`."""
    if not isinstance(text, str):
        return choice(*text)
    if text.endswith(" or none"):
        return optional(kind_of(text.removesuffix(" or none")))
    if (number := _NUMBER.fullmatch(text)) is not None:
        kind, above, low, below, high = number.groups()
        bounds = {key: json.loads(bound) for key, bound in (("low", low), ("high", high)) if bound}
        within = Interval(**bounds, open_low=above == ">", open_high=below == "<")
        return integer(within) if kind == "int" else real(within)
    name, _, most = text.partition(" ")
    return param_kinds.text(int(most)) if most else KINDS[name]()
