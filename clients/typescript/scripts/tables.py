"""Write the words, weights and patterns of the prompt scores: python scripts/tables.py > src/prompts/tables.ts

Patterns are rewritten for JavaScript, where \\w, \\d, \\b, \\s, ^, $ and . match other characters than in Python.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from surefoot.decide.prompts import classify, lint, mutations, policy, restructure, structure, text

REQUIREMENTS = {"constraints": mutations.CONSTRAINTS, "criteria": mutations.CRITERIA}
LINT_PATTERNS = (
    *("word", "quoted", "number", "identifier", "refers", "points_down", "marker", "wanted", "opening", "broken"),
    *("persona", "lower", "upper"),
)

WORD, DIGIT = r"\p{L}\p{N}_", r"\p{Nd}"
SPACE = r"\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
BOUNDARY = f"(?:(?<=[{WORD}])(?![{WORD}])|(?<![{WORD}])(?=[{WORD}]))"
LETTERS = {r"[^\W\d_]": r"[\p{L}\p{Nl}\p{No}]", r"[^\W_]": r"[\p{L}\p{N}]"}
SYNTAX = set("^$\\.*+?()[]{}|/")


def script(pattern: re.Pattern[str]) -> list[str]:
    """Return [source, flags] of the same pattern in JavaScript, with the flag u."""
    source, out, place, inside = pattern.pattern, "", 0, False
    for python, javascript in LETTERS.items():
        source = source.replace(python, f"\0{javascript}\0")
    while place < len(source):
        char = source[place]
        if char == "\0":
            end = source.index("\0", place + 1)
            out, place = out + source[place + 1 : end], end + 1
            continue
        if char == "\\":
            out, place = out + escape(source[place + 1], inside), place + 2
            continue
        if char == "[" and not inside:
            inside = True
        elif char == "]" and inside:
            inside = False
        elif not inside:
            char = anchor(char, pattern.flags)
        out, place = out + char, place + 1
    return [out, "u" + ("i" if pattern.flags & re.IGNORECASE else "")]


def escape(letter: str, inside: bool) -> str:
    if letter in "wds":
        members = {"w": WORD, "d": DIGIT, "s": SPACE}[letter]
        return members if inside else f"[{members}]"
    if letter in "WDS" and not inside:
        return f"[^{ {'W': WORD, 'D': DIGIT, 'S': SPACE}[letter] }]"
    if letter == "b":
        assert not inside
        return BOUNDARY
    if letter == "Z":
        return "(?![^])"
    if letter in "nt" or letter in SYNTAX or (letter == "-" and inside):
        return "\\" + letter
    assert not letter.isalnum(), f"\\{letter} is not known here"
    return letter


def anchor(char: str, flags: int) -> str:
    many = bool(flags & re.MULTILINE)
    match char:
        case "^":
            return "(?<=\\n|(?<![^]))" if many else "(?<![^])"
        case "$":
            return "(?=\\n|(?![^]))" if many else "(?=\\n?(?![^]))"
        case ".":
            return "[^]" if flags & re.DOTALL else "[^\\n]"
        case _:
            return char


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def private(module: Any, name: str) -> Any:
    return getattr(module, name)


def one(pattern: re.Pattern[str] | str) -> list[str]:
    compiled = re.compile(pattern) if isinstance(pattern, str) else pattern
    # Flags written at the start of a pattern are among its flags already; JavaScript has no such prefix.
    return script(re.compile(re.sub(r"^\(\?[aimsux]+\)", "", compiled.pattern), compiled.flags & ~re.UNICODE))


def tables() -> dict[str, Any]:
    """Return all tables by their names in tables.ts."""
    P = private
    return {
        "MUTATIONS": mutations.WIRE_MUTATIONS,
        "CATEGORIES": classify.CATEGORIES,
        "SIGNS": {c: [one(p) for p in ps] for c, ps in P(classify, "_PATTERNS").items()},
        "TRAITS": {n: one(p) for n, p in P(classify, "_TRAITS").items()},
        "VERB_GROUPS": P(text, "_GROUP"),
        "TEXT": {
            "token": one(text.TOKEN),
            "end": one(P(text, "_END")),
            "listLine": one(P(text, "_LIST_LINE")),
            "polite": one(P(text, "_POLITE")),
            "word": one(r"[^\W\d_]+(?:['’-][^\W\d_]+)*"),
            "letters": one(r"[^\W\d_]+"),
            "space": one(r"\s+"),
        },
        "LINT": {
            "terms": lint.TERMS,
            **{
                n: " ".join(sorted(P(lint, f"_{n.upper()}")))
                for n in ("requests", "questions", "common", "vague", "generic", "asking")
            },
            "patterns": {
                **{camel(n): one(P(lint, f"_{n.upper()}")) for n in LINT_PATTERNS},
                "possessive": one(r"['’]s?$"),
                "breaks": one(r"\s*\n\s*|(?<=[.!?])\s+"),
                "stems": [[one(ending), instead.replace("\\1", "$1")] for ending, instead in lint.STEMS],
            },
        },
        "KINDS": [
            {"sign": one(sign), **{n: [[text, one(p)] for text, p in table[kind]] for n, table in REQUIREMENTS.items()}}
            for kind, sign in P(structure, "_SIGNS").items()
        ],
        "MUTATION_TABLES": {
            "cue": one(structure.CUE),
            "strict": one(structure.STRICT),
            "hasFallback": one(P(mutations, "_HAS_FALLBACK")),
            "fallbacks": P(mutations, "_FALLBACKS"),
            "otherFallback": P(mutations, "_OTHER_FALLBACK"),
            "fillers": one(P(restructure, "_FILLERS")),
            "requests": one(P(restructure, "_REQUESTS")),
            "protected": one(P(restructure, "_PROTECTED")),
            "order": one(P(restructure, "_ORDER")),
            "listed": one(P(mutations, "_LISTED")),
            "shortest": restructure.SHORTEST_PROMPT,
            "smallestSaving": restructure.SMALLEST_SAVING,
            "mostTasks": restructure.MOST_TASKS,
            "addedConstraints": mutations.ADDED_CONSTRAINTS,
            "mostConstraints": mutations.MOST_CONSTRAINTS,
            "constraintsTitle": mutations.CONSTRAINTS_TITLE,
            "criteriaTitle": mutations.CRITERIA_TITLE,
            "itemsLine": restructure.ITEMS_LINE,
            "stepsTitle": restructure.STEPS_TITLE,
        },
        "TOKEN_COST": policy.PromptConfig().token_cost,
    }


def main() -> None:
    print("// Generated from src/surefoot/decide/prompts by scripts/tables.py; a test fails if it is stale.")
    print("// A pattern is [source, flags].\n")
    for name, value in tables().items():
        print(f"export const {name} = {lines(value)} as const;\n")


def lines(value: Any) -> str:
    """Return JSON with one line per entry."""
    inner = (
        [json.dumps(entry, ensure_ascii=False, default=list) for entry in value] if isinstance(value, list) else None
    )
    if isinstance(value, dict):
        inner = [f"{json.dumps(key)}: {json.dumps(x, ensure_ascii=False, default=list)}" for key, x in value.items()]
    if inner is None:
        return json.dumps(value, ensure_ascii=False, default=list)
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n" + "".join(f" {line},\n" for line in inner) + closing


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    main()
