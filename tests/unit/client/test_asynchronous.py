"""The asyncio client against small services that answer, drop and refuse as they are told."""

import asyncio
import time
from typing import Any

import pytest

from surefoot.client import (
    AsyncSurefoot,
    Conflict,
    ConnectionFailed,
    TimedOut,
)

from .conftest import DECISION


def test_an_async_retry_is_the_same_decision_and_connections_are_kept(fakes: Any) -> None:
    fake = fakes(lambda n, body: None if n < 3 else (200, {}, DECISION))

    async def story() -> int:
        async with AsyncSurefoot(fake.url) as client:
            assert (await client.decide("p", text="hello")).name == "bye"
            await asyncio.gather(*(client.decide("p", text="more") for _ in range(4)))
            kept = len(client._idle)
            await client.decide("p", text="once more")
            assert len(client._idle) == kept
            return kept

    assert 1 <= asyncio.run(story()) <= 4
    assert len({body["decision_id"] for body in fake.bodies[:3]}) == 1


def test_async_errors_are_those_of_the_other_client(fakes: Any) -> None:
    conflict = fakes(lambda n, body: (409, {}, {"detail": "told before"}))
    slow = fakes(lambda n, body: time.sleep(0.3))
    gone = fakes(lambda n, body: None)

    async def story() -> None:
        with pytest.raises(Conflict, match="told before"):
            await AsyncSurefoot(conflict.url).reward("d1", 1.0)
        with pytest.raises(TimedOut, match="within 0.05 s"):
            await AsyncSurefoot(slow.url, timeout=0.05, max_retries=0).health()
        with pytest.raises(ConnectionFailed, match="cannot reach"):
            await AsyncSurefoot(gone.url).rollback("p")

    asyncio.run(story())
    assert len(gone.bodies) == 1


def test_an_async_call_can_be_given_up(fakes: Any) -> None:
    slow = fakes(lambda n, body: time.sleep(0.3) or (200, {}, DECISION))

    async def story() -> int:
        client = AsyncSurefoot(slow.url)
        task = asyncio.create_task(client.decide("p", text="hello"))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return len(client._idle)

    assert asyncio.run(story()) == 0
