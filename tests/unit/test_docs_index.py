"""Every page of the docs can be found: from the start page and in the navigation."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} - {"index.md"}


def nav_pages(entry: object) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    parts = entry.values() if isinstance(entry, dict) else entry
    return [page for part in parts for page in nav_pages(part)]


def test_the_start_page_links_to_every_page():
    links = set(re.findall(r"\]\(([^)#]+\.md)", (DOCS / "index.md").read_text(encoding="utf-8")))
    assert sorted(PAGES - links) == []
    assert sorted(links - PAGES) == []


def test_every_page_is_in_the_navigation_once():
    pages = nav_pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])
    assert sorted(pages) == sorted({*PAGES, "index.md"})


def test_the_navigation_has_the_five_sections():
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    assert [next(iter(part)) for part in nav[1:]] == ["Tutorial", "How-to", "Explanation", "Reference", "Benchmarks"]
