"""Alerts sent over HTTP: only to checked addresses, and never redirected."""

from typing import Any

import pytest

from surefoot.errors import ConfigError
from surefoot.telemetry.doctor.webhook import Webhook, checked_url


def test_a_hook_that_points_elsewhere_is_not_followed(
    capsys: pytest.CaptureFixture[str], hook: tuple[str, list[dict[str, Any]]]
):
    url, got = hook
    sender = Webhook(f"{url}/away")
    sender.send({"a": 1})
    sender.send({"a": 2})
    sender.close()
    assert got == [{"a": 1}, {"a": 2}]
    assert capsys.readouterr().err.count("the webhook does not accept alerts") == 1


@pytest.mark.parametrize(
    "url", ["https://example.org/x", "http://127.0.0.1:9/x", "http://[::1]/", "http://localhost/a"]
)
def test_urls_that_are_allowed(url: str):
    assert checked_url(url) == url


@pytest.mark.parametrize(
    "url",
    ["http://example.org", "http://127.0.0.1@example.org/", "http://10.0.0.1/", "ftp://localhost/", "localhost:80", "https://", "http://[::1", "http://0.0.0.0/", "file:///etc/passwd", "http://127.0.0.1.example.org/"],
)  # fmt: skip
def test_urls_that_are_refused(url: str):
    with pytest.raises(ConfigError, match="webhook"):
        checked_url(url)
