"""The page of the service: files of the package, without a token and without other sites."""

from __future__ import annotations

import asyncio

import pytest

from surefoot.errors import ConfigError
from surefoot.server.http import page


def test_files_are_routed_by_name_and_the_root_finds_them(tmp_path, monkeypatch):
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text('<script src="./assets/a.js">')
    (tmp_path / "assets" / "a.js").write_text("1")
    monkeypatch.setattr(page, "STATIC", tmp_path)
    routes = {route.path: route for route in page.page_routes()}
    assert set(routes) == {"/", "/ui/", "/ui/assets/a.js"}
    assert asyncio.run(routes["/"].handle()) == b'<script src="/ui/assets/a.js">'
    assert asyncio.run(routes["/ui/"].handle()) == b'<script src="./assets/a.js">'
    assert routes["/ui/assets/a.js"].kind.startswith("text/javascript")
    assert all(route.open and "Content-Security-Policy" in route.headers for route in routes.values())


def test_a_copy_without_the_page_says_how_to_build_it(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "STATIC", tmp_path)
    with pytest.raises(ConfigError, match="make serve-page"):
        page.page_routes()
