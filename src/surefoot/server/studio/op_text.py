"""Operations on graphs in words, as commands: for the history and the Fix buttons."""

from __future__ import annotations

from typing import Any

from surefoot.graph.spec.ops import Op

DESCRIPTIONS = {
    "add": "add {id} ({type})",
    "remove": "remove {id}",
    "connect": "connect {from} → {to}",
    "disconnect": "disconnect {to}",
    "move": "move {id}",
    "rename": "rename {id} to {to}",
    "frame": "change the comment {id}",
}


def describe(op: Op) -> str:
    """Return a change as a short description."""
    match op.get("op"):
        case "set":
            changes = ", ".join([*(f"{k} = {v}" for k, v in op.get("params", {}).items()), *op.get("unset", ())])
            return f"set {op['id']}: {changes[:80]}"
        case "mode":
            return f"{op['mode'] or 'activate'} {op['id']}"
        case "within":
            return f"in {op['graph']}: {describe(op['do'])}"
        case "define":
            return f"{'remove' if op['graph'] is None else 'change'} sub-graph {op['name']}"
        case "run":
            return f"run settings: {', '.join(f'{k} = {v}' for k, v in op['settings'].items())}"
        case "batch":
            ops: list[Op] = op["ops"]
            first = describe(ops[0]) if ops else "nothing"
            if len(ops) < 2:
                return first
            only_moves = all(each["op"] == "move" for each in ops)
            return f"move {len(ops)} nodes" if only_moves else f"{first} and {len(ops) - 1} more"
        case kind:
            return DESCRIPTIONS[kind].format_map(op) if kind in DESCRIPTIONS else str(kind)


def moves_of(op: Op) -> dict[str, Any] | None:
    """Return {node: position} of an operation that only moves nodes; None of any other."""
    if op["op"] == "within":
        return moves_of(op["do"])
    ops: list[Op] = op["ops"] if op["op"] == "batch" else [op]
    return {each["id"]: each["at"] for each in ops} if ops and all(each["op"] == "move" for each in ops) else None
