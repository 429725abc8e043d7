"""Metrics in Prometheus' text format."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from surefoot.server.decisions.policy_lifecycle import PolicyLifecycle
from surefoot.server.decisions.served_policy import ServedPolicy
from surefoot.server.http.route import Counted


def exposition(counted: Counted, lifecycle: PolicyLifecycle | None = None) -> bytes:
    """Return the request counters and, if the service learns, the metrics of its policies and jobs."""
    by_path = [({"path": path, "status": str(code)}, float(n)) for (path, code), n in sorted(counted.counts.items())]
    lines = [
        *_family("surefoot_requests_total", "counter", "Number of requests by path and status.", by_path),
        *_family(
            "surefoot_request_seconds_total", "counter", "Total time spent answering requests.", [({}, counted.seconds)]
        ),
        *(() if lifecycle is None else _learning(lifecycle)),
    ]
    return ("\n".join(lines) + "\n").encode()


def _learning(lifecycle: PolicyLifecycle) -> list[str]:
    served = lifecycle.service.policies.values()
    jobs = Counter((job.policy, job.state) for job in lifecycle.jobs.values())

    def each(name: str, kind: str, about: str, value: Callable[[ServedPolicy], float | None]) -> list[str]:
        samples = [({"policy": s.config.name}, x) for s in served if (x := value(s)) is not None]
        return _family(name, kind, about, samples)

    def mean(serving: ServedPolicy) -> float | None:
        return sum(serving.recent) / len(serving.recent) if serving.recent else None

    def calibration(serving: ServedPolicy) -> float | None:
        value = serving.agent.calibration.error()
        return None if math.isnan(value) else value

    changes = "Options that began to fail where they were expected to succeed."
    error = "Mean distance between expected and observed success rate."
    rewarded, finished = "Number of decisions with a reported reward.", "Finished decisions not yet learned from."
    states = [({"policy": policy, "state": state}, n) for (policy, state), n in sorted(jobs.items())]
    return [
        *each("surefoot_decisions_total", "counter", "Number of decisions.", lambda s: s.decision_count),
        *each("surefoot_rewards_total", "counter", rewarded, lambda s: s.rewarded),
        *each("surefoot_reward_mean", "gauge", "Mean of the most recent rewards.", mean),
        *each("surefoot_decisions_waiting", "gauge", "Decisions waiting for a reward.", lambda s: s.waiting),
        *each("surefoot_decisions_finished", "gauge", finished, lambda s: len(s.pending)),
        *each("surefoot_outcomes_learned_total", "counter", "Outcomes learned from.", lambda s: s.learner.outcomes),
        *each("surefoot_changes_detected_total", "counter", changes, lambda s: s.learner.forgotten),
        *each("surefoot_calibration_error", "gauge", error, calibration),
        *each("surefoot_policy_version", "gauge", "Live policy version.", lambda s: s.version),
        *_family("surefoot_jobs", "gauge", "Number of jobs by policy and state.", states),
    ]


def _family(name: str, kind: str, about: str, samples: Iterable[tuple[Mapping[str, str], float]]) -> list[str]:
    lines = [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
    for labels, value in samples:
        # The three characters that the exposition format escapes in label values.
        escaped = {k: v.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for k, v in labels.items()}
        joined = ",".join(f'{key}="{text}"' for key, text in escaped.items())
        lines.append(f"{name}{{{joined}}} {value:g}" if joined else f"{name} {value:g}")
    return lines
