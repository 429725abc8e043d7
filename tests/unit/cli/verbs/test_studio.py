"""`surefoot studio`: the socket it listens on."""

from __future__ import annotations

import socket

import pytest

from surefoot.cli.verbs.studio import _listen
from surefoot.errors import ConfigError


def test_a_free_port_is_taken_on_loopback_only() -> None:
    with _listen(0) as listener:
        host, port = listener.getsockname()
        assert host == "127.0.0.1"
        assert port > 0
        assert listener.proto == socket.IPPROTO_TCP


def test_a_port_in_use_is_refused_with_a_remedy() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(ConfigError, match=f"cannot listen on port {port}.*--port 0 takes a free one"):
            _listen(port)


def test_a_number_that_is_no_port_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot listen on port 99999"):
        _listen(99999)
