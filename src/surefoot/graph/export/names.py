"""Names for generated code: no keyword, no builtin, none twice."""

from __future__ import annotations

import builtins
import keyword

OURS = (
    "config",
    "Config",
    "train",
    "tick",
    "rollouts",
    "dataclass",
    "partial",
    "annotations",
    "tyro",
    "NAME",
    "ABOUT",
    "main",
    "self",
)


class Names:
    """Gives each thing one name; a name that is taken or reserved gets a tail."""

    def __init__(self, *taken: str) -> None:
        self.taken = {*taken, *OURS, *dir(builtins), "_"}

    def new(self, wanted: str) -> str:
        """`wanted`, or as near to it as can be."""
        name, count = wanted, 1
        while name in self.taken or keyword.iskeyword(name) or keyword.issoftkeyword(name) or name.startswith("__"):
            count += 1
            name = f"{wanted.lstrip('_') or 'x'}_{count}" if count > 2 or name.startswith("__") else f"{wanted}_"
        self.taken.add(name)
        return name
