"""Counters for Prometheus."""

from __future__ import annotations

from server.conftest import ROW

DECIDE = "/v1/policies/greet/decisions"


def test_prometheus_reads_the_counters(serving):
    async def story(ask):
        await ask("POST", DECIDE, {"embedding": ROW})
        return (await ask("GET", "/metrics")).content.decode()

    text = serving(story)
    assert 'surefoot_decisions_total{policy="greet"} 1' in text
    assert 'surefoot_requests_total{path="/v1/policies/{policy}/decisions",status="200"} 1' in text
    assert all(line.startswith(("#", "surefoot_")) for line in text.splitlines())
