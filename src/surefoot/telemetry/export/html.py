"""Self-contained HTML pages: no script, no requests, every text escaped."""

from __future__ import annotations

import html
from collections.abc import Sequence
from functools import cache
from importlib.resources import files


class Markup(str):
    """HTML that is already escaped; `escape` returns it unchanged."""

    __slots__ = ()


def escape(text: str) -> Markup:
    """Return text as HTML, safe between tags and in quoted attributes."""
    return text if isinstance(text, Markup) else Markup(html.escape(text))


@cache
def style(*names: str) -> str:
    """Return style sheets of this package, concatenated."""
    return "".join((files("surefoot.telemetry.export") / name).read_text(encoding="utf-8") for name in names)


def page(title: str, lead: str, sections: Sequence[str]) -> str:
    """Return a page with a title, a lead sentence and sections.

    The content security policy forbids scripts and requests, so that a mistake in escaping cannot run code.
    """
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f'<link rel="icon" href="data:,"><title>{escape(title)}</title>'
        f"<style>{style('style.css', 'sections.css')}</style></head><body><main>"
        f"<header><h1>{escape(title)}</h1><p>{escape(lead)}</p></header>{''.join(sections)}</main></body></html>\n"
    )


def section(title: str, note: str, body: str, *, id: str = "", wide: bool = False) -> Markup:
    """Return a card with a title, a sentence and `body`, which is HTML; `wide` uses the full width."""
    name = f' id="{escape(id)}"' if id else ""
    lead = f"<p>{escape(note)}</p>" if note else ""
    return Markup(
        f'<section{name} class="card{" wide" if wide else ""}"><h2>{escape(title)}</h2>{lead}{body}</section>'
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    """Return a table; cells are texts or `Markup`."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return Markup(f"<table><thead><tr>{top}</tr></thead>{body}</table>")


def share_bar(share: float) -> Markup:
    """Return a horizontal bar for a table cell; `share` of 1 is the full width."""
    return Markup(f'<span class="share" style="width:{100 * share:.0f}%"></span>')


def heat_cell(text: str, share: float) -> Markup:
    """Return a table cell's content with a background colour as strong as `share`."""
    tint = f"color-mix(in srgb, var(--curve) {round(70 * share)}%, transparent)"
    return Markup(f'<span class="heat" style="background:{tint}">{escape(text)}</span>')


def details(summary: str, body: str) -> Markup:
    """Return a summary line that a click expands; `body` is HTML."""
    return Markup(f"<details><summary>{escape(summary)}</summary>{body}</details>")
