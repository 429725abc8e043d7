"""Tests of `surefoot.decide.tools.toolbox.sql`."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from surefoot.decide.tools.toolbox.assistant import database
from surefoot.decide.tools.toolbox.sql import QueryTool
from surefoot.errors import ToolError


@pytest.mark.parametrize(
    "sql",
    [
        "WITH x AS (SELECT 1) DELETE FROM envs",
        "SELECT load_extension('x')",
        "SELECT * FROM pragma_table_info('envs')",
        "SELECT 1; DROP TABLE envs",
    ],
)
def test_query_only_reads(tmp_path: Path, sql: str):
    path = database(tmp_path / "d.sqlite")
    with pytest.raises(ToolError):
        QueryTool(path).run(sql)
    assert sqlite3.connect(path).execute("SELECT count(*) FROM envs").fetchone() == (8,)


def test_query_has_no_attach_a_deadline_and_a_cap_on_rows(tmp_path: Path):
    path = database(tmp_path / "d.sqlite")
    with pytest.raises(ToolError, match="no table is named"):
        QueryTool(path).run("ATTACH 'other.db' AS o")
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    with pytest.raises(ToolError, match=r"longer than 0\.1 s"):
        QueryTool(path, seconds=0.1).run(endless)
    result = QueryTool(path, rows=3).run("SELECT name FROM envs")
    assert (len(result.data["rows"]), result.warnings) == (3, ["only the first 3 rows are shown"])
    with pytest.raises(ToolError, match="no database"):
        QueryTool(tmp_path / "nowhere.sqlite")
