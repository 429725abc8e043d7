"""ASGI interface of the app: lifespan and requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from surefoot.errors import SurefootError
from surefoot.server.http.messages import HttpResponse, RequestHead
from surefoot.server.http.problems import Refused
from surefoot.server.http.route import Route

if TYPE_CHECKING:
    from surefoot.server.http.app import App

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


async def serve(app: App, scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Answer one request, or start and stop the service with the server."""
    if scope["type"] == "http":
        await _http(app, scope, receive, send)
    while scope["type"] == "lifespan":
        message = await receive()
        if message["type"] == "lifespan.startup":
            try:
                await app.start()
            except SurefootError as error:
                await send({"type": "lifespan.startup.failed", "message": str(error)})
                return
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await app.service.close()
            await send({"type": "lifespan.shutdown.complete"})
            return


async def _http(app: App, scope: dict[str, Any], receive: Receive, send: Send) -> None:
    client = scope["client"][0] if scope.get("client") else ""
    headers = dict(scope["headers"])
    # Joined as on the socket, so that the guard refuses several Host headers.
    headers[b"host"] = b", ".join(value for name, value in scope["headers"] if name == b"host")
    request, response = app.open(
        RequestHead(scope["method"], scope["path"], headers, client, scope.get("query_string", b"").decode("latin-1"))
    )
    if response is None:
        done: asyncio.Future[HttpResponse] = asyncio.get_running_loop().create_future()
        try:
            raw = b"" if request.matched.body is None else await _body(request.matched, receive)
            app.answer(request, raw, done.set_result)
            response = await done
        except Refused as error:
            response = app.refusal(request, error)
    lines = [(name.encode(), value.encode()) for name, value in response.head(request.id)]
    await send({"type": "http.response.start", "status": response.status, "headers": lines})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else response.content})


async def _body(route: Route, receive: Receive) -> bytes:
    """Return the body. Raise `Refused` if it is longer than the route's limit."""
    chunks, size, more = list[bytes](), 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused("timeout", "the connection was closed before the body was complete")
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > route.limit:
            raise Refused("too-large", f"the body has more than {route.limit:,} bytes")
        more = message.get("more_body", False)
    return b"".join(chunks)
