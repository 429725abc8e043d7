"""HTTP/1.1 on a socket; `tests/e2e/test_serve.py` has the abuses."""

from __future__ import annotations

import asyncio

from surefoot.server.http.app import App
from surefoot.server.http.endpoints import ServerEndpoints
from surefoot.server.http.protocol import HEAD_BYTES, Connections
from surefoot.server.http.route import routes_of


class Service:
    draining = False


def exchange(*pieces: bytes, most: int = 10) -> bytes:
    """Send pieces to a server on a free port, close this side, and return all that comes back."""

    async def send() -> bytes:
        service = Service()
        app = App(service, routes=lambda app: routes_of(ServerEndpoints(service, app)))
        connections = Connections(app, most=most)
        server = await asyncio.get_running_loop().create_server(connections, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        writer.write_eof()
        response = await reader.read()
        writer.close()
        server.close()
        await connections.drain(1.0)
        return response

    return asyncio.run(send())


GET = b"GET /%b HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def test_pipelined_requests_are_answered_in_order():
    response = exchange(GET % b"healthz" + GET % b"nowhere" + GET % b"healthz")
    assert [part[:3] for part in response.split(b"HTTP/1.1 ")[1:]] == [b"200", b"404", b"200"]


def test_a_head_request_has_no_body():
    head, _, body = exchange(b"HEAD /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert body == b""


def test_malformed_and_too_long_heads_are_refused():
    assert exchange(b"\x16\x03\x01\x02\x00\r\n\r\n").startswith(b"HTTP/1.1 400")
    long = b"GET /healthz HTTP/1.1\r\nX: " + b"x" * HEAD_BYTES + b"\r\n\r\n"
    assert exchange(long).startswith(b"HTTP/1.1 431")


def test_too_many_connections_are_answered_with_503():
    assert exchange(most=0).startswith(b"HTTP/1.1 503")


def test_two_host_headers_are_a_bad_request():
    # RFC 9112 3.2: a server must respond with 400 to a request with more than one Host.
    twice = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: 127.0.0.1\r\n\r\n"
    assert exchange(twice).startswith(b"HTTP/1.1 400")
