"""Operations that fix findings of the check, and sizes that follow from the environment as it is connected."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from surefoot.data.spaces import Box
from surefoot.errors import GraphError
from surefoot.graph.nodes import REGISTRY
from surefoot.graph.nodes.learning import MASK
from surefoot.graph.nodes.worlds import spaces_of
from surefoot.graph.spec.check import check, guess_types
from surefoot.graph.spec.checked import Checked, GraphFinding
from surefoot.graph.spec.fit import join
from surefoot.graph.spec.model import End, Graph, as_end
from surefoot.graph.spec.ops import Op, apply
from surefoot.graph.spec.params import params_to_json
from surefoot.graph.spec.types import Type, misfit
from surefoot.graph.wiring import PLAIN, ROLES

FIRST_ENV = "CartPole-v1"
# A loop of six nodes without edges and parameters needs three rounds; more are needed only if a fix does not help.
ROUNDS = 8


def fix_of(graph: Graph, finding: GraphFinding, guess: Checked) -> Op | None:
    """Return the operation that fixes a finding, or None; `guess` is the result of `guess_types`."""
    node = graph.nodes.get(finding.node)
    if node is None:
        return None
    ops = [*_fixes(graph, finding, guess)]
    return None if not ops else ops[0] if len(ops) == 1 else {"op": "batch", "ops": ops}


def fix_all(graph: Graph) -> Op | None:
    """Return one operation with the fixes of all findings, of those that appear after the first ones, too."""
    trial, done = graph.copy(), list[Op]()
    for _ in range(ROUNDS):
        checked = check(trial)
        guess, before = guess_types(checked), len(done)
        # An OR without sources is no error of an unfinished graph, but agents behind it wait for its type.
        for finding in [*checked.findings, *(each for each in guess.findings if each not in checked.findings)]:
            op = fix_of(trial, finding, guess)
            try:
                if op is not None and op not in done:
                    apply(trial, op)
                    done.append(op)
            except GraphError:
                # An earlier fix of this round has changed what this one refers to.
                continue
        if len(done) == before:
            break
    # Bounds and kinds that the environment determines, even if the defaults raise no finding.
    if done:
        done += inferred_sizes(trial)
    return {"op": "batch", "ops": done} if done else None


def inferred_sizes(graph: Graph) -> list[Op]:
    """Return operations that set the parameters which follow from the environment and that nobody has set."""
    guess, ops = guess_types(check(graph)), list[Op]()
    for id, values in _sizes(graph, guess).items():
        missing = {name: value for name, value in values.items() if name not in graph.nodes[id].params}
        if missing:
            ops.append(_set(graph, id, missing))
    return ops


def _fixes(graph: Graph, finding: GraphFinding, guess: Checked) -> Iterator[Op]:
    id, port = finding.node, finding.port
    declared, params = REGISTRY.get(graph.nodes[id].type), graph.nodes[id].params
    sizes = _sizes(graph, guess)
    step = _source(graph, End(id, "rewards"))
    match finding.code, port:
        case "unconnected", _:
            yield from _connect(graph, End(id, port), guess)
        case "param", "env_id":
            yield _set(graph, id, {port: FIRST_ENV})
        case "param", "lr" | "lr_schedule" if (agent := _source(graph, End(id, "model"))) is not None:
            yield {"op": "set", "id": agent.node, "params": {}, "unset": ["lr"]}
        case "fit", "a" | "b" if declared.name == "OR":
            yield from _connect(graph, End(id, port), guess)
        case "fit", "actions":
            for each in sorted({id, *_upstream(graph, id)} & set(sizes)):
                wrong = {
                    n: v for n, v in sizes[each].items() if graph.nodes[each].params.get(n) != v and n != "input_size"
                }
                if wrong:
                    yield _set(graph, each, wrong)
        case "fit", "terminated" if step is not None:
            yield from _flags(graph, id, step.node)
        case (("param" | "fit"), _) if id in sizes and port in sizes[id]:
            yield _set(graph, id, {port: sizes[id][port]})
        case "fit", "model" | "states" if (acted := _source(graph, End(id, "policy_outputs"))) is not None:
            right = End(acted.node, "model") if port == "model" else _source(graph, End(acted.node, "observations"))
            if right is not None:
                yield {"op": "disconnect", "to": f"{id}.{port}"}
                yield {"op": "connect", "from": str(right), "to": f"{id}.{port}"}
        case "fit", "hidden":
            yield {"op": "set", "id": id, "params": {}, "unset": ["hidden"]}
        case "lint", "dones" if step is not None:
            yield from _flags(graph, id, step.node)
        case "lint", "next_states" if step is not None and _is_step(graph, step.node):
            yield {"op": "connect", "from": f"{step.node}.next_observations", "to": f"{id}.next_states"}
        case "lint", "minibatch_size":
            yield _set(graph, id, {port: params["rollout_steps"] * _streams(graph, guess, id)})
        case (("lint" | "fit"), "rollout_steps"):
            yield _set(graph, id, {port: max(1, min(2048, graph.run.total_steps // _streams(graph, guess, id)))})
        case "lint", "epochs":
            yield {"op": "set", "id": id, "params": {}, "unset": ["epochs"]}
        case _:
            return


def _set(graph: Graph, id: str, values: dict[str, Any]) -> Op:
    return {"op": "set", "id": id, "params": params_to_json(REGISTRY.find(graph.nodes[id].type), values)}


def _flags(graph: Graph, trainer: str, step: str) -> Iterator[Op]:
    if not _is_step(graph, step):
        return
    for port in ("terminated", "truncated"):
        if _source(graph, End(trainer, port)) is None:
            yield {"op": "connect", "from": f"{step}.{port}", "to": f"{trainer}.{port}"}
    if _source(graph, End(trainer, "dones")) is not None:
        yield {"op": "disconnect", "to": f"{trainer}.dones"}


def _is_step(graph: Graph, id: str) -> bool:
    return graph.nodes[id].type in ("Step", "TownStep")


def _source(graph: Graph, target: End) -> End | None:
    return next((edge.source for edge in graph.edges if edge.target == target), None)


def _streams(graph: Graph, guess: Checked, trainer: str) -> int:
    acted = _source(graph, End(trainer, "policy_outputs"))
    shape = guess.types[acted].shape if acted in guess.types else None
    return shape[0] if shape and isinstance(shape[0], int) else 1


def _connect(graph: Graph, target: End, guess: Checked) -> Iterator[Op]:
    """Connect an input as the plain loop does, or to the only output that fits."""
    declared = REGISTRY.get(graph.nodes[target.node].type)
    role = next((name for name, type in ROLES.items() if type == declared.name), "")
    usual = next((source for source, to, _ in PLAIN if to == f"{role}.{target.port}"), "")
    sources: list[End] = []
    if usual:
        from_role, _, output = usual.partition(".")
        sources = [End(id, output) for id, node in graph.nodes.items() if node.type == ROLES[from_role]]
    port = declared.input(target.port)
    if not sources and port is not None and port.type.kind != "any":
        sources = [
            End(id, output.name)
            for id, node in graph.nodes.items()
            if id != target.node and (type := REGISTRY.find(node.type)) is not None
            for output in type.outputs
            if output.type.kind != "any"
            and misfit(guess.types.get(End(id, output.name), output.type), port.type) is None
        ]
        same = [end for end in sources if end.port == target.port]
        sources = same if len(same) == 1 else sources
    # With two candidates the choice is the user's.
    if len(sources) == 1:
        try:
            yield join(graph, sources[0], target)
        except GraphError:
            return


def _sizes(graph: Graph, guess: Checked) -> dict[str, dict[str, Any]]:
    """Return {node: parameters that follow from the environment} of agents and action processors."""
    result: dict[str, dict[str, Any]] = {}
    for id, node in graph.nodes.items():
        source = _source(graph, End(id, "observations"))
        if node.type not in ("PPOAgentNode", "LowLevelPPO") or source is None:
            continue
        values = result.setdefault(id, {})
        observed = guess.types.get(source)
        if observed is not None and observed.parts:
            values["input_size"] = _input_size(observed)
        worlds = [env for env in (id, *_upstream(graph, id)) if graph.nodes[env].type in ("Environment", "Scenario")]
        types = {guess.types[End(env, "sim_handle")] for env in worlds if End(env, "sim_handle") in guess.types}
        spaces = {(type.dtype, type.choices, (type.shape or ())[1:]) for type in types}
        if len(spaces) != 1:
            continue
        ((dtype, choices, row),) = spaces
        if choices is not None:
            values |= {"action_space": "discrete", "output_size": choices[0] if len(choices) == 1 else choices}
        elif dtype == "float32":
            values |= {"action_space": "continuous", "output_size": row[0] if len(row) == 1 else row}
        for edge in graph.edges:
            if edge.source.node == id and graph.nodes[edge.target.node].type == "ActionProcessor":
                result[edge.target.node] = (
                    {"mode": "none"} if choices is not None else {"mode": "clip", **_bounds(graph, worlds)}
                )
    return result


def _input_size(observed: Type) -> Any:
    rows = {name: tuple(shape[1:]) for name, _, shape in observed.parts or () if name != MASK}
    sizes = {name: row[0] if len(row) == 1 else row for name, row in rows.items()}
    return next(iter(sizes.values())) if len(sizes) == 1 else sizes


def _bounds(graph: Graph, worlds: list[str]) -> dict[str, Any]:
    """Return low and high of an ActionProcessor if all bounds of the environment are the same numbers, else nothing."""
    env = graph.nodes[worlds[0]]
    spaces = (
        spaces_of(env.params.get("env_id", ""), env.params.get("backend", "auto")) if env.type == "Environment" else ""
    )
    if isinstance(spaces, str) or not isinstance(spaces[1], Box):
        return {}
    low, high = spaces[1].low, spaces[1].high
    return {"low": low, "high": high} if isinstance(low, float) and isinstance(high, float) else {}


def _upstream(graph: Graph, id: str) -> list[str]:
    """Return the nodes that lead to this one, through delays, too."""
    found, todo = list[str](), [id]
    while todo:
        node = todo.pop()
        for edge in graph.edges:
            if edge.target.node == node and edge.source.node not in (id, *found):
                found.append(edge.source.node)
                todo.append(edge.source.node)
    return found


def connected(graph: Graph, source: str, target: str) -> Op:
    """Return the operation that draws an edge, replaces the one that the input has, and sets the sizes that follow."""
    trial, ops = graph.copy(), list[Op]()
    if _source(graph, as_end(target)) is not None:
        ops.append({"op": "disconnect", "to": target})
        apply(trial, ops[0])
    ops.append(join(trial, source, target))
    apply(trial, ops[-1])
    ops += inferred_sizes(trial)
    return ops[0] if len(ops) == 1 else {"op": "batch", "ops": ops}
