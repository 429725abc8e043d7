"""The calls that both clients share."""

import asyncio
import inspect
import subprocess
import sys
from typing import Any

from surefoot.client import (
    AsyncSurefoot,
    Surefoot,
)


def test_the_async_client_has_the_same_methods() -> None:
    def methods(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert methods(AsyncSurefoot) == methods(Surefoot)


def test_it_loads_neither_torch_nor_numpy() -> None:
    code = "import sys, surefoot.client; print([m for m in ('torch', 'numpy', 'uvicorn') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_method_shows_the_signature_and_the_help_of_its_declaration() -> None:
    for client in (Surefoot, AsyncSurefoot):
        signature = inspect.signature(client.promote)
        assert list(signature.parameters) == ["self", "policy", "version", "share", "gate"]
        assert signature.return_annotation == "schema.PolicyResponse"
        assert client.promote.__doc__.startswith("Let a version decide")


def test_only_the_async_client_returns_coroutines(fakes: Any) -> None:
    fake = fakes(lambda n, body: (200, {}, {"status": "ok"}))
    assert Surefoot(fake.url).health().status == "ok"
    pending = AsyncSurefoot(fake.url).health()
    assert asyncio.iscoroutine(pending)
    assert asyncio.run(pending).status == "ok"
