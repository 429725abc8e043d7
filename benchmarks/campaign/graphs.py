"""G1: invalid and hostile graphs: JSON that lies, names that are code, numbers that are none. Read as data or refused."""

from __future__ import annotations

import contextlib
import json
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from campaign.frame import Block, Found, dice, is_here

NAMES = "names of nodes are not checked"
CRASH = "a number out of range raises an uncaught error"
HOSTILE: tuple[Any, ...] = (
    *(
        None,
        True,
        -1,
        0,
        1e308,
        -1e308,
        2**70,
        "",
        "x" * 50_000,
        [],
        {},
        [[[]]],
        {"a": {"b": {}}},
        "\0",
        "é\u202e",
        "1e999",
    ),
    *(
        "__import__('os').system('true')",
        "{CANARY}",
        "../../../etc/passwd",
        "/etc/passwd",
        "os:system",
        "a.b.c",
        "$(id)",
    ),
)


def bare(**content: Any) -> str:
    return json.dumps({"format": "surefoot.graph", "version": 1, **content})


def refused_texts() -> Iterator[str]:
    """What must never become a graph."""
    for name in ("a b", "__import__('os')", "a;b", "a\nb", "", "a" * 5000, "a.b", "../a", "{x}"):
        yield bare(nodes={name: {"type": "OR"}})
    for id in ("os:system", "../x.so", "/tmp/x", "a:b:c", "module:Class"):
        yield bare(nodes={"e": {"type": "Environment", "params": {"env_id": id}}})
    for folder in ("../../x", "/etc", "a/../../b"):
        yield bare(nodes={"c": {"type": "Checkpoint", "params": {"folder": folder}}})
    yield from ("", "[]", "{}", "[" * 100_000, "{" * 5000, '"x"', "nul", "\ufeff{}", bare(extra=1), bare(nodes=[]))
    yield '{"format": "surefoot.graph", "version": 1, "name": "a", "name": "b"}'
    yield '{"format": "surefoot.graph", "version": 1, "run": {"seed": NaN}}'
    yield bare(nodes={f"n{k}": {"type": "OR"} for k in range(3000)})


def mutated(rng: random.Random, texts: list[str], canary: str) -> str:
    """A good graph's text with something in it replaced, taken out, or damaged."""
    text = rng.choice(texts)
    if rng.random() < 0.25:
        at = rng.randrange(len(text))
        return (
            text[:at] + rng.choice(["", "\0", "{", "]", '"', "9" * 400, "\ud7ff", ",,"]) + text[at + rng.randrange(3) :]
        )
    whole = json.loads(text)
    for _ in range(rng.randint(1, 3)):
        place = rng.choice(list(_places(whole)))
        holder, key = place
        new = rng.choice(HOSTILE)
        new = new.replace("{CANARY}", f"open({canary!r}, 'w')") if isinstance(new, str) else new
        if rng.random() < 0.2:
            del holder[key]
        elif isinstance(holder, dict) and rng.random() < 0.2:
            holder[str(new)[:60]] = holder.pop(key)
        else:
            holder[key] = new
    return json.dumps(whole)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """(holder, key) of everything inside."""
    pairs = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    for key, inner in pairs:
        yield value, key
        yield from _places(inner)


@contextlib.contextmanager
def with_defect(defect: str) -> Iterator[None]:
    from surefoot.graph.spec import text

    with contextlib.ExitStack() as undo:
        if defect == NAMES:
            undo.callback(setattr, text, "require_name", text.require_name)
            text.require_name = lambda name, what: name
        elif defect == CRASH:
            read = text.read_run

            def careless(settings: Any) -> Any:
                int(settings.get("seed", 0)) + int(settings.get("total_steps", 0))
                return read(settings)

            undo.callback(setattr, text, "read_run", read)
            text.read_run = careless
        yield


def check(count: int, defect: str = "") -> Found:
    found = Found()
    if not is_here("surefoot.graph"):
        found.not_here = "not here yet: surefoot.graph"
        return found
    from surefoot.graph.templates import NAMES as TEMPLATES
    from surefoot.graph.templates import template_text

    rng = dice(12)
    texts = [template_text(name) for name in TEMPLATES]
    with with_defect(defect), tempfile.TemporaryDirectory() as place:
        canary = Path(place) / "canary"
        for text in refused_texts():
            _read(found, text, must_refuse=True)
        for _ in range(count):
            _read(found, mutated(rng, texts, str(canary)), must_refuse=False)
            if canary.exists():
                found.fault("code in a graph ran")
                canary.unlink()
    found.bad_inputs = found.tried
    return found


def _read(found: Found, text: str, *, must_refuse: bool) -> None:
    """Refused by one sentence, or a graph whose own text reads back as the same."""
    from surefoot.errors import GraphError
    from surefoot.graph.spec.check import check as look
    from surefoot.graph.spec.text import canonical, parse_graph

    found.tried += 1
    try:
        graph = parse_graph(text)
        look(graph)
        again = canonical(parse_graph(canonical(graph)))
    except GraphError as why:
        found.notes["refused"] = found.notes.get("refused", 0) + 1
        if "\n" in str(why):
            found.fault(f"a refusal of several lines: {str(why)[:80]!r}")
        return
    except Exception as error:
        found.fault(f"{type(error).__name__}: {str(error)[:100]} by {text[:80]!r}")
        return
    if must_refuse:
        found.silent += 1
        found.fault(f"taken for a graph: {text[:80]!r}")
    elif again != canonical(graph):
        found.silent += 1


BLOCK = Block(
    name="G1",
    title="invalid and hostile graphs",
    over="graph",
    unit="graphs",
    smoke=100,
    count=2000,
    long=200_000,
    check=check,
    mutants={NAMES: 1, CRASH: 300},
)
