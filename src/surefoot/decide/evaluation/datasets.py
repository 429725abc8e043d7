"""Sets of (query, right option, descriptions) from files: one label a query, or a set of candidates a query."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path

from surefoot.errors import RecordingError

FORMATS = ("auto", "labels", "candidates")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Queries and what would have been right."""

    texts: list[str]
    right: list[int]
    names: list[str]
    descriptions: list[str]
    candidates: list[list[int]] | None
    """Options of each query; None: all of them, always."""


def read(directory: Path, kind: str = "auto", topics: Path | None = None) -> Dataset:
    """`labels`: *.csv with the columns text, category. `candidates`: queries.jsonl with text, tools, correct.

    `topics` is JSON that groups labels into broader options: {name: {description, labels}}.
    """
    if kind not in FORMATS:
        raise RecordingError(f"no format {kind!r}; there are {', '.join(FORMATS)}")
    lines = directory / "queries.jsonl"
    if kind == "candidates" or (kind == "auto" and lines.exists()):
        return _candidates(lines)
    if not any(directory.glob("*.csv")):
        raise RecordingError(f"{directory} has neither queries.jsonl nor any .csv; give a directory with one of them")
    return _labels(directory, topics)


def _labels(directory: Path, topics: Path | None) -> Dataset:
    rows = list[tuple[str, str]]()
    for path in sorted(directory.glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            lines = csv.DictReader(file)
            if not {"text", "category"} <= set(lines.fieldnames or ()):
                there = ", ".join(lines.fieldnames or ()) or "no line at all"
                raise RecordingError(f"{path} has {there} at its top; it needs the columns text and category")
            rows += [(row["text"] or "", row["category"]) for row in lines]
    if not rows:
        raise RecordingError(f"the .csv files in {directory} have no queries")
    labels = sorted({label for _, label in rows})
    if topics is None:
        described = [" ".join(label.replace("_", " ").replace("?", "").split()).lower() for label in labels]
        right = [labels.index(label) for _, label in rows]
        return Dataset(texts=[t for t, _ in rows], right=right, names=labels, descriptions=described, candidates=None)
    groups = _topics(topics)
    group = {label: i for i, (_, own) in enumerate(groups.values()) for label in own}
    if missing := set(labels) - set(group):
        raise RecordingError(f"{topics} groups every label but {sorted(missing)[0]!r}; add it to one of its topics")
    return Dataset(
        texts=[text for text, _ in rows],
        right=[group[label] for _, label in rows],
        names=list(groups),
        descriptions=[said for said, _ in groups.values()],
        candidates=None,
    )


def _topics(path: Path) -> dict[str, tuple[str, list[str]]]:
    """By name: description and labels."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): (str(each["description"]), list(map(str, each["labels"]))) for name, each in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecordingError(
            f"{path} cannot be read as {{name: {{description, labels}}}}: {type(error).__name__} {error}"
        ) from error


def _candidates(path: Path) -> Dataset:
    if not path.exists():
        raise RecordingError(f"no file {path}; the format `candidates` needs it")
    place: dict[tuple[str, str], int] = {}
    texts, right, candidates = list[str](), list[int](), list[list[int]]()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            pairs = [(str(tool["name"]), str(tool["description"])) for tool in row["tools"]]
            text, correct = str(row["text"]), str(row["correct"])
        except (ValueError, KeyError, TypeError) as error:
            raise RecordingError(
                f"line {number} of {path} is no object with text, tools (name, description) and correct: {error}"
            ) from error
        own = {name: place.setdefault((name, said), len(place)) for name, said in pairs}
        if correct not in own:
            raise RecordingError(f"line {number} of {path}: {correct!r} is not among its tools {', '.join(own)}")
        texts.append(text)
        right.append(own[correct])
        candidates.append(list(own.values()))
    if not texts:
        raise RecordingError(f"{path} has no queries")
    words = [name.replace("_", " ").replace(".", " ") for name, _ in place]
    described = [f"{name}: {said}" for name, (_, said) in zip(words, place, strict=True)]
    seen: dict[str, int] = {}
    unique = list[str]()
    for name, _ in place:
        seen[name] = seen.get(name, 0) + 1
        unique.append(name if seen[name] == 1 else f"{name}#{seen[name]}")
    return Dataset(texts=texts, right=right, names=unique, descriptions=described, candidates=candidates)
