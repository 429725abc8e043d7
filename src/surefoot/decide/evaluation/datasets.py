"""Read labelled queries from files: one label per query (CSV), or a set of candidate tools per query (JSON lines)."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from surefoot.errors import RecordingError

FORMATS = ("auto", "labels", "candidates")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Queries, the options, and the index of the right option per query."""

    texts: list[str]
    right: list[int]
    names: list[str]
    descriptions: list[str]
    candidates: list[list[int]] | None
    """Indices of the options offered with each query; None: all options, always."""


def read(directory: Path, kind: str = "auto", topics: Path | None = None) -> Dataset:
    """Return the data set in a directory.

    Args:
        directory: Holds *.csv with the columns text and category, or queries.jsonl with text, tools and correct.
        kind: `labels` (CSV), `candidates` (JSON lines), or `auto`: candidates if queries.jsonl exists.
        topics: JSON file that groups labels into broader options: {name: {description, labels}}.
    """
    if kind not in FORMATS:
        raise RecordingError(f"unknown format {kind!r}; use one of {', '.join(FORMATS)}")
    lines = directory / "queries.jsonl"
    if kind == "candidates" or (kind == "auto" and lines.exists()):
        return _candidates(lines)
    if not any(directory.glob("*.csv")):
        raise RecordingError(f"{directory} has neither queries.jsonl nor any .csv; pass a directory with one of them")
    return _labels(directory, topics)


def _labels(directory: Path, topics: Path | None) -> Dataset:
    rows = list[tuple[str, str]]()
    for path in sorted(directory.glob("*.csv")):
        reader = csv.DictReader(io.StringIO(_text(path), newline=""))
        if not {"text", "category"} <= set(reader.fieldnames or ()):
            columns = f"has the columns {', '.join(reader.fieldnames)}" if reader.fieldnames else "is empty"
            raise RecordingError(f"{path} {columns}; it needs the columns text and category")
        for row in reader:
            if not (row["category"] or "").strip():
                raise RecordingError(f"line {reader.line_num} of {path} has no category; its text is {row['text']!r}")
            rows.append((row["text"] or "", row["category"]))
    if not rows:
        raise RecordingError(f"the .csv files in {directory} have no queries")
    labels = sorted({label for _, label in rows})
    if topics is None:
        names = labels
        descriptions = [" ".join(label.replace("_", " ").replace("?", "").split()).lower() for label in labels]
        index = {label: i for i, label in enumerate(labels)}
    else:
        groups = _topics(topics)
        names, descriptions = list(groups), [description for description, _ in groups.values()]
        index = {label: i for i, (_, members) in enumerate(groups.values()) for label in members}
        if missing := set(labels) - set(index):
            raise RecordingError(f"{topics} does not list the label {min(missing)!r}; add it to one of the topics")
    right = [index[label] for _, label in rows]
    texts = [text for text, _ in rows]
    return Dataset(texts=texts, right=right, names=names, descriptions=descriptions, candidates=None)


def _text(path: Path) -> str:
    """Return the content of a file in UTF-8."""
    try:
        # utf-8-sig: Excel's "CSV UTF-8" starts with a byte order mark, which would become part of the first column's name.
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RecordingError(
            f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8, in Excel as CSV UTF-8"
        ) from error


def _topics(path: Path) -> dict[str, tuple[str, list[str]]]:
    """Return description and labels by the topic's name."""
    try:
        topics = json.loads(path.read_text(encoding="utf-8-sig"))
        return {str(name): (str(each["description"]), list(map(str, each["labels"]))) for name, each in topics.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecordingError(
            f"{path} must be {{name: {{description, labels}}}}, but reading it failed: {type(error).__name__} {error}"
        ) from error


def _candidates(path: Path) -> Dataset:
    if not path.exists():
        raise RecordingError(f"no file {path}; the format `candidates` needs it")
    # Keyed by name and description: two queries may offer different tools under one name.
    index: dict[tuple[str, str], int] = {}
    texts, right, candidates = list[str](), list[int](), list[list[int]]()
    for number, line in enumerate(_text(path).splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            pairs = [(str(tool["name"]), str(tool["description"])) for tool in row["tools"]]
            text, correct = str(row["text"]), str(row["correct"])
        except (ValueError, KeyError, TypeError) as error:
            raise RecordingError(
                f"line {number} of {path} must be an object with text, tools (name, description) and correct: {error}"
            ) from error
        offered = {name: index.setdefault((name, description), len(index)) for name, description in pairs}
        if correct not in offered:
            raise RecordingError(f"line {number} of {path}: {correct!r} is not among its tools {', '.join(offered)}")
        texts.append(text)
        right.append(offered[correct])
        candidates.append(list(offered.values()))
    if not texts:
        raise RecordingError(f"{path} has no queries")
    names, descriptions, uses = list[str](), list[str](), Counter[str]()
    for name, description in index:
        uses[name] += 1
        names.append(name if uses[name] == 1 else f"{name}#{uses[name]}")
        descriptions.append(f"{name.replace('_', ' ').replace('.', ' ')}: {description}")
    return Dataset(texts=texts, right=right, names=names, descriptions=descriptions, candidates=candidates)
