"""The service's web page at /ui, from files of the package."""

from __future__ import annotations

from pathlib import Path

from surefoot.errors import ConfigError
from surefoot.server.http.route import Route

STATIC = Path(__file__).with_name("static") / "serve"
CONTENT_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
}
# Inline styles: the charts set widths and colours on elements. Nothing else may be loaded or frame the page.
POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def page_routes() -> list[Route]:
    """Return the routes of the page, its script and its style. They need no token: they contain nothing secret."""
    index = STATIC / "index.html"
    if not index.is_file():
        raise ConfigError("this installation has no page; build it with `make serve-page`")
    files = {"/ui/": index, "/": index} | {f"/ui/assets/{file.name}": file for file in (STATIC / "assets").iterdir()}
    return [_route(path, file) for path, file in files.items()]


def _route(path: str, file: Path) -> Route:
    content = file.read_bytes()
    # The page is also served at the root, where relative asset paths would not resolve.
    if path == "/":
        content = content.replace(b'"./assets/', b'"/ui/assets/')

    async def send() -> bytes:
        return content

    return Route(
        method="GET",
        path=path,
        handle=send,
        answer=str,
        kind=CONTENT_TYPES.get(file.suffix, "application/octet-stream"),
        scope="read",
        open=True,
        headers=HEADERS,
        name=f"page {path}",
        about="Web page of the service.",
    )
