"""The page of `surefoot town film` in a real browser: it plays, follows an agent, compares, and is accessible."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from surefoot.cli.main import main

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect
expect.set_options(timeout=90_000)  # the machine may be busy with other tests
# Films died in about half of the loads, so eight loads miss such a fault once in 256 times; `make bench-town` loads 100.
LOADS = 8


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = tmp_path_factory.mktemp("film") / "both.html"
    both = ["--policy", "script", "--policy", "random"]
    assert main(["town", "film", "queue_conflict", *both, "-o", str(page), "--seed", "3"]) == 0
    return page


@pytest.fixture(scope="module")
def browser() -> Iterator:
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if not found:
        pytest.skip("no Chromium: $CHROMIUM or PATH")
    with playwright.sync_playwright() as started:
        yield started.chromium.launch(executable_path=found, args=["--no-sandbox"])


def test_every_load_plays(browser, film: Path) -> None:
    page = browser.new_page()
    mistakes: list[str] = []
    page.on("pageerror", lambda error: mistakes.append(str(error)))
    for _ in range(LOADS):
        page.goto(film.as_uri())
        page.wait_for_function("() => Number(document.getElementById('at').value) > 0")
        page.goto("about:blank")
    assert mistakes == []
    page.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_in_either_theme(browser, film: Path, theme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = browser.new_page(color_scheme=theme)
    page.goto(film.as_uri() + "#t=40&follow=ben")
    page.wait_for_selector("html[data-ready]")
    found = axe.run(page).response["violations"]
    assert [(v["id"], [n["target"] for n in v["nodes"]][:3]) for v in found] == []
    page.close()


def test_it_shows_clock_names_queues_scores_and_follows_an_agent(browser, film: Path) -> None:
    page = browser.new_page()
    page.goto(film.as_uri() + "#t=40")
    # Tick 40 of a day of 240 ticks is a sixth of it: four o'clock.
    expect(page.locator("#clock")).to_have_text("Day 1, 04:00 · tick 40 of 79")
    script, chance = page.get_by_role("region", name="script", exact=True), page.get_by_role("region", name="random")
    for side in (script, chance.first):
        expect(side.locator(".score")).to_have_text(re.compile(r"^-\d\.\d\d$"))
        expect(side.locator("tbody tr")).to_have_count(3)
    expect(page.locator("#legend")).to_contain_text("shower: shower_1")
    expect(script.locator(".events")).to_contain_text("uses shower_1")
    page.locator("#follow").select_option("ben")
    expect(script.locator("tr.followed")).to_contain_text("ben")
    events = script.locator(".events > div")
    assert events.count() > 0
    assert all("ben" in line for line in events.all_inner_texts())
    assert page.url.endswith("#t=40&follow=ben")
    page.close()
