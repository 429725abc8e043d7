"""`surefoot town watch` and `film`."""

from __future__ import annotations

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
