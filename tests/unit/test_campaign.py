"""The campaign's own arithmetic: what counts as green, which changes are made to code, what its tables say."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from campaign import table
from campaign.frame import Block, Found, dice, is_here
from campaign.mutator import mutants
from campaign.runner import FIRST, all_blocks, keep, line, run_block, verdict


@pytest.mark.parametrize("what", ["lost", "unreadable", "silent", "server_errors", "fault_count"])
def test_one_of_what_must_be_zero_is_not_green(what: str):
    assert Found(tried=1).green
    assert not Found(tried=1, **{what: 1}).green


def test_what_was_not_tried_is_not_green():
    assert not Found().green
    assert not Found(tried=5, not_here="not reachable").green


def test_all_faults_are_counted_and_the_first_are_kept():
    found = Found(tried=1)
    for i in range(100):
        found.fault(f"fault {i}")
    assert found.fault_count == 100
    assert found.faults[0] == "fault 0"
    assert len(found.faults) < 100


def block(check: Any, *defects: str) -> Block:
    sizes = {"smoke": 1, "count": 10, "long": 100}
    words = {"name": "X1", "title": "a try", "over": "nothing", "unit": "tries"}
    return Block(**words, **sizes, check=check, mutants=dict.fromkeys(defects, 2))


def test_a_block_runs_as_shipped_and_with_each_defect():
    asked: list[tuple[int, str]] = []

    def check(count: int, defect: str) -> Found:
        asked.append((count, defect))
        return Found(tried=count, lost=len(defect))

    told = run_block(block(check, "one", "two"), "campaign")
    assert asked == [(10, ""), (2, "one"), (2, "two")]
    assert verdict(told) == "green"
    assert "10 tries, 2 of 2 mutants caught" in line("X1", told)


def test_a_defect_that_is_not_caught_is_red():
    told = run_block(block(lambda count, defect: Found(tried=count), "harmless"), "smoke")
    assert verdict(told) == "RED: not caught: harmless"


def test_a_check_that_breaks_is_red_and_not_the_end(capsys: pytest.CaptureFixture[str]):
    def check(count: int, defect: str) -> Found:
        raise OSError("no disk")

    told = run_block(block(check), "smoke")
    assert verdict(told) == "RED"
    assert told["found"]["faults"] == ["OSError: no disk"]


def test_a_mutant_whose_check_breaks_is_not_caught():
    def check(count: int, defect: str) -> Found:
        if defect:
            raise OSError("no disk")
        return Found(tried=count)

    assert verdict(run_block(block(check, "one"), "smoke")) == "RED: not caught: one"


def test_what_is_not_here_is_said_and_its_mutants_are_not_tried():
    told = run_block(block(lambda count, defect: Found(not_here="not here yet"), "one"), "smoke")
    assert (verdict(told), told["mutants"]) == ("not here yet", {})
    assert is_here("json")
    assert not is_here("surefoot.nowhere.at_all")


def test_every_use_is_under_fire_and_every_check_has_a_defect_to_catch():
    blocks = all_blocks()
    assert [block.name for block in blocks.values()] == list(blocks)
    over = {part.strip() for block in blocks.values() for part in block.over.split(",")}
    assert over >= {"engine", "checkpoints", "telemetry", "service", "town", "graph", "language models"}
    assert [name for name, block in blocks.items() if not block.mutants] == []
    assert set(FIRST) <= set(blocks)


def test_another_seed_is_another_campaign(monkeypatch: pytest.MonkeyPatch):
    usual = dice(3).random()
    assert dice(3).random() == usual
    monkeypatch.setenv("CAMPAIGN_SEED", "1")
    assert dice(3).random() != usual


def test_a_block_says_what_it_cost_the_processor():
    told = run_block(block(lambda count, defect: Found(tried=sum(range(3_000_000)) and count)), "smoke")
    assert told["cpu_seconds"] > 0.0


def changed(source: str) -> list[str]:
    return sorted(mutant.source for mutant in mutants(source))


def test_operators_constants_conditions_returns_and_calls_are_changed():
    assert changed("x = a + 1") == ["x = a + 2", "x = a - 1"]
    assert changed("x = a <= b and c") == ["x = a < b and c", "x = a <= b or c"]
    assert changed("def f():\n    return x") == ["def f():\n    return None"]
    assert changed("if a:\n    go()") == ["if a:\n    None", "if not a:\n    go()"]
    assert changed("x = True") == ["x = False"]


def test_words_types_and_messages_are_left_alone():
    assert changed('"""One."""') == []
    assert changed("raise ValueError(f'{n + 1} of 2')") == []
    assert changed("def f(x: Tuple[1]) -> Tuple[2]:\n    pass") == []
    assert changed("zip(a, b, strict=True)") == ["None"]


def test_only_the_named_functions_are_changed():
    source = "def f():\n    x = 1\n\ndef g():\n    y = 2"
    assert [m.what for m in mutants(source, ("g",))] == ["2 becomes 3"]


RESULTS = {
    "command": "make campaign",
    "blocks": {
        "X1": {
            "title": "a try",
            "over": "nothing",
            "unit": "kills",
            "found": Found(tried=1200, kills=1200, acknowledged=5, notes={"clients": 8, "N1": 3}).to_json(),
            "mutants": {"one defect": Found(tried=7, lost=3).to_json()},
            "seconds": 90.0,
        },
        "X2": {
            "title": "away",
            "over": "net",
            "unit": "x",
            "found": Found(not_here="not reachable").to_json(),
            "mutants": {},
        },
    },
}


def test_the_tables_have_the_counts_and_never_call_green_what_was_not_tried():
    assert "| kills tried | **1,200** |" in table.totals(RESULTS)
    assert "| green blocks | **1 of 1 that could be tried** |" in table.totals(RESULTS)
    rows = table.blocks(RESULTS).splitlines()
    assert rows[2] == "| X1 | a try | nothing | 1,200 kills (clients 8) | 0, 0, 0, 0 | green | 1 of 1 |"
    assert rows[3] == "| X2 | away | net | | | not reachable | |"
    assert table.long(RESULTS).splitlines()[2:] == ["| X1 | 1,200 kills | 0, 0, 0, 0 | green | 1 of 1 | 1.5 |"]
    assert table.mutants(RESULTS).splitlines()[2] == "| X1 | one defect | 7 | 3 | 0 | 0 | 0 | 0 | red |"


def test_what_another_campaign_found_meanwhile_is_kept(tmp_path):
    file = tmp_path / "found.json"
    keep(file, "long", {"K4": {"of": "one"}})
    keep(file, "long", {"K2": {"of": "another"}, "K4": {"of": "a second try"}})
    keep(file, "long", {}, seconds=7)
    told = json.loads(file.read_text())
    assert told == {
        "command": "make campaign-long",
        "long_seconds": 7,
        "blocks": {"K2": {"of": "another"}, "K4": {"of": "a second try"}},
    }
    assert list(told["blocks"]) == ["K2", "K4"]
