"""The service's promises, one by one: the page that lists them names a test for each, and the tests are there."""

from __future__ import annotations

import ast
import os
import re
import sqlite3
import uuid
from pathlib import Path

import numpy as np
import pytest

from surefoot.server import schema

from .conftest import ROW, times_begun

ROOT = Path(__file__).parents[3]
DECIDE = "/v1/policies/greet/decisions"
PAGE = ROOT / "docs/reference/service.md"


def test_each_promise_has_tests_and_they_exist():
    rows = re.findall(r"^\| (S\d+) \|(.*)\|$", PAGE.read_text(), re.MULTILINE)
    assert [number for number, _ in rows] == [f"S{n}" for n in range(1, 21)]
    for number, row in rows:
        named = re.findall(r"`(test_\w+)\.(test_\w+)`", row)
        assert named, f"{number} names no test"
        for file, test in named:
            functions = {
                node.name
                for path in (ROOT / "tests").rglob(f"{file}.py")
                for node in ast.walk(ast.parse(path.read_text()))
                if isinstance(node, ast.FunctionDef)
            }
            assert test in functions, f"{number} names {file}.{test}, which is not there"


def traversals() -> list[str]:
    """Two hundred ways to say another place."""
    ups = ["..", "../..", "../../../../etc/passwd", "..\\..", "....//", "..;/", "%2e%2e", "%2e%2e%2f", "..%2f", "..%5c"]
    ups += [
        "%252e%252e%252f",
        "..%c0%af",
        "%c0%ae%c0%ae/",
        "..%00",
        "..\x00",
        "\u2024\u2024/",
        "\uff0e\uff0e/",
        "．．／",
        ".",
        "./.",
    ]
    ends = ["", "x", "etc/passwd", "policies/greet", "decisions.sqlite", "%00.json", "#/../", "?a=../", " ", "\n"]
    found = [up + end for up in ups for end in ends]
    found += ["/etc/passwd", "file:///etc/passwd", "C:\\windows", "\\\\host\\share", "~root", "$HOME", "a" * 5000]
    return list(dict.fromkeys(found))


def test_no_name_leads_anywhere_else(serving, tmp_path):
    words = traversals()
    assert len(words) >= 200

    async def story(ask):
        (tmp_path / "d/policies/leads-away").symlink_to("/etc")
        before = {path for path in tmp_path.rglob("*") if "policies" not in path.parts}
        found: dict[str, set[int]] = {}

        async def note(kind, *request):
            found.setdefault(kind, set()).add((await ask(*request)).status)

        for word in words:
            await note("policy", "GET", f"/v1/policies/{word}")
            await note("decision", "GET", f"/v1/decisions/{word}")
            await note("checkpoint", "POST", f"/v1/checkpoints/{word}/activate")
            await note("run", "GET", f"/v1/runs/{word}")
            await note("new policy", "POST", "/v1/policies", {"name": word, "actions": ["a", "b"], "embedding_size": 4})
            await note("new decision", "POST", DECIDE, {"decision_id": word, "embedding": ROW})
            await note("save", "POST", "/save", {"path": word})
            await note("load", "POST", "/load", {"path": word})
        await note("link", "GET", "/v1/policies/leads-away")
        return found, before, {path for path in tmp_path.rglob("*") if "policies" not in path.parts}

    found, before, after = serving(story, compat=True)
    assert found.pop("new decision") <= {422, 200}  # a word such as con is an id like any other
    assert found.pop("new policy") <= {422, 201}
    assert found.pop("save") <= {422, 200}
    assert set().union(*found.values()) <= {404, 405, 422}
    assert after == before
    assert not [path for path in (tmp_path / "d/policies").iterdir() if not re.fullmatch(r"[a-z0-9_-]+", path.name)]


def test_an_id_that_is_made_here_is_ordered_and_the_log_keeps_what_was_seen(serving):
    async def story(ask):
        made = [(await ask("POST", DECIDE, {"embedding": ROW})).json for _ in range(3)]
        entry = ask.service.store.journal.get("decision", made[0]["decision_id"])
        return made, entry

    made, entry = serving(story)
    assert {uuid.UUID(d["decision_id"]).version for d in made} == {7}
    # Divided by the mean length of the embeddings so far, which is its own.
    length = np.linalg.norm(ROW)
    assert np.frombuffer(entry.raw, np.float32)[:4].tolist() == pytest.approx([x / length for x in ROW])
    assert entry.body["probability"] == made[0]["probability"]


def test_a_full_disk_stores_nothing_and_says_so(serving):
    async def story(ask):
        db = ask.service.store.journal._db
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        db.execute(f"PRAGMA max_page_count={pages}")
        many = {"decisions": [{"decision_id": f"f{i}", "embedding": ROW, "subject": "s" * 100} for i in range(500)]}
        told = await ask("POST", f"{DECIDE}/batch", many)
        db.execute("PRAGMA max_page_count=1000000")
        after = await ask("POST", f"{DECIDE}/batch", many)
        return told, ask.service.store.journal.count("decision"), after.status

    told, count, after = serving(story)
    assert (told.status, told.json["type"], told.headers["retry-after"]) == (507, "about:surefoot/full", "30")
    assert (count, after) == (500, 200)


def test_a_disk_that_does_not_sync_is_no_acknowledgement(serving, monkeypatch):
    async def story(ask):
        def broken(fd):
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(os, "fdatasync", broken)
        told = await ask("POST", DECIDE, {"decision_id": "x", "embedding": ROW})
        monkeypatch.undo()
        return told.status, told.headers.get("retry-after")

    assert serving(story) == (503, "5")


def test_a_damaged_version_is_not_promoted_and_the_old_one_goes_on(serving, tmp_path):
    async def story(ask):
        for i in range(8):
            await ask("POST", DECIDE, {"decision_id": f"d{i}", "embedding": ROW})
            await ask("POST", f"/v1/decisions/d{i}/reward", {"value": 1.0})
        await ask.learned("/v1/policies/greet")
        named = (await ask("POST", "/v1/policies/greet/checkpoints", {"version": 0})).json["checkpoint_id"]
        (weights,) = (tmp_path / "d/policies/greet").glob("*0/weights.safetensors")
        weights.write_bytes(weights.read_bytes()[:-7])
        promoted = await ask("POST", "/v1/policies/greet/promote", {"version": 0})
        activated = await ask("POST", f"/v1/checkpoints/{named}/activate")
        made = (await ask("POST", DECIDE, {"embedding": ROW})).json
        return promoted.status, activated.status, made["policy_version"]

    assert serving(story) == (409, 409, 1)


def test_promotion_with_a_gate_needs_a_log_that_says_enough(serving):
    async def story(ask):
        for i in range(16):
            await ask("POST", DECIDE, {"decision_id": f"d{i}", "embedding": ROW})
            await ask("POST", f"/v1/decisions/d{i}/reward", {"value": 1.0})
        await ask.learned("/v1/policies/greet")
        return await ask("POST", "/v1/policies/greet/promote", {"version": 0, "gate": True})

    told = serving(story)
    assert told.status == 409
    assert "too little was logged" in told.json["detail"]


def test_no_request_goes_out():
    """Nothing in the service can reach another machine: no module that could is imported."""
    out = {"urllib.request", "http.client", "requests", "httpx", "aiohttp", "smtplib", "ftplib", "xmlrpc.client"}
    for path in (ROOT / "src/surefoot/server").glob("*.py"):
        tree = ast.parse(path.read_text())
        named = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        named |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not named & out, path.name
        assert "create_connection" not in path.read_text(), path.name
    bodies = [kind for kind in vars(schema).values() if isinstance(kind, type) and hasattr(kind, "__struct_fields__")]
    assert not [field for kind in bodies for field in kind.__struct_fields__ if "url" in field or "uri" in field]


def test_probabilities_are_rounded_where_they_are_told_and_exact_where_they_are_kept(serving):
    async def story(ask):
        ask.service.digits = 2
        made = (await ask("POST", DECIDE, {"decision_id": "r", "embedding": ROW, "distribution": True})).json
        told = (await ask("POST", "/v1/policies/greet/distribution", {"embedding": ROW})).json
        return made, told, ask.service.store.journal.get("decision", "r").body["probability"]

    made, told, probability = serving(story)
    assert made["distribution"] == told["distribution"] == [round(x, 2) for x in told["distribution"]]
    assert probability == made["probability"]


def test_the_log_is_folded_into_the_file_while_it_is_written(serving, monkeypatch):

    from surefoot.server.decisions import store

    monkeypatch.setattr(store, "FOLD_EVERY", 0.01)
    monkeypatch.setattr(store, "FOLD_BYTES", 1 << 16)
    monkeypatch.setattr(store, "HOLD_BYTES", 1 << 17)

    async def story(ask):
        path, made = ask.service.directory / "decisions.sqlite", 0
        while times_begun(Path(f"{path}-wal")) < 2 and made < 80_000:  # how many it takes is up to the disk
            await ask("POST", f"{DECIDE}/batch", {"decisions": [{"embedding": ROW, "subject": "s" * 120}] * 40})
            made += 40
        with sqlite3.connect(path) as db:
            (count,) = db.execute("SELECT count(*) FROM entries WHERE kind = 'decision'").fetchone()
        return made, count, path.stat().st_size, times_begun(Path(f"{path}-wal"))

    made, count, file, begun = serving(story)
    assert begun == 2
    assert count == made
    assert file > 200 * made / 3  # two of three logs are in it
