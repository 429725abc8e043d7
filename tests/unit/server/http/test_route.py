"""`@route`: what an endpoint's signature says, and how routes are bound to an object."""

import asyncio

import pytest

from surefoot.server import schema
from surefoot.server.http.route import BODY, route, routes_of


class Endpoints:
    def __init__(self, status):
        self.status = status

    def begin_look_up(self, name, then):
        then(name)

    @route("GET", "/things/{name}", begin=begin_look_up, scope="read")
    async def look_up(self, name: str) -> schema.Health:
        """Look something up.

        This is not part of the summary.
        """
        return schema.Health(status=self.status)

    @route("POST", "/things", status=201, answer=str)
    async def create(self, new: schema.NewJob, *, client: str = "") -> bytes:
        """Create something."""
        return client.encode()

    async def internal(self) -> None:
        """Not an endpoint."""


def test_a_route_is_derived_from_its_method():
    found, created = routes_of(Endpoints)
    assert (found.method, found.path, found.name, found.about) == (
        "GET",
        "/things/{name}",
        "lookUp",
        "Look something up.",
    )
    assert (found.body, found.answer, found.wants_client, found.limit) == (None, schema.Health, False, BODY)
    assert (created.body, created.answer, created.wants_client, created.status) == (schema.NewJob, str, True, 201)


def test_routes_of_an_object_call_that_object():
    found, _ = routes_of(Endpoints("draining"))
    assert asyncio.run(found.handle("x")).status == "draining"
    calls = []
    found.begin("x", calls.append)
    assert calls == ["x"]


def test_a_setting_that_does_not_exist_is_an_error():
    with pytest.raises(TypeError, match="colour"):

        @route("GET", "/", colour="red")
        async def broken() -> schema.Health: ...
