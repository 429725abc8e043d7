"""`query`: questions to a SQLite file, read only. SQL as it is, or a plain question over the tables that are there."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from surefoot.decide.tools.memory import words_of
from surefoot.decide.tools.protocol import ToolRequest, ToolResult, object_schema
from surefoot.errors import ToolError

_ALLOWED = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
_FORBIDDEN_FUNCTIONS = {"load_extension", "readfile", "writefile", "fts3_tokenizer", "edit"}
_SQL = re.compile(r"^\s*(select|with|values)\b", re.IGNORECASE)
_BEST = {
    **dict.fromkeys(("highest", "most", "largest", "maximum", "best", "longest"), "DESC"),
    **dict.fromkeys(("lowest", "least", "smallest", "minimum", "worst", "shortest"), "ASC"),
}
_FOLD = {"average": "avg", "mean": "avg", "total": "sum", "sum": "sum"}


class QueryTool:
    """Answers from one database file, which it opens anew for each question and cannot change."""

    name = "query"
    description = "Query the database: count, total, average, highest, lowest, list rows of a table, SQL select"
    schema = object_schema(
        {"sql": {"type": "string", "description": "a SELECT, or a plain question over the tables"}}, ["sql"]
    )

    def __init__(self, path: str | Path, *, rows: int = 50, seconds: float = 2.0) -> None:
        self.path, self.rows, self.seconds = Path(path), rows, seconds
        if not self.path.is_file():
            raise ToolError(f"no database at {path}; `query` needs a SQLite file")
        try:
            with self._open() as db:
                tables_of(db)
        except sqlite3.Error as error:
            raise ToolError(f"{path} cannot be read as a SQLite database: {error}") from error

    async def call(self, request: ToolRequest) -> ToolResult:
        return await asyncio.to_thread(self.run, str(request.arguments.get("sql", request.text)))

    def run(self, text: str) -> ToolResult:
        """The rows a question comes to."""
        with self._open() as db:
            sql, values = (text, ()) if _SQL.match(text) else from_question(text, tables_of(db))
            db.set_authorizer(_authorize)
            try:
                cursor = db.execute(sql, values)
                names = [each[0] for each in cursor.description or ()]
                rows = cursor.fetchmany(self.rows + 1)
            except sqlite3.Error as error:
                reason = str(error)
                if "interrupted" in reason:
                    reason = f"it took longer than {self.seconds:g} s"
                elif "not authorized" in reason:
                    reason = "only reading is allowed"
                raise ToolError(f"{sql!r} failed: {reason}") from error
        cut = len(rows) > self.rows
        shown = rows[: self.rows]
        return ToolResult(
            text=_table(names, shown),
            data={"columns": names, "rows": [list(row) for row in shown], "sql": sql},
            sources=[self.path.name],
            warnings=[f"the first {self.rows} rows; there are more"] if cut else [],
            quality=1.0 if shown else 0.0,
        )

    @contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        db = sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro", uri=True)
        db.execute("PRAGMA query_only=ON")
        end = time.monotonic() + self.seconds
        db.set_progress_handler(lambda: int(time.monotonic() > end), 1000)
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1_000_000)
        db.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, 10_000)
        db.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        try:
            yield db
        finally:
            db.close()


def _authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _FORBIDDEN_FUNCTIONS:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


def tables_of(db: sqlite3.Connection) -> dict[str, list[str]]:
    """Columns by table."""
    names = [
        row[0] for row in db.execute("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY name")
    ]
    return {name: [row[1] for row in db.execute(f"PRAGMA table_info({_quoted(name)})")] for name in names}


def from_question(text: str, tables: dict[str, list[str]]) -> tuple[str, tuple[Any, ...]]:
    """SQL for a plain question: how many, average or total of a column, who has the highest, list; where column is value."""
    asked = words_of(text)
    table = _table_asked(asked, tables)
    columns = tables[table]
    where, values = _condition(text, columns)
    named = [column for column in columns if set(words_of(column)) <= set(asked) and f'"{column}"' not in where]
    source = f"FROM {_quoted(table)}{where}"
    lowered = text.lower()
    for word, function in _FOLD.items():
        if re.search(rf"\b{word}\b", lowered) and (numbers := [c for c in named if c != columns[0]]):
            return f"SELECT {function}({_quoted(numbers[0])}) AS {_quoted(f'{word} {numbers[0]}')} {source}", values
    for word, order in _BEST.items():
        if re.search(rf"\b{word}\b", lowered) and (ranked := [c for c in named if c != columns[0]] or named):
            subject = next((c for c in columns if c in ("name", "title", "tool", "env")), columns[0])
            sql = f"SELECT {_quoted(subject)}, {_quoted(ranked[0])} {source} ORDER BY {_quoted(ranked[0])} {order} LIMIT 1"
            return sql, values
    if re.search(r"\bhow many\b|\bcount\b|\bnumber of\b", lowered):
        return f"SELECT count(*) AS {_quoted(f'number of {table}')} {source}", values
    shown = ", ".join(map(_quoted, named)) if named else "*"
    return f"SELECT {shown} {source} LIMIT 51", values


def _table_asked(asked: list[str], tables: dict[str, list[str]]) -> str:
    """The table that is named; else the one most of whose columns are."""
    for table in tables:
        if set(words_of(table)) <= set(asked):
            return table
    hits = {t: sum(set(words_of(c)) <= set(asked) for c in columns) for t, columns in tables.items()}
    best = max(hits, key=lambda t: hits[t], default=None)
    if best is None or hits[best] == 0:
        known = "; ".join(f"{t} ({', '.join(columns)})" for t, columns in tables.items())
        raise ToolError(f"no table is named in the question; there are: {known}")
    return best


def _condition(text: str, columns: list[str]) -> tuple[str, tuple[Any, ...]]:
    """`where COLUMN is VALUE`, `with COLUMN above NUMBER`, as they are said."""
    for column in columns:
        spoken = re.escape(column.replace("_", " "))
        match = re.search(
            rf"\b{spoken}\s+(?:is|=|equals)\s+['\"]?([\w.-]+(?: [A-Z][\w.-]*)*)['\"]?", text, re.IGNORECASE
        )
        if match:
            return f" WHERE lower({_quoted(column)}) = lower(?)", (match.group(1),)
        match = re.search(rf"\b{spoken}\s+(above|over|below|under)\s+(-?\d+(?:\.\d+)?)", text, re.IGNORECASE)
        if match:
            sign = ">" if match.group(1).lower() in ("above", "over") else "<"
            return f" WHERE {_quoted(column)} {sign} ?", (float(match.group(2)),)
    return "", ()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _table(names: list[str], rows: list[tuple[Any, ...]]) -> str:
    if not rows:
        return "no rows"
    if len(rows) == 1 and len(names) == 1:
        return f"{names[0]}: {_cell(rows[0][0])}"
    lines = [" | ".join(names), *(" | ".join(_cell(value) for value in row) for row in rows)]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
