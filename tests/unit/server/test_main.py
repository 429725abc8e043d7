"""The serving process; `tests/e2e/test_serve.py` starts whole ones."""

from __future__ import annotations

import json
import logging

import pytest

from surefoot.errors import ConfigError
from surefoot.server.main import _bound, _Json, _shown


def test_a_port_is_free_in_range_and_not_taken():
    with _bound("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        assert port > 0
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1:{port}"):
            _bound("127.0.0.1", port)
    with pytest.raises(ConfigError, match="--port is 65536"):
        _bound("127.0.0.1", 65_536)


def test_a_reserved_port_is_shared_with_those_who_listen():
    with _bound("127.0.0.1", 0, shared=True, listens=False) as reserved:
        port = reserved.getsockname()[1]
        with _bound("127.0.0.1", port, shared=True) as one, _bound("127.0.0.1", port, shared=True) as two:
            assert one.getsockname() == two.getsockname()


def test_an_address_of_ipv6_is_shown_in_brackets():
    assert (_shown("::1"), _shown("127.0.0.1")) == ("[::1]", "127.0.0.1")


def test_a_log_line_is_json_with_its_traceback():
    record = logging.LogRecord("surefoot.server", logging.WARNING, "", 0, "%d left", (3,), None)
    line = json.loads(_Json().format(record))
    assert (line["level"], line["logger"], line["message"]) == ("warning", "surefoot.server", "3 left")
    assert "traceback" not in line
    record.exc_info = (ValueError, ValueError("no"), None)
    assert "ValueError: no" in json.loads(_Json().format(record))["traceback"]
