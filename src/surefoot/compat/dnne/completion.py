"""What a workflow of DNNE leaves undefined: delays, which observation an action belongs to, and the end of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from surefoot.graph.nodes import REGISTRY
from surefoot.graph.spec.model import Edge, End, Graph, Node, make_node
from surefoot.graph.wiring import LATER, READY

# Cartpole is learned on all of 5 seeds after 120,000 steps with 64 copies (with tanh after 500,000) and 390,000 with 512;
# DNNE runs until it is stopped.
ENOUGH_STEPS, STEPS_PER_ENV = 500_000, 1_000
# Steps per update with which all of 5 seeds learn, as with 16 copies and DNNE's default of 16 steps each.
LEAST_ROLLOUT = 256
# Updates per printed line.
PRINT_EVERY = 100


def complete(graph: Graph) -> list[str]:
    """Add to a graph what its workflow leaves undefined; return a note for each change."""
    completion = _Completion(graph)
    completion.complete()
    return completion.notes


class _Completion:
    def __init__(self, graph: Graph) -> None:
        self.graph, self.notes = graph, list[str]()

    def complete(self) -> None:
        graph = self.graph
        by_type = {id: node.type for id, node in graph.nodes.items()}
        for edge in list(graph.edges):
            kinds = by_type[edge.source.node], by_type[edge.target.node]
            if kinds == ("Step", "OR"):
                self._delay(edge, LATER, "the first value comes from the environment")
            elif kinds == ("PPOTrainerNode", "Step"):
                self._delay(edge, READY, "it starts with ready, because both would wait for each other otherwise")
            elif kinds == ("Step", "PPOTrainerNode") and edge.target.port == "states":
                self._pair(edge, by_type)
        envs = [node.params.get("num_envs", 1) for node in graph.nodes.values() if node.type == "Environment"]
        graph.run.total_steps = max(ENOUGH_STEPS, STEPS_PER_ENV * sum(envs))
        self.notes.append(f"total_steps is {graph.run.total_steps:,}; a workflow has none")
        for id, type in by_type.items():
            if type == "PPOTrainerNode":
                self._enough_steps(id, sum(envs))
                self._split_dones(id, by_type)
                self._one_learning_rate(id)
                self._end_learning(id)
                self._report_returns(id)

    def _delay(self, edge: Edge, delay: Any, why: str) -> None:
        self.graph.edges[self.graph.edges.index(edge)] = Edge(edge.source, edge.target, delay)
        self.notes.append(f"{edge}: a delay of one tick; {why}")

    def _pair(self, edge: Edge, by_type: Mapping[str, str]) -> None:
        """Connect the observation that the agent acted on; DNNE passes the one *after* the step as the state."""
        agent = next(
            (e.source.node for e in self.graph.edges if e.target == End(edge.target.node, "policy_outputs")), None
        )
        observed = next(
            (e.source for e in self.graph.edges if agent is not None and e.target == End(agent, "observations")), None
        )
        if observed is None:
            return
        self.graph.edges.remove(edge)
        self.graph.edges.append(Edge(observed, edge.target))
        self.graph.edges.append(Edge(End(edge.source.node, "next_observations"), End(edge.target.node, "next_states")))
        self.notes.append(
            f"{edge.target}: now {observed}, which the agent acted on; the observation after the step goes to next_states. "
            "DNNE pairs each action with the observation after it"
        )

    def _one_learning_rate(self, trainer: str) -> None:
        """Keep the trainer's learning rate; DNNE has one on the agent too and ignores it."""
        model = next((e.source.node for e in self.graph.edges if e.target == End(trainer, "model")), None)
        if model is not None:
            rate = self.graph.nodes[model].params.pop("lr", None)
            if rate is not None:
                self.notes.append(f"{model}: lr={rate} is left out; that of {trainer} is used")

    def _enough_steps(self, trainer: str, copies: int) -> None:
        """Collect at least `LEAST_ROLLOUT` steps per update; a policy that learned from fewer drifts away again.

        Of the seeds 1, 4, 5 and 6 with one copy and DNNE's 16 steps, three had unlearned after 1,500,000 steps.
        """
        params = self.graph.nodes[trainer].params
        steps, least = params["rollout_steps"], math.ceil(LEAST_ROLLOUT / max(1, copies))
        if steps < least:
            params["rollout_steps"] = least
            self.notes.append(
                f"{trainer}: horizon_length is {least} instead of {steps}, as a policy that learns from {copies * steps} steps "
                "per update unlearns again"
            )

    def _end_learning(self, trainer: str) -> None:
        """Let the learning rate fall to 0 over the run. At a constant rate a policy that has learned drifts away again.

        Of 10 seeds with 64 copies, the worst return after the run is 497 this way and 256 at a constant rate.
        """
        default = next(each.default for each in REGISTRY.get("PPOTrainerNode").params if each.name == "lr")
        rate = self.graph.nodes[trainer].params.get("lr", default)
        if isinstance(rate, float):
            self.graph.nodes[trainer].params |= make_node("PPOTrainerNode", lr_schedule=f"lin_{rate}").params
            self.notes.append(f"{trainer}: lr falls from {rate} to 0 over the run; a workflow has no end")

    def _report_returns(self, trainer: str) -> None:
        """Add a Print and a Recorder, without which a run shows neither returns nor curves; DNNE logs inside its trainer."""
        x, y = self.graph.layout.get(trainer, (0.0, 0.0))
        for row, (type, id) in enumerate((("Print", f"print_{trainer}"), ("Recorder", f"recorder_{trainer}"))):
            if any(self.graph.nodes[e.target.node].type == type for e in self.graph.edges if e.source.node == trainer):
                continue
            self.graph.nodes[id] = Node(type, {"every": PRINT_EVERY} if type == "Print" else {})
            self.graph.layout[id] = (x + 320.0, y + 160.0 * row)
            into = "value" if type == "Print" else "loss_info"
            self.graph.edges.append(Edge(End(trainer, "loss_info"), End(id, into)))
            if type == "Recorder":
                self.graph.edges.append(Edge(End(trainer, "episodes"), End(id, "episodes")))
            self.notes.append(f"{id}: added, {'prints' if type == 'Print' else 'records'} the returns of {trainer}")

    def _split_dones(self, trainer: str, by_type: Mapping[str, str]) -> None:
        """Replace `done` of a Step by its two flags."""
        edge = next((e for e in self.graph.edges if e.target == End(trainer, "dones")), None)
        if edge is None or by_type[edge.source.node] != "Step" or edge.source.port != "dones":
            return
        self.graph.edges.remove(edge)
        for port in ("terminated", "truncated"):
            self.graph.edges.append(Edge(End(edge.source.node, port), End(trainer, port)))
        self.notes.append(
            f"{trainer}.dones: now terminated and truncated of {edge.source.node}, so that a time limit is not termination"
        )
