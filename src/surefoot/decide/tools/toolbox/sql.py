"""`query`: read-only queries to a SQLite file, as SQL or as a plain question about its tables."""

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

# The file is opened read-only; the allowlist also denies ATTACH, PRAGMA and virtual tables, which reach other files.
_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
_FORBIDDEN_FUNCTIONS = {"load_extension", "readfile", "writefile", "fts3_tokenizer", "edit"}
_SQL = re.compile(r"^\s*(select|with|values)\b", re.IGNORECASE)
_ORDER = {
    **dict.fromkeys(("highest", "most", "largest", "maximum", "best", "longest"), "DESC"),
    **dict.fromkeys(("lowest", "least", "smallest", "minimum", "worst", "shortest"), "ASC"),
}
_AGGREGATE = {"average": "avg", "mean": "avg", "total": "sum", "sum": "sum"}


class QueryTool:
    """Query one SQLite file, opened read-only per question.

    Args:
        path: The database file.
        rows: Maximum number of rows returned.
        seconds: Time limit per query.
    """

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
            raise ToolError(f"{path} could not be read as a SQLite database: {error}") from error

    async def call(self, request: ToolRequest) -> ToolResult:
        return await asyncio.to_thread(self.run, str(request.arguments.get("sql", request.text)))

    def run(self, text: str) -> ToolResult:
        """Return the rows for SQL or a plain question."""
        with self._open() as db:
            sql, values = (text, ()) if _SQL.match(text) else from_question(text, tables_of(db))

            def authorize(action: int, _: str | None, function: str | None, *others: str | None) -> int:
                forbidden = action == sqlite3.SQLITE_FUNCTION and (function or "").lower() in _FORBIDDEN_FUNCTIONS
                return sqlite3.SQLITE_OK if action in _ALLOWED and not forbidden else sqlite3.SQLITE_DENY

            # Set after the tables are listed, which needs PRAGMA.
            db.set_authorizer(authorize)
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
        shown = rows[: self.rows]
        return ToolResult(
            text=_table(names, shown),
            data={"columns": names, "rows": [list(row) for row in shown], "sql": sql},
            sources=[self.path.name],
            warnings=[f"only the first {self.rows} rows are shown"] if len(rows) > self.rows else [],
            quality=1.0 if shown else 0.0,
        )

    @contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        db = sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=ro", uri=True)
        end = time.monotonic() + self.seconds
        # Every 1,000 virtual machine steps: microseconds apart, and too rare to slow a query down.
        db.set_progress_handler(lambda: int(time.monotonic() > end), 1000)
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1_000_000)
        db.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, 10_000)
        db.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        try:
            yield db
        finally:
            db.close()


def tables_of(db: sqlite3.Connection) -> dict[str, list[str]]:
    """Return the columns by table, views included."""
    names = [
        row[0] for row in db.execute("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY name")
    ]
    return {name: [row[1] for row in db.execute(f"PRAGMA table_info({_quoted(name)})")] for name in names}


def from_question(text: str, tables: dict[str, list[str]]) -> tuple[str, tuple[Any, ...]]:
    """Return SQL and its parameters for a plain question: count, average, total, highest, lowest or list, with a condition."""
    words = set(words_of(text))
    table = _named_table(words, tables)
    columns = tables[table]
    where, values = _condition(text, columns)
    named = [column for column in columns if set(words_of(column)) <= words and f'"{column}"' not in where]
    source = f"FROM {_quoted(table)}{where}"
    lowered = text.lower()
    for word, function in _AGGREGATE.items():
        if re.search(rf"\b{word}\b", lowered) and (numbers := [c for c in named if c != columns[0]]):
            return f"SELECT {function}({_quoted(numbers[0])}) AS {_quoted(f'{word} {numbers[0]}')} {source}", values
    for word, order in _ORDER.items():
        if re.search(rf"\b{word}\b", lowered) and (ranked := [c for c in named if c != columns[0]] or named):
            subject = next((c for c in columns if c in ("name", "title", "tool", "env")), columns[0])
            sql = f"SELECT {_quoted(subject)}, {_quoted(ranked[0])} {source} ORDER BY {_quoted(ranked[0])} {order} LIMIT 1"
            return sql, values
    if re.search(r"\bhow many\b|\bcount\b|\bnumber of\b", lowered):
        return f"SELECT count(*) AS {_quoted(f'number of {table}')} {source}", values
    shown = ", ".join(map(_quoted, named)) if named else "*"
    return f"SELECT {shown} {source} LIMIT 51", values


def _named_table(words: set[str], tables: dict[str, list[str]]) -> str:
    """Return the table named in the question, else the one with the most named columns."""
    for table in tables:
        if set(words_of(table)) <= words:
            return table
    hits = {t: sum(set(words_of(c)) <= words for c in columns) for t, columns in tables.items()}
    best = max(hits, key=lambda t: hits[t], default=None)
    if best is None or hits[best] == 0:
        known = "; ".join(f"{t} ({', '.join(columns)})" for t, columns in tables.items())
        raise ToolError(f"no table is named in the question; the database has {known}")
    return best


def _condition(text: str, columns: list[str]) -> tuple[str, tuple[Any, ...]]:
    """Return the WHERE clause for "COLUMN is VALUE" or "COLUMN above NUMBER", and its parameters."""
    for column in columns:
        written = re.escape(column.replace("_", " "))
        match = re.search(
            rf"\b{written}\s+(?:is|=|equals)\s+['\"]?([\w.-]+(?: [A-Z][\w.-]*)*)['\"]?", text, re.IGNORECASE
        )
        if match:
            return f" WHERE lower({_quoted(column)}) = lower(?)", (match.group(1),)
        match = re.search(rf"\b{written}\s+(above|over|below|under)\s+(-?\d+(?:\.\d+)?)", text, re.IGNORECASE)
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
