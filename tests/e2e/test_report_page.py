"""The report as a browser gets it: one file, its data whole, nothing fetched, nothing broken out of."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from surefoot.telemetry.schema import METRICS, Episodes
from surefoot.telemetry.view import write_report
from surefoot.telemetry.writer import Recorder


class Page(HTMLParser):
    """Elements with their attributes, and the text inside each script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: dict[str, str] = {}
        self.title = ""
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag if tag != "script" else f"script {dict(attrs).get('id', '')}"

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside.startswith("script"):
            name = self._inside.removeprefix("script ")
            self.scripts[name] = self.scripts.get(name, "") + data
        elif self._inside == "title":
            self.title += data


def make_run(folder: Path, name: str, updates: int) -> None:
    now = [1_700_000_000.0]
    with Recorder(folder, name, clock=lambda: now[0], sync_seconds=1e9) as recorder:
        recorder.header(
            env=name, seed=1, config={"note": name, "ppo": {"lr": 3e-4}}, command=["surefoot", "train", name]
        )
        for number in range(1, updates + 1):
            now[0] += 1
            m = dict.fromkeys(METRICS, 0.1) | {"entropy": 0.7 - number / updates / 2}
            recorder.update(
                env_steps=number * 512,
                updates=number,
                m=m,
                seconds={"learn": 0.4},
                episodes=Episodes.of([number], [number]),
            )
        recorder.eval(returns=[490.0, 510.0], lengths=[490, 510])
        recorder.event("note", name)


@pytest.fixture
def page(tmp_path: Path) -> Page:
    make_run(tmp_path, "CartPole-v1", 40)
    return Page(write_report(tmp_path).read_text(encoding="utf-8"))


def test_the_data_of_the_run_is_in_the_page(page: Page):
    data = json.loads(page.scripts["data"])
    assert data["returns"]["mean"] == list(range(1, 41))
    assert data["evals"]["mean"] == [500.0]
    assert data["x"]["env_steps"][-1] == 40 * 512
    assert {p["name"] for p in data["panels"]} >= {"entropy", "approx_kl", "clip_fraction", "explained_variance"}
    assert data["state"] == "finished"
    assert data["split"] == [{"name": "learn", "seconds": 16.0}, {"name": "other", "seconds": 24.0}]


def test_nothing_is_fetched(page: Page, tmp_path: Path):
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert re.findall(r"(?:https?:)?//[a-z]|@import|url\(|fetch\(|XMLHttpRequest|import\(", text, re.IGNORECASE) == []
    references = [
        value for _, attributes in page.elements for name, value in attributes.items() if name in ("src", "href")
    ]
    assert references == ["data:,"]
    assert any("default-src 'none'" in (attributes.get("content") or "") for _, attributes in page.elements)


def test_every_element_the_script_asks_for_is_there(page: Page):
    wanted = set(re.findall(r'\$\("([\w-]+)"\)', page.scripts[""]))
    assert len(wanted) > 15
    assert wanted <= {attributes.get("id") for _, attributes in page.elements}


@pytest.mark.parametrize(
    "name", ["</script><script>alert(1)</script>", "<!--<script>", "{{data}}", "</title><b>&amp;\u2028"]
)
def test_no_name_breaks_out(tmp_path: Path, name: str):
    (tmp_path / "plain").mkdir()
    make_run(tmp_path / "plain", "plain", 3)
    make_run(tmp_path, name, 3)
    plain = Page(write_report(tmp_path / "plain").read_text(encoding="utf-8"))
    page = Page(write_report(tmp_path).read_text(encoding="utf-8"))
    assert page.elements == plain.elements
    assert page.scripts[""] == plain.scripts[""]
    data = json.loads(page.scripts["data"])
    assert data["env"] == data["run"] == data["events"][0]["message"] == name
    assert ["note", name] in data["config"]
    assert page.title == f"{name} · {name}"


def test_a_very_long_run_stays_a_small_page(tmp_path: Path):
    make_run(tmp_path, "long", 20_000)
    report = write_report(tmp_path)
    data = json.loads(Page(report.read_text(encoding="utf-8")).scripts["data"])
    assert all(len(curve["mean"]) <= 2000 for curve in [data["returns"], *data["panels"]])
    assert data["x"]["updates"][-1] == 20_000
    assert report.stat().st_size < 500_000
