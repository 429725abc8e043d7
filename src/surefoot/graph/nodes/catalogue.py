"""Node declarations as data: the YAML files list the ports and parameters of the nodes.

A parameter's `kind` is a list of words to choose from, a number such as `float > 0` or `int >= 1 <= 64`, or one of
`param_kinds.KINDS`; `… or none` allows null. `setting: PPOConfig.lr` takes name, kind and help from that field of the config
class instead; `aliases` are the names of earlier versions.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any, TypedDict, cast

from surefoot.data.kinds import Interval, Kind, choice, integer, optional, real
from surefoot.data.shipped_yaml import read_shipped
from surefoot.decide.policy.replay_config import ReplayConfig
from surefoot.graph.nodes.param_kinds import KINDS, text
from surefoot.graph.spec.declare import REQUIRED, Clocks, Infer, Lint, NodeType, Param, Port, Streams
from surefoot.graph.spec.types import Clock, Type
from surefoot.learn.config import PPOConfig
from surefoot.nets.config import NetConfig
from surefoot.train.config import CollectConfig

CONFIGS = {each.__name__: each for each in (PPOConfig, NetConfig, CollectConfig, ReplayConfig)}
_NUMBER = re.compile(r"(int|float)(?: (>=?) (\S+))?(?: (<=?) (\S+))?")


class NodeBehaviour(TypedDict, total=False):
    """The parts of a declaration that are not data."""

    infer: Infer
    clocks: Clocks
    lint: Lint
    streams: Streams
    presets: Mapping[str, Mapping[str, Any]]


def declare(
    file: str, words: Mapping[str, tuple[str, ...]] | None = None, **behaviour: NodeBehaviour
) -> dict[str, NodeType]:
    """Return the node types of a YAML file by name.

    Args:
        file: Name of the file, which is also the name of the runtime module.
        words: Choices that are only known at run time, by the `kind` that the file uses for them.
        **behaviour: Functions (`infer`, `clocks`, `lint`, `streams`) and computed fields per node type.
    """
    entries: dict[str, dict[str, Any]] = read_shipped("surefoot.graph.nodes", f"{file}.yaml")
    nodes: dict[str, NodeType] = {}
    for name, entry in entries.items():
        fields: dict[str, Any] = {
            key: tuple(cast(list[Any], x)) if isinstance(x, list) else x for key, x in entry.items()
        }
        for side in ("inputs", "outputs"):
            fields[side] = tuple(_port(**port) for port in entry.get(side, ()))
        fields["params"] = tuple(_param(words or {}, **param) for param in entry.get("params", ()))
        if "source" in entry:
            fields["source"] = Clock(entry["source"])
        fields |= cast(dict[str, Any], behaviour.pop(name, {}))
        nodes[name] = NodeType(name=name, runtime=runtime_name(file, name), **fields)
    assert not behaviour, f"{file}.yaml has no {', '.join(behaviour)}"
    return nodes


def runtime_name(file: str, name: str) -> str:
    """Return module:class of the runtime of a node type."""
    return f"surefoot.graph.runtime.{file}:{name.removesuffix('Node')}Node"


def _port(*, name: str, type: str, help: str, aliases: list[str] | None = None, **flags: bool) -> Port:
    kind, _, dtype = type.partition(" ")
    return Port(name, Type(kind, dtype or None), help, aliases=tuple(aliases or ()), **flags)


def _param(
    words: Mapping[str, tuple[str, ...]],
    *,
    name: str = "",
    kind: str | list[str] | None = None,
    help: str = "",
    default: Any = REQUIRED,
    aliases: list[str] | None = None,
    setting: str = "",
) -> Param:
    config, _, field = setting.partition(".")
    chosen = None if kind is None else kind_of(words.get(kind, kind) if isinstance(kind, str) else kind)
    if config:
        declared = next(each for each in dataclasses.fields(CONFIGS[config]) if each.name == field)
        # A node may narrow the kind: a graph always has a minibatch size, PPOConfig may derive it.
        name, chosen, help = field, chosen or declared.metadata["kind"], declared.metadata["help"]
    assert chosen is not None, f"{name} has neither a kind nor a setting"
    value = default if default is REQUIRED else chosen.accept(default)
    return Param(name, chosen, help, value, aliases=tuple(aliases or ()), config=CONFIGS.get(config), setting=field)


def kind_of(declared: str | list[str] | tuple[str, ...]) -> Kind:
    """Return the kind that a declaration writes as `declared`."""
    if not isinstance(declared, str):
        return choice(*declared)
    if declared.endswith(" or none"):
        return optional(kind_of(declared.removesuffix(" or none")))
    if (match := _NUMBER.fullmatch(declared)) is not None:
        kind, above, low, below, high = match.groups()
        bounds = {key: json.loads(bound) for key, bound in (("low", low), ("high", high)) if bound}
        interval = Interval(**bounds, open_low=above == ">", open_high=below == "<")
        return integer(interval) if kind == "int" else real(interval)
    name, _, most = declared.partition(" ")
    return text(int(most)) if most else KINDS[name]
