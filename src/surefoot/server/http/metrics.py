"""What Prometheus reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from surefoot.server.decisions.policy_lifecycle import Steward
from surefoot.server.decisions.service import Service


def exposition(service: Service, steward: Steward, counts: Mapping[tuple[str, int], int], seconds: float) -> bytes:
    """All counters as text."""
    served = [(serving.config.name, serving) for serving in service.policies.values()]
    jobs: dict[tuple[str, str], int] = {}
    for job in steward.jobs.values():
        jobs[(job.policy, job.state)] = jobs.get((job.policy, job.state), 0) + 1
    lines = [
        *_requests(counts, seconds),
        *_family(
            "surefoot_decisions_total", "counter", "Decisions made.", [({"policy": n}, s.made) for n, s in served]
        ),
        *_family(
            "surefoot_rewards_total",
            "counter",
            "Decisions closed with a reward that was told.",
            [({"policy": n}, s.rewarded) for n, s in served],
        ),
        *_family(
            "surefoot_reward_mean",
            "gauge",
            "Mean of the last rewards.",
            [({"policy": n}, sum(s.recent) / len(s.recent)) for n, s in served if s.recent],
        ),
        *_family(
            "surefoot_decisions_waiting",
            "gauge",
            "Decisions without an outcome.",
            [({"policy": n}, s.ledger.waiting) for n, s in served],
        ),
        *_family(
            "surefoot_decisions_finished",
            "gauge",
            "Decisions that wait to be learned from.",
            [({"policy": n}, len(s.ledger)) for n, s in served],
        ),
        *_family(
            "surefoot_policy_version",
            "gauge",
            "The version that answers.",
            [({"policy": n}, s.version) for n, s in served],
        ),
        *_family(
            "surefoot_jobs",
            "gauge",
            "Jobs by state.",
            [({"policy": policy, "state": state}, n) for (policy, state), n in sorted(jobs.items())],
        ),
    ]
    return ("\n".join(lines) + "\n").encode()


def requests_only(counts: Mapping[tuple[str, int], int], seconds: float) -> bytes:
    """The counters of a service that keeps nothing."""
    return ("\n".join(_requests(counts, seconds)) + "\n").encode()


def _requests(counts: Mapping[tuple[str, int], int], seconds: float) -> list[str]:
    by_path = [({"path": path, "status": str(status)}, float(n)) for (path, status), n in sorted(counts.items())]
    return [
        *_family("surefoot_requests_total", "counter", "Requests by path and status.", by_path),
        *_family("surefoot_request_seconds_total", "counter", "Time spent answering.", [({}, seconds)]),
    ]


def _family(name: str, kind: str, about: str, samples: Iterable[tuple[Mapping[str, str], float]]) -> list[str]:
    lines = [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
    for labels, value in samples:
        told = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        lines.append(f"{name}{{{told}}} {value:g}" if told else f"{name} {value:g}")
    return lines


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
