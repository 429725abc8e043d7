"""expansion: what the terms mean, which steps there are, what an answer looks like and when it is good."""

from __future__ import annotations

import re

from surefoot.decide.prompts.variation import Impact, PromptVariation, lengths

NAME = "expansion"
TERMS: dict[str, str] = {
    "API": "an interface through which programs call each other",
    "REST": "resources addressed by URLs and changed with HTTP's verbs",
    "SQL": "the language of relational databases",
    "NoSQL": "stores of documents, keys or graphs instead of tables",
    "async/await": "code that waits without blocking others",
    "JWT": "a signed token that carries its claims",
    "OAuth": "a way to grant access without handing out a password",
    "CRUD": "create, read, update and delete",
    "MVC": "model, view and controller kept apart",
    "ORM": "objects mapped to rows of a database",
    "CI/CD": "every change is built, tested and delivered by machine",
    "Docker": "programs packed with what they need into containers",
    "Kubernetes": "a system that runs containers on many machines",
    "GraphQL": "a query language in which the client says which fields it wants",
    "WebSocket": "a connection on which both sides may speak at any time",
    "TypeScript": "JavaScript with types that are checked before it runs",
    "Redux": "one store of state that changes by named actions",
    "MongoDB": "a database of JSON-like documents",
    "PostgreSQL": "a relational database with transactions",
    "Redis": "a store of keys and values in memory",
}
MOST_TERMS = 3
_STEPS = {
    "optimize": ("measure first", "find the slowest part", "change one thing at a time", "measure again"),
    "refactor": ("name what should stay the same", "cover it with tests", "change the structure in small steps"),
    "implement": ("fix the inputs and outputs", "write the simplest version", "handle the edge cases", "test it"),
    "debug": ("reproduce the fault", "narrow it down", "mend the cause, not the symptom", "keep a test of it"),
    "design": ("list the requirements", "compare two or three options", "choose one and say why"),
}
_EXAMPLES = (
    (
        re.compile(r"\b(?:function|code|program|script|class)\b", re.I),
        "input [3, 1, 2] gives [1, 2, 3]; an empty list gives []",
    ),
    (
        re.compile(r"\b(?:write|content|article|email|letter|post|story)\b", re.I),
        "begin with a concrete scene or fact, not with a definition",
    ),
    (
        re.compile(r"\b(?:analy[sz]|review|compare|evaluat)", re.I),
        "“X is better than Y in A, because of B; it costs C”",
    ),
)
_CRITERIA = (
    (
        re.compile(r"\b(?:function|code|program|script|class|api)\b", re.I),
        ("it runs as given", "edge cases are handled"),
    ),
    (
        re.compile(r"\b(?:write|article|email|essay|post|blog)\b", re.I),
        ("the structure is easy to follow", "the tone fits the reader"),
    ),
    (re.compile(r"\b(?:data|analy[sz]|statistic)", re.I), ("the method is named", "each conclusion has its number")),
)
_SECTIONS = ("Technical Context:", "Detailed Steps:", "Example:", "Success Criteria:")
_HAS_EXAMPLE = re.compile(r"\b(?:for example|for instance|e\.g\.|example:)", re.IGNORECASE)


def possible(prompt: str) -> bool:
    """Once: a prompt that was expanded has its sections."""
    return not any(section in prompt for section in _SECTIONS)


def apply(prompt: str) -> PromptVariation:
    """The prompt with whichever sections it lacks."""
    added: list[tuple[str, list[str]]] = []
    known = [term for term in TERMS if re.search(rf"(?<!\w){re.escape(term)}(?!\w)", prompt, re.IGNORECASE)][
        :MOST_TERMS
    ]
    if known:
        added.append(("Technical Context:", [f"{term}: {TERMS[term]}" for term in known]))
    steps = next((s for verb, s in _STEPS.items() if re.search(rf"\b{verb}", prompt, re.IGNORECASE)), None)
    if steps:
        added.append(("Detailed Steps:", [f"{i}. {step}" for i, step in enumerate(steps, 1)]))
    if not _HAS_EXAMPLE.search(prompt):
        example = next((text for pattern, text in _EXAMPLES if pattern.search(prompt)), None)
        added += [("Example:", [example])] if example else []
    special = next((list(texts) for pattern, texts in _CRITERIA if pattern.search(prompt)), [])
    added.append(
        (
            "Success Criteria:",
            [f"- {text}" for text in ["everything asked for is answered", "nothing is made up", *special][:4]],
        )
    )
    text = prompt.rstrip() + "".join(f"\n\n{title}\n" + "\n".join(lines) for title, lines in added)
    return PromptVariation(
        text=text,
        mutation_type=NAME,
        change_description="adds " + ", ".join(title[:-1].lower() for title, _ in added),
        expected_impact=Impact(quality="increase", cost="increase", latency="increase", reliability="increase"),
        metadata={**lengths(prompt, text), "sections": [title[:-1] for title, _ in added]},
    )
