"""Tests of `surefoot.server.http.openapi`."""

import json
import re
from pathlib import Path

import pytest

from surefoot.compat.directive023.endpoints import Directive023
from surefoot.server.http.endpoints import described_routes
from surefoot.server.http.openapi import described, document
from surefoot.server.http.route import routes_of
from surefoot.server.schema import wire_name

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize(
    ("struct", "name"),
    [("DecisionResponse", "Decision"), ("DecisionsBody", "Decisions"), ("NewPolicy", "NewPolicy"), ("Act", "Act")],
)
def test_a_suffix_is_only_pythons(struct, name):
    assert wire_name(struct) == name


def test_components_have_the_names_that_the_typescript_client_exports():
    described = json.loads(document(described_routes()))
    types = (ROOT / "clients/typescript/src/schema.ts").read_text()
    exported = set(re.findall(r"^export (?:interface|type) (\w+)", types, flags=re.M))
    components = described["components"]["schemas"]
    assert {"Decision", "Policy", "Problem", "Training"} <= set(components)
    assert set(components) <= exported
    assert {name: part["title"] for name, part in components.items()} == {name: name for name in components}


def test_every_reference_has_its_component():
    text = document(described_routes()).decode()
    components = json.loads(text)["components"]["schemas"]
    assert set(re.findall(r"#/components/schemas/(\w+)", text)) <= set(components)


def test_openapi_describes_every_route_and_every_answer(serving):
    async def story(ask):
        return (await ask("GET", "/openapi.json")).json

    document_served = serving(story)
    assert document_served == json.loads(json.dumps(described(described_routes(), secured=False)))
    assert described(described_routes())["security"] == [{"token": []}]
    assert document_served["openapi"] == "3.1.0"
    decide = document_served["paths"]["/v1/policies/{policy}/decisions"]["post"]
    assert decide["operationId"] == "decide"
    assert {"200", "400", "401", "404", "409", "413", "415", "422", "507"} <= decide["responses"].keys()
    assert document_served["components"]["schemas"]["NewDecision"]["additionalProperties"] is False


def test_health_endpoints_are_documented_without_a_token():
    routes = [*described_routes(), *routes_of(Directive023)]
    paths = described(routes)["paths"]
    for path in ("/healthz", "/readyz", "/health"):
        assert paths[path]["get"]["security"] == []
    assert "security" not in paths["/metrics"]["get"]
