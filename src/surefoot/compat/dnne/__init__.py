"""DNNE's names: its node types as aliases of the catalogue's, and its ComfyUI workflows. See docs/explain/origins.md.

`register()` makes both known to `surefoot.graph`; the command line does so for `surefoot graph` and `surefoot studio`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from surefoot._lazy import lazy_names

if TYPE_CHECKING:
    from surefoot.compat.dnne.workflow import from_workflow as from_workflow

# {node of the catalogue: its names in DNNE}
ALIASES = {
    "Environment": ("IsaacGymEnvNode",),
    "Step": ("IsaacGymStepNode",),
    "ActionProcessor": ("CartpoleActionNode",),
    "FloatConstant": ("ConstantFloatNode",),
    "IntConstant": ("ConstantIntNode",),
    "StringConstant": ("ConstantStringNode",),
    "Print": ("PrintValue", "DebugPrintNode"),
}
_load, __dir__ = lazy_names(__name__)


def register() -> None:
    """Register DNNE's node types and workflows with `surefoot.graph`; a second call changes nothing."""
    from surefoot.graph.import_.program import register_format
    from surefoot.graph.nodes import REGISTRY

    for name, aliases in ALIASES.items():
        declared = REGISTRY.get(name)
        if not set(aliases) <= set(declared.aliases):
            REGISTRY.add(replace(declared, aliases=(*aliases, *declared.aliases)))
    register_format("a ComfyUI workflow", f"{__name__}.workflow")


def __getattr__(name: str) -> Any:
    """Return a constructor for a DNNE node type: `IsaacGymEnvNode(env_name="CartPole-v1")`."""
    known = next((node for node, aliases in ALIASES.items() if name in aliases), None)
    if known is None:
        return _load(name)
    from surefoot.graph.custom_node import kind_of

    return kind_of(known)
