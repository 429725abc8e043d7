"""Decisions listed, exported and counted."""

from __future__ import annotations

import csv
import io
import json

import pytest

PATH = "/v1/policies/greet"
ROW = [1.0, 0.0, 0.5, -1.0]


async def some(ask, count=12):
    for i in range(count):
        await ask(
            "POST",
            f"{PATH}/decisions",
            {"decision_id": f"d{i}", "embedding": ROW, "mask": [i % 2 == 0, i % 2 == 1, False]},
        )
        if i < 8:
            await ask("POST", f"/v1/decisions/d{i}/reward", {"value": float(i % 2)})


def listed(serving, *queries):
    async def story(ask):
        await some(ask)
        return [await ask("GET", f"{PATH}/decisions", query=query) for query in queries]

    return serving(story)


def test_decisions_are_listed_newest_first_in_pages(serving):
    async def story(ask):
        await some(ask)
        first = (await ask("GET", f"{PATH}/decisions", query="limit=5")).json
        rest = (await ask("GET", f"{PATH}/decisions", query=f"before={first['before']}")).json
        return first, rest

    first, rest = serving(story)
    ids = [d["decision_id"] for d in first["decisions"] + rest["decisions"]]
    assert ids == [f"d{i}" for i in reversed(range(12))]
    assert rest["before"] is None


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("name=hello&rewarded=true", ["d6", "d4", "d2", "d0"]),
        ("rewarded=false", ["d11", "d10", "d9", "d8"]),
        ("version=7", []),
        ("abstained=true", []),
        ("until=1", []),
    ],
)
def test_decisions_are_filtered(serving, query, ids):
    (answer,) = listed(serving, query)
    assert [d["decision_id"] for d in answer.json["decisions"]] == ids


def test_a_query_that_cannot_be_is_refused(serving):
    answers = listed(serving, "limit=0", "limit=x", "colour=red", "limit")
    assert [answer.status for answer in answers] == [422] * 4


def test_decisions_are_exported_as_ndjson_and_csv(serving):
    async def story(ask):
        await some(ask)
        return [await ask("GET", f"{PATH}/decisions.{kind}", query="limit=9") for kind in ("ndjson", "csv")]

    lines, table = serving(story)
    rows = [json.loads(line) for line in lines.content.splitlines()]
    assert lines.headers["content-type"] == "application/x-ndjson"
    assert [row["decision_id"] for row in rows] == [f"d{i}" for i in reversed(range(3, 12))]
    read = list(csv.DictReader(io.StringIO(table.content.decode())))
    assert [row["decision_id"] for row in read] == [row["decision_id"] for row in rows]
    assert [float(row["reward"]) for row in read if row["reward"]] == [1.0, 0.0, 1.0, 0.0, 1.0]


def test_statistics_have_shares_rewards_and_calibration(serving):
    async def story(ask):
        await some(ask)
        await ask.learned(PATH)
        return (await ask("GET", f"{PATH}/statistics")).json

    told = serving(story)
    assert told["outcomes"] == 8
    actions = {each["name"]: each for each in told["actions"]}
    assert {name: (each["share"], each["reward"]) for name, each in actions.items()} == {
        "hello": (0.5, 0.0),
        "bye": (0.5, 1.0),
    }
    assert actions["bye"]["low"] <= 1.0 <= actions["bye"]["high"]
    assert sum(each["weight"] for each in told["calibration"]) == 8
