"""Reads prompts, preferences and demonstrations from files; errors name the file and the line."""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import torch

from surefoot.errors import DataError
from surefoot.learn.checkpoint.atomic_files import REAL_FS, replace_file

Talk = str | Sequence[dict[str, str]]
"""A plain prompt, or the messages of a conversation."""
# Column names of the prompt in common datasets (Hugging Face's trl, Alpaca, OpenAI's chat format).
PROMPT_NAMES = ("prompt", "text", "question", "instruction", "messages", "query")
ROLES = ("system", "user", "assistant")
# How hh-rlhf writes conversations as one text.
_TURN = re.compile(r"\n\n(Human|Assistant):")
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class PreferencePair:
    """Two responses to one prompt, one of them better."""

    prompt: str
    chosen: str
    rejected: str
    margin: float = 0.0
    """Least difference of scores that the fit asks for."""


def read_rows(path: Path | str) -> list[dict[str, Any]]:
    """Return the rows of a .txt (one prompt per line), .jsonl, .csv or .parquet file, all columns.

    The prompt, plain text or chat messages, is called `prompt` in every row, whatever its column was called.
    """
    rows = [
        {**(row if isinstance(row, dict) else {}), "prompt": _prompt(row, where)} for where, row in _rows(Path(path))
    ]
    return _require(rows, path, "prompts")


def read_prompts(path: Path | str) -> list[Talk]:
    """Return the prompts of `read_rows` alone."""
    return [row["prompt"] for row in read_rows(path)]


def read_pairs(path: Path | str) -> list[PreferencePair]:
    """Return the preferences of a .jsonl, .csv or .parquet file: chosen, rejected and, unless they contain it, prompt."""
    pairs = [_pair(row, where) for where, row in _rows(Path(path))]
    return _require(pairs, path, "preferences")


def read_demonstrations(path: Path | str) -> list[tuple[Talk, str]]:
    """Return (prompt, response) rows for supervised fine-tuning."""
    rows: list[tuple[Talk, str]] = []
    for where, row in _rows(Path(path)):
        if not isinstance(row, dict) or not isinstance(row.get("response"), str) or not row["response"].strip():
            raise DataError(f"{where} has no text 'response'; a row needs prompt and response")
        rows.append((_prompt(row, where), row["response"]))
    return _require(rows, path, "rows")


def _require(rows: list[Row], path: Path | str, what: str) -> list[Row]:
    if not rows:
        raise DataError(f"{path} has no {what}")
    return rows


def _rows(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield ("file:line", row) for every format; a row is a text or a dict."""
    name = path.name.removesuffix(".gz")
    kind = name.rsplit(".", 1)[-1].lower() if "." in name else ""
    if not path.is_file():
        raise DataError(f"there is no file {path}")
    if kind == "parquet":
        try:
            parquet: Any = import_module("pyarrow.parquet")
            rows = parquet.read_table(path).to_pylist()
        except ImportError as why:
            raise DataError(f"{path} is Parquet; install pyarrow, or convert the file to .jsonl") from why
        except Exception as why:
            raise DataError(f"{path} cannot be read as Parquet: {why}") from why
        yield from ((f"{path}:{number}", row) for number, row in enumerate(rows, 1))
        return
    if kind not in ("txt", "jsonl", "ndjson", "json", "csv"):
        raise DataError(f"{path} is none of .txt, .jsonl, .csv, .parquet")
    # newline="": the csv module handles line ends inside quotes itself.
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8", newline="") as file:
            if kind == "csv":
                reader = csv.DictReader(file, strict=True)
                for row in reader:
                    # DictReader reports surplus cells under the key None and missing ones as the value None.
                    if None in row or None in row.values():
                        raise DataError(f"{path}:{reader.line_num} has other columns than {reader.fieldnames}")
                    yield f"{path}:{reader.line_num}", row
                return
            for number, line in enumerate(file, 1):
                where = f"{path}:{number}"
                # Blank lines are allowed between prompts, but not in JSON lines.
                if not line.strip():
                    if kind == "txt":
                        continue
                    raise DataError(f"{where} is empty")
                try:
                    yield where, line.rstrip("\r\n") if kind == "txt" else json.loads(line)
                except json.JSONDecodeError as why:
                    raise DataError(f"{where} is not JSON: {why}") from why
    except UnicodeDecodeError as why:
        raise DataError(f"{path} is not UTF-8 ({why.reason} at byte {why.start})") from why
    except (OSError, EOFError, csv.Error) as why:
        raise DataError(f"{path} cannot be read: {why}") from why


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
        # As in hh-rlhf: both begin with the conversation up to the last turn.
        turn = "\n\nAssistant:"
        shared = next(
            (i for i, (a, b) in enumerate(zip(chosen, rejected, strict=False)) if a != b),
            min(map(len, (chosen, rejected))),
        )
        last = chosen.rfind(turn, 0, shared + len(turn))
        cut = last + len(turn) if last >= 0 else 0
        prompt, chosen, rejected = chosen[:cut], chosen[cut:], rejected[cut:]
    if not isinstance(prompt, str):
        raise DataError(f"{where}: prompt is {prompt!r:.80}; it must be text")
    # Equal texts carry no preference.
    if chosen == rejected:
        raise DataError(f"{where}: chosen and rejected are the same")
    return PreferencePair(prompt, chosen, rejected, float(row.get("margin") or 0.0))


def write_jsonl(path: Path | str, rows: Sequence[dict[str, Any]]) -> Path:
    """Write one JSON object per line, and return the path."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def as_text(talk: Talk) -> str:
    """Return a prompt for people: the plain text, or the last message of a conversation."""
    return talk if isinstance(talk, str) else talk[-1]["content"]


def messages_of(talk: Talk) -> list[dict[str, str]]:
    """Return a prompt as messages. Plain text is one message of the user; a transcript as in hh-rlhf is split into turns."""
    if not isinstance(talk, str):
        return [dict(message) for message in talk]
    turns = _TURN.split(talk)
    if len(turns) < 3 or turns[0].strip():
        return [{"role": "user", "content": talk}]
    roles = {"Human": "user", "Assistant": "assistant"}
    # The last turn is the assistant's and still empty.
    return [
        {"role": roles[who], "content": text.strip()}
        for who, text in zip(turns[1::2], turns[2::2], strict=True)
        if text.strip()
    ]


@dataclass(slots=True)
class Cursor:
    """The position of a run in its prompts: shuffled for every pass, each prompt once per pass."""

    count: int
    generator: torch.Generator
    order: list[int] = field(default_factory=list[int])
    passes: int = 0

    def take(self, number: int) -> list[int]:
        """Return the indices of the next prompts."""
        while len(self.order) < number:
            self.order += torch.randperm(self.count, generator=self.generator).tolist()
            self.passes += 1
        chosen, self.order = self.order[:number], self.order[number:]
        return chosen


def in_batches(
    items: Sequence[str], size: int, path: Path, make: Callable[[Sequence[str]], list[list[dict[str, Any]]]]
) -> list[dict[str, Any]]:
    """Return the rows that `make` gives for all items, and write them to `path` (.jsonl).

    Finished batches are stored beside it; after an interruption they are not made again.
    """
    partial = path.with_suffix(".partial")
    batches: list[list[list[dict[str, Any]]]] = []
    for line in partial.read_text(encoding="utf-8").splitlines() if partial.is_file() else ():
        try:
            batches.append(json.loads(line))
        except ValueError:
            break  # a line that a kill cut off
    replace_file(REAL_FS, partial, "".join(json.dumps(each) + "\n" for each in batches).encode())
    for begin in range(len(batches) * size, len(items), size):
        batches.append(make(items[begin : begin + size]))
        with open(partial, "a", encoding="utf-8") as out:
            out.write(json.dumps(batches[-1]) + "\n")
    rows = [row for batch in batches for each in batch for row in each]
    write_jsonl(path, rows)
    partial.unlink()
    return rows
