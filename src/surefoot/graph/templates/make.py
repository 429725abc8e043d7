"""Writes the shipped graphs: python -m surefoot.graph.templates.make. A test fails on a stale one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from surefoot.graph.catalogue import REGISTRY
from surefoot.graph.catalogue.language import THERE
from surefoot.graph.patterns import hierarchy, language_loop, ppo_loop, several_envs, tool_loop, town_loop
from surefoot.graph.spec.model import Graph
from surefoot.graph.spec.text import canonical

_SMALL: dict[str, Any] = {
    "input_size": 4,
    "output_size": 2,
    "action_space": "discrete",
    "activation": "tanh",
    "shared": False,
}
_TABLE: dict[str, Any] = {"action_space": "discrete", "activation": "tanh", "shared": False}
_CARTPOLE: dict[str, Any] = {
    "lam": 0.8,
    "gamma": 0.98,
    "entropy_coef": 0.0,
    "learning_rate": "lin_1e-3",
    "clip_param": "lin_0.2",
}

COLUMN, GAP = 260, 40
"""How far apart the studio draws them, in its own units."""


def _watched(graph: Graph, every: int = 10) -> Graph:
    graph.add("print", "Print", (1400, 120), every=every)
    graph.connect("trainer.loss_info", "print.value")
    return graph


def graphs() -> dict[str, Graph]:
    """By name, as they are drawn."""
    return {name: placed(graph) for name, graph in _wired().items()}


def _wired() -> dict[str, Graph]:
    """All of them, built."""
    return {
        "cartpole": _watched(
            ppo_loop(
                "CartPole",
                env={"env_id": "CartPole-v1", "num_envs": 8},
                agent=_SMALL,
                action={"mode": "none"},
                trainer={"horizon_length": 32, "minibatch_size": 256, "epochs": 20, **_CARTPOLE},
                total_steps=100_000,
                about="Balance a pole by pushing left or right; 500 is the most an episode can bring.",
            ),
            every=25,
        ),
        "cartpole_ppo": _watched(
            ppo_loop(
                "Cartpole_PPO",
                env={"env_id": "surefoot/CartPoleContinuous-v0", "num_envs": 64},
                agent={
                    "input_size": 4,
                    "output_size": 1,
                    "hidden_sizes": [64, 64],
                    "activation": "elu",
                    "action_space": "continuous",
                },
                action={"mode": "clip"},
                trainer={
                    "horizon_length": 16,
                    "epochs": 4,
                    "minibatch_size": 32,
                    "gamma": 0.99,
                    "lam": 0.95,
                    "clip_param": 0.2,
                },
                total_steps=200_000,
                about="The seed's wiring: Isaac's Cartpole with a continuous push, 16 steps of 64 copies an update.",
            ),
            every=25,
        ),
        "multi_env": _watched(
            several_envs(
                "Multi-environment",
                envs=[{"env_id": "CartPole-v1", "num_envs": 4}] * 3,
                agent=_SMALL,
                action={"mode": "none"},
                trainer={"horizon_length": 32, "minibatch_size": 128, "epochs": 10, **_CARTPOLE},
                total_steps=100_000,
                about="Three environment nodes feed one agent: their rows are batched, and the actions split again.",
            ),
            every=25,
        ),
        "hierarchical": _watched(
            hierarchy(
                "Hierarchical",
                env={"env_id": "surefoot/LongMaze-v0", "num_envs": 64},
                manager={"horizon_length": 64, "steps_per_goal": 20},
                goals={"goals": "rooms", "near": 0.5, "progress": 1.0},
                worker={**_SMALL, "input_size": {"goal": 2, "obs": 33}, "output_size": 4},
                trainer={
                    "horizon_length": 64,
                    "minibatch_size": 1024,
                    "epochs": 4,
                    "learning_rate": 1e-3,
                    "entropy_coef": 0.05,
                },
                total_steps=300_000,
                about="Nine rooms in a row: one policy says which comes next, another finds the way. PPO alone never arrives.",
            )
        ),
        "pendulum": _watched(
            ppo_loop(
                "Pendulum",
                env={"env_id": "Pendulum-v1", "num_envs": 8},
                agent={"input_size": 3, "output_size": 1, "activation": "tanh", "shared": False},
                action={"mode": "clip", "low": -2.0, "high": 2.0},
                trainer={
                    "horizon_length": 256,
                    "minibatch_size": 64,
                    "epochs": 10,
                    "gamma": 0.95,
                    "entropy_coef": 0.0,
                    "learning_rate": "lin_1e-3",
                },
                total_steps=150_000,
                about="Swing a link up and hold it; -180 an episode or better is solved.",
            ),
            every=4,
        ),
        "mujoco": _watched(
            ppo_loop(
                "MuJoCo",
                env={"env_id": "InvertedPendulum-v5", "num_envs": 4},
                agent={
                    "input_size": 4,
                    "output_size": 1,
                    "activation": "tanh",
                    "shared": False,
                    "normalize_obs": True,
                    "init_log_std": -1.0,
                },
                action={"mode": "clip", "low": -3.0, "high": 3.0},
                trainer={
                    "horizon_length": 256,
                    "minibatch_size": 64,
                    "epochs": 10,
                    "entropy_coef": 0.0,
                    "learning_rate": 1e-3,
                    "normalize_rewards": True,
                },
                total_steps=60_000,
                about="MuJoCo's inverted pendulum; 1000 is the most. Needs surefoot[mujoco].",
            )
        ),
        "town": _watched(
            town_loop(
                "Town",
                scenario={"scenario": "queue_conflict", "towns": 256},
                agent={"input_size": 66, "output_size": 8, **_TABLE},
                trainer={
                    "horizon_length": 20,
                    "minibatch_size": 2048,
                    "epochs": 4,
                    "gamma": 0.98,
                    "learning_rate": "lin_1e-3",
                },
                total_steps=1_000_000,
                about="Three want the one shower. Pushing makes rivals, waiting costs time; who looks when it is free gets "
                "both right. The script gets -3.1 an episode.",
            )
        ),
        "tools": _watched(
            tool_loop(
                "Tools",
                queries={"batch": 4, "held_out": 0.25},
                policy={"fresh": 32, "learning_rate": 0.01, "epochs": 10},
                total_steps=1000,
                about="Which of five tools answers a question? They really run. A quarter of the questions is kept for the exam; "
                "the nearest description is right for 62 of 100.",
            ),
            every=5,
        ),
        **_language(),
    }


def _language() -> dict[str, Graph]:
    """Where there are language models."""
    if not THERE:
        return {}
    graph = language_loop(
        "Language model",
        prompts={"batch": 64},
        sampler={"model": "tiny", "train": "full", "max_new_tokens": 8, "min_new_tokens": 7},
        reward={"by": "characters", "paid": "aeiou"},
        kl={"beta": 0.05},
        trainer={"learning_rate": "lin_1e-3", "epochs": 4, "minibatches": 4},
        total_steps=2880,
        about="A tiny model of random weights, made here, is paid for vowels, and leaving what it would have said is priced. "
        "Score less price is 0.77 at best. Needs surefoot[lm].",
    )
    return {"language": _watched(graph)}


def placed(graph: Graph) -> Graph:
    """With every node in the column after the last that it waits for, so that only what is delayed goes back."""
    ranks = dict.fromkeys(graph.nodes, 0)
    for _ in graph.nodes:
        for edge in graph.edges:
            if edge.delay is None:
                ranks[edge.target.node] = max(ranks[edge.target.node], ranks[edge.source.node] + 1)
    columns: dict[int, list[str]] = {}
    for id in graph.nodes:
        columns.setdefault(ranks[id], []).append(id)
    for rank, ids in columns.items():
        tall = [_height(graph, id) for id in ids]
        top = -(sum(tall) + GAP * (len(tall) - 1)) / 2
        for id, height in zip(ids, tall, strict=True):
            graph.layout[id] = (float(rank * COLUMN), float(round(top / 10) * 10))
            top += height + GAP
    return graph


def _height(graph: Graph, id: str) -> float:
    declared = REGISTRY.get(graph.nodes[id].type)
    wired = len(graph.into(id)) if len(declared.inputs) > 4 else len(declared.inputs)
    return 62 + 22 * (wired + len(declared.outputs)) + 16 * min(3, len(graph.nodes[id].params))


def main() -> None:
    """Write each beside this file."""
    for name, graph in graphs().items():
        (Path(__file__).parent / f"{name}.json").write_text(canonical(graph), encoding="utf-8")


if __name__ == "__main__":
    main()
