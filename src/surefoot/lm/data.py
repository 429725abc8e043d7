"""Prompts and preferences out of files, each bad row named by its line."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from surefoot.errors import DataError

Talk = str | Sequence[dict[str, str]]
PROMPT_NAMES = ("prompt", "text", "question", "instruction", "messages", "query")
ROLES = ("system", "user", "assistant")


@dataclass(frozen=True, slots=True)
class PreferencePair:
    """Two responses to one prompt, one of them better."""

    prompt: str
    chosen: str
    rejected: str
    margin: float = 0.0
    """By how much the better one should win, at least."""


def read_prompts(path: Path | str) -> list[Talk]:
    """Prompts of a .txt (one a line), .jsonl, .csv or .parquet file: plain text, or chat messages."""
    path = Path(path)
    found = [_prompt(row, f"{path}:{line}") for line, row in _rows(path)]
    if not found:
        raise DataError(f"{path} has no prompts")
    return found


def read_pairs(path: Path | str) -> list[PreferencePair]:
    """Preferences of a .jsonl, .csv or .parquet file with chosen, rejected and, if they do not begin with it, prompt."""
    path = Path(path)
    found = [_pair(row, f"{path}:{line}") for line, row in _rows(path)]
    if not found:
        raise DataError(f"{path} has no preferences")
    return found


def read_demonstrations(path: Path | str) -> list[tuple[Talk, str]]:
    """(prompt, response) rows for supervised fine-tuning."""
    path = Path(path)
    found: list[tuple[Talk, str]] = []
    for line, row in _rows(path):
        where = f"{path}:{line}"
        if not isinstance(row, dict) or not isinstance(row.get("response"), str) or not row["response"].strip():
            raise DataError(f"{where} has no text 'response'; a row needs prompt and response")
        found.append((_prompt(row, where), row["response"]))
    if not found:
        raise DataError(f"{path} has no rows")
    return found


def _rows(path: Path) -> Iterator[tuple[int, Any]]:
    """(line, row) of any of the formats; a row is text or a dict."""
    name = path.name.removesuffix(".gz")
    kind = name.rsplit(".", 1)[-1].lower() if "." in name else ""
    if not path.is_file():
        raise DataError(f"there is no file {path}")
    if kind == "parquet":
        yield from _parquet(path)
        return
    if kind not in ("txt", "jsonl", "ndjson", "json", "csv"):
        raise DataError(f"{path} is none of .txt, .jsonl, .csv, .parquet")
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8", newline="") as file:
            if kind == "csv":
                reader = csv.DictReader(file, strict=True)
                for row in reader:
                    if None in row or None in row.values():
                        raise DataError(f"{path}:{reader.line_num} has other columns than {reader.fieldnames}")
                    yield reader.line_num, row
                return
            for number, line in enumerate(file, 1):
                if not line.strip():
                    if kind == "txt":
                        continue
                    raise DataError(f"{path}:{number} is empty")
                yield number, line.rstrip("\r\n") if kind == "txt" else _json(line, f"{path}:{number}")
    except UnicodeDecodeError as why:
        raise DataError(f"{path} is not UTF-8 ({why.reason} at byte {why.start})") from why
    except (OSError, EOFError, csv.Error) as why:
        raise DataError(f"{path} cannot be read: {why}") from why


def _json(line: str, where: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as why:
        raise DataError(f"{where} is not JSON: {why}") from why


def _parquet(path: Path) -> Iterator[tuple[int, Any]]:
    try:
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError as why:
        raise DataError(f"{path} is Parquet, which needs pyarrow; install it, or convert the file to .jsonl") from why
    try:
        table: Any = parquet.read_table(path)
    except Exception as why:
        raise DataError(f"{path} cannot be read as Parquet: {why}") from why
    yield from enumerate(table.to_pylist(), 1)


def _prompt(row: Any, where: str) -> Talk:
    if isinstance(row, dict):
        name = next((name for name in PROMPT_NAMES if name in row), None)
        if name is None:
            raise DataError(
                f"{where} has {', '.join(map(str, row)) or 'nothing'}; a prompt is called {', '.join(PROMPT_NAMES)}"
            )
        row = row[name]
    if isinstance(row, str):
        if not row.strip():
            raise DataError(f"{where} is an empty prompt")
        return row
    if isinstance(row, list) and row:
        for message in row:
            good = (
                isinstance(message, dict) and message.get("role") in ROLES and isinstance(message.get("content"), str)
            )
            if not good:
                raise DataError(
                    f"{where} has the message {message!r:.80}; it must be {{role: {'|'.join(ROLES)}, content: …}}"
                )
        return [{"role": m["role"], "content": m["content"]} for m in row]
    raise DataError(f"{where} is {row!r:.80}; a prompt is text or a list of messages")


def _pair(row: Any, where: str) -> PreferencePair:
    if not isinstance(row, dict):
        raise DataError(f"{where} is {row!r:.80}; a preference is {{prompt, chosen, rejected}}")
    for name in ("chosen", "rejected"):
        if not isinstance(row.get(name), str):
            raise DataError(f"{where} has no text {name!r}; a preference is {{prompt, chosen, rejected}}")
    chosen, rejected, prompt = row["chosen"], row["rejected"], row.get("prompt")
    if prompt is None:
        # As in hh-rlhf: both begin with the whole conversation up to the last turn.
        shared = chosen.rfind("\n\nAssistant:", 0, _common(chosen, rejected) + len("\n\nAssistant:"))
        cut = shared + len("\n\nAssistant:") if shared >= 0 else 0
        prompt, chosen, rejected = chosen[:cut], chosen[cut:], rejected[cut:]
    if not isinstance(prompt, str):
        raise DataError(f"{where}: prompt is {prompt!r:.80}; it must be text")
    if chosen == rejected:
        raise DataError(f"{where}: chosen and rejected are the same")
    return PreferencePair(prompt, chosen, rejected, float(row.get("margin") or 0.0))


def _common(one: str, other: str) -> int:
    """Length of what both begin with."""
    for i, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return i
    return min(len(one), len(other))


def write_jsonl(path: Path | str, rows: Sequence[dict[str, Any]]) -> Path:
    """Rows as lines of JSON."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path
