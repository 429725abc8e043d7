"""`surefoot town watch` and `film`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from surefoot.cli.main import main


def test_a_film_is_a_page_a_gif_or_refused(tmp_path: Path) -> None:
    page = tmp_path / "town.html"
    assert main(["town", "film", "queue_conflict", "-o", str(page), "--ticks", "30"]) == 0
    text = page.read_text()
    assert '"scene":' in text
    assert "pushes" in text
    assert "{{FILM}}" not in text
    assert main(["town", "film", "queue_conflict", "-o", str(tmp_path / "town.txt")]) == 64
    gif = tmp_path / "town.gif"
    assert main(["town", "film", "queue_conflict", "-o", str(gif), "--ticks", "3"]) == 0
    assert gif.read_bytes()[:6] == b"GIF89a"


def test_an_mp4_without_its_package_is_one_sentence(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    assert main(["town", "film", "queue_conflict", "-o", str(tmp_path / "town.mp4"), "--ticks", "3"]) == 2
    assert "imageio-ffmpeg" in capsys.readouterr().err


def test_a_misspelled_scenario_suggests_the_nearest_one(capsys) -> None:
    assert main(["town", "watch", "queue_conflct"]) == 2
    assert "neither a run nor a scenario; did you mean queue_conflict?" in capsys.readouterr().err


def film_of(page: Path) -> dict:
    data = re.search(r'type="application/json">(.*?)</script>', page.read_text(), re.DOTALL)
    assert data is not None
    return json.loads(data.group(1))


def test_two_policies_are_side_by_side_in_the_same_town(tmp_path: Path) -> None:
    page = tmp_path / "both.html"
    both = ["--policy", "idle", "--policy", "random"]
    assert main(["town", "film", "queue_conflict", *both, "-o", str(page), "--ticks", "4", "--seed", "3"]) == 0
    film = film_of(page)
    assert [take["title"] for take in film["takes"]] == ["idle", "random"]
    idle, random = (take["shots"] for take in film["takes"])
    # The same start: an agent that waits stays where the random one began, at most one step away after one tick.
    apart = [abs(a[0] - b[0]) + abs(a[1] - b[1]) for a, b in zip(idle[0]["people"], random[0]["people"], strict=True)]
    assert max(apart) <= 1


def test_three_policies_or_two_in_a_gif_are_refused(tmp_path: Path, capsys) -> None:
    three = ["--policy", "idle", "--policy", "random", "--policy", "script"]
    assert main(["town", "film", "queue_conflict", *three, "-o", str(tmp_path / "a.html")]) == 64
    assert "there are 3 policies (idle, random, script); a page shows two" in capsys.readouterr().err
    assert main(["town", "film", "queue_conflict", *three[:4], "-o", str(tmp_path / "a.gif")]) == 64
    assert "only a page (.html) shows two policies" in capsys.readouterr().err
