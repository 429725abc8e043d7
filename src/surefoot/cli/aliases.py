"""Earlier names of options (aliases.yaml) and of a verb, translated before the arguments are parsed.

Names of earlier systems and other libraries are accepted silently; a renamed option prints a notice for one release.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from surefoot.data.shipped_yaml import read_shipped


@cache
def _table() -> dict[str, Any]:
    return read_shipped("surefoot.cli", "aliases.yaml")


def verb_name(name: str) -> str:
    return "report" if name == "telemetry view" else name


def current_names(verb: str, argv: list[str]) -> tuple[list[str], list[str]]:
    """Return the arguments of a verb with every option under its current name, and the notices to print.

    The value of an entry in aliases.yaml is a template. `--new` renames the option; `--set key={}` takes over its
    value; `--new value` stands for an option without a value.
    """
    if not any(text.startswith("-") for text in argv):
        return argv, []  # saves reading the file
    table = _table()
    silent, renamed = (table[section].get(verb, {}) for section in ("aliases", "renamed"))
    optional = table["optional"].get(verb, {})
    result: list[str] = []
    notices: list[str] = []
    words = iter(argv)
    pending = next(words, None)
    while pending is not None:
        text, pending = pending, next(words, None)
        option, equals, value = text.partition("=")
        option = option.replace("_", "-")
        template = silent.get(option, renamed.get(option))
        if option in optional and not equals:
            default, values = optional[option]
            result.append(text)
            if pending is None or not re.fullmatch(values, pending):
                result.append(default)
        elif template is None:
            result.append(text)
        elif "{}" in template:
            if not equals:
                value, pending = pending or "", next(words, None)
            result += template.format(value).split(" ", 1)
        else:
            result += [word + equals + value for word in template.split()]
        if option in renamed:
            change = f"is now {renamed[option].format('VALUE')}" if renamed[option] else "has no effect"
            notices.append(f"{option} {change}; the old name will be removed in the next release")
    return result, notices
