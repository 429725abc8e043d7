"""Write the words, weights and patterns of the prompt scores: python scripts/tables.py > src/prompts/tables.ts

Patterns are rewritten for JavaScript, where \\w, \\d, \\b, \\s, ^, $ and . match other characters than in Python.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from surefoot.decide.prompts import classify, measures, mutations, scorers, text, world

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
        "METRICS": classify.METRICS,
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
        "MEASURES": {
            "names": measures.NAMES,
            "general": measures.GENERAL,
            "vague": sorted(P(measures, "_VAGUE")),
            "evidence": {n: [one(p) for p in ps] for n, ps in P(measures, "_EVIDENCE").items()},
            "binding": one(P(measures, "_BINDING")),
            "detail": one(P(measures, "_DETAIL")),
            "parts": [one(p) for p in P(measures, "_PARTS")],
            "wayOut": one(P(measures, "_WAY_OUT")),
            "steps": one(P(measures, "_STEPS")),
        },
        "SCORE": {"own": scorers.CATEGORY_SHARE, "full": scorers.FULL, "general": P(scorers, "_GENERAL")},
        "TOKEN_COST": world.PromptConfig().token_cost,
    }


def main() -> None:
    print("// Generated from src/surefoot/decide/prompts by scripts/tables.py; a test fails if it is stale.")
    print("// A pattern is [source, flags].\n")
    for name, value in tables().items():
        body = json.dumps(value, ensure_ascii=False, indent=1, default=list)
        print(f"export const {name} = {body} as const;\n")


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    main()
