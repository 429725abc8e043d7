"""Import of ComfyUI workflows (version 0.4) with DNNE's nodes as graphs; the notes list the changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surefoot.compat.dnne import register
from surefoot.compat.dnne.completion import complete
from surefoot.compat.dnne.drawing import (
    MODES,
    NOTES,
    PORTS,
    WIDGETS,
    is_api_format,
    pair_of,
    put_first_values_first,
    remove_reroutes,
    type_of,
)
from surefoot.data.kinds import as_list, as_mapping
from surefoot.errors import GraphError
from surefoot.graph.import_.program import Imported
from surefoot.graph.nodes import REGISTRY
from surefoot.graph.spec.model import NAME, Edge, End, Graph, GraphComment, Node
from surefoot.graph.spec.params import read_params
from surefoot.graph.spec.text import MOST_EDGES, MOST_NODES, MOST_TEXT, parse_json

_DROPPED = {
    "IsaacGymEnvNode": {"isaac_gym_path", "isaac_gym_envs_path", "headless", "device", "physics_engine"},
    "PPOTrainerNode": {"checkpoint_enabled", "checkpoint_trigger_type", "checkpoint_trigger_value"},
}
CARTPOLE = "surefoot/CartPoleContinuous-v0"
# Newton at an action of 1, in Isaac's Cartpole and here.
FULL_PUSH = 400.0
# Defaults of DNNE's nodes for parameters that a workflow leaves out; its trainer's differ from its documentation.
DEFAULTS = {
    "IsaacGymEnvNode": {"num_envs": 64},
    "PPOTrainerNode": {"rollout_steps": 16, "epochs": 4, "minibatch_size": 32},
}
# Largest id of a node + 1: ComfyUI counts from 1, and ids are part of the names here.
MOST_ID = 2**53


def from_workflow(text: str) -> Imported:
    """Return the graph of a workflow's JSON text."""
    register()
    workflow = parse_json(text)
    if is_api_format(workflow):
        raise GraphError(
            "this is ComfyUI's API format, without positions; save the workflow itself (Save, not Export API)"
        )
    if not is_workflow(workflow):
        raise GraphError("this is not a ComfyUI workflow; a workflow has nodes, links and a version")
    return _Workflow(workflow).read()


def is_workflow(data: Mapping[str, Any]) -> bool:
    """Return whether an object looks like a workflow."""
    return (isinstance(data.get("nodes"), list) and isinstance(data.get("links"), list)) or is_api_format(data)


class _Workflow:
    def __init__(self, workflow: Mapping[str, Any]) -> None:
        self.workflow, self.graph, self.notes = workflow, Graph("workflow"), list[str]()
        self.ids: dict[int, str] = {}
        self.origin: dict[str, str] = {}
        self.ports: dict[str, tuple[list[str], list[str]]] = {}

    def read(self) -> Imported:
        if self.workflow.get("version") not in (0.4, "0.4"):
            raise GraphError(f"the workflow's version is {str(self.workflow.get('version'))[:20]}; it must be 0.4")
        nodes, links = as_list(self.workflow["nodes"]) or [], as_list(self.workflow["links"]) or []
        if len(nodes) > MOST_NODES or len(links) > MOST_EDGES:
            raise GraphError(
                f"{len(nodes):,} nodes and {len(links):,} links are too many; at most {MOST_NODES:,} and {MOST_EDGES:,}"
            )
        unknown = sorted({type for type in map(type_of, nodes) if type not in NOTES and REGISTRY.find(type) is None})
        if len(unknown) > 1:
            names = ", ".join(repr(each[:40]) for each in unknown[:8]) + (", …" if len(unknown) > 8 else "")
            raise GraphError(
                f"there are no nodes called {names}; a workflow of DNNE has an IsaacGymEnvNode, a PPOAgentNode and a "
                "PPOTrainerNode"
            )
        for each in nodes:
            self._node(each)
        for each in links:
            self._link(each)
        self.notes += [*remove_reroutes(self.graph), *put_first_values_first(self.graph)]
        return Imported(self.graph, [*self.notes, *complete(self.graph)])

    def _node(self, entry: Any) -> None:
        spec = as_mapping(entry)
        number = None if spec is None else spec.get("id")
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < MOST_ID or number in self.ids:
            raise GraphError(
                f"a node of the workflow has the id {str(number)[:20]}; ids must be unique whole numbers from 0 to "
                f"{MOST_ID - 1:,}"
            )
        assert spec is not None
        if not isinstance(spec.get("mode", 0), int):
            raise GraphError(f"mode of node {number} is {str(spec['mode'])[:20]}; it must be a number")
        original = str(spec.get("type"))
        if original in NOTES:
            self._comment(number, spec)
            return
        declared = REGISTRY.find(original)
        if declared is None:
            raise GraphError(f"node {number}: there is no node called {original[:60]!r}{REGISTRY.near(original[:60])}")
        id = f"{_short(declared.name)}{number}"
        self.ids[number], self.origin[id] = id, original
        self.ports[id] = (_names(spec.get("inputs")), _names(spec.get("outputs")))
        self.graph.nodes[id] = Node(declared.name, self._params(id, original, spec))
        if (mode := MODES.get(spec.get("mode", 0), "")) != "":
            self.graph.nodes[id].mode = mode
            self.notes.append(f"{id}: {mode}, as in the workflow")
        if (position := pair_of(spec.get("pos"))) is not None:
            self.graph.layout[id] = position

    def _comment(self, number: int, spec: Mapping[str, Any]) -> None:
        text = " ".join(str(each) for each in as_list(spec.get("widgets_values")) or [])
        at, size = pair_of(spec.get("pos")) or (0.0, 0.0), pair_of(spec.get("size")) or (300.0, 120.0)
        self.graph.frames[f"note{number}"] = GraphComment(text[:MOST_TEXT], at, size)

    def _params(self, id: str, original: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        widgets = spec.get("widgets_values")
        values = as_list(widgets) or []
        order = WIDGETS.get(original, tuple(param.name for param in REGISTRY.get(original).params))
        if len(values) > len(order):
            raise GraphError(f"{id}: {original} has {len(order)} widgets, not {len(values)}")
        # Some versions of the editor store them with their names.
        params: dict[str, Any] = dict(as_mapping(widgets) or zip(order, values, strict=False))
        for name in sorted(_DROPPED.get(original, set())):
            if name in params:
                self._note_dropped(id, name, params.pop(name))
        if original == "IsaacGymEnvNode":
            params["env_id"] = self._isaac(id, str(params.pop("env_name", "Cartpole")))
        if original == "PPOAgentNode":
            params["input_size"] = 4
            params.setdefault("action_dim", 1)
        if original == "CartpoleActionNode":
            params = self._push(id, params.pop("max_push_effort", FULL_PUSH))
        if original == "ORNode":
            params = {"mode": "fby"}
        known = read_params(REGISTRY.get(original), params, who=id)
        return {**DEFAULTS.get(original, {}), **known}

    def _note_dropped(self, id: str, name: str, value: Any) -> None:
        if name == "checkpoint_enabled" and value:
            self.notes.append(f"{id}: checkpoints need a Checkpoint node; add one after the trainer")
        elif name in ("device", "physics_engine"):
            self.notes.append(f"{id}: {name}={value!r} is left out; this environment runs on the CPU")

    def _push(self, id: str, effort: Any) -> dict[str, Any]:
        """Return the parameters that limit the push to `effort` newton."""
        if isinstance(effort, bool) or not isinstance(effort, int | float) or not 0 < effort <= FULL_PUSH:
            raise GraphError(
                f"{id}: max_push_effort is {str(effort)[:40]}; it must be above 0 and at most {FULL_PUSH:g}"
            )
        share = effort / FULL_PUSH
        if share == 1.0:
            return {"mode": "clip"}
        self.notes.append(
            f"{id}: max_push_effort={effort} is kept by the factor {share:g}; an action of 1 is {FULL_PUSH:g} N in {CARTPOLE}"
        )
        # clip(a, -1, 1) · share = clip(a · share, -share, share)
        return {"mode": "scale", "factor": share, "low": -share, "high": share}

    def _isaac(self, id: str, task: str) -> str:
        if task != "Cartpole":
            raise GraphError(
                f"{id}: the Isaac task {task[:40]!r} needs Isaac Lab (`pip install isaaclab`, a GPU); only 'Cartpole' has a "
                f"replacement without it, {CARTPOLE}"
            )
        self.notes.append(
            f"{id}: Isaac's 'Cartpole' becomes {CARTPOLE}: the same constants, stepped on the CPU in one batch"
        )
        return CARTPOLE

    def _link(self, entry: Any) -> None:
        link = as_list(entry)
        if link is None or len(link) < 5 or not all(isinstance(x, int) for x in link[:5]):
            raise GraphError(
                f"a link of the workflow is {str(entry)[:60]}; it must be [id, from, slot, to, slot, type]"
            )
        _, source, out, target, into = link[:5]
        if source not in self.ids or target not in self.ids:
            raise GraphError(f"link {link[0]} joins {source} and {target}; there is no such node")
        a, b = self.ids[source], self.ids[target]
        if link[5:6] == ["CONTEXT"]:
            self.notes.append(f"{a}.context → {b}.context is left out; nothing passes through it")
            return
        ends = self._slot(a, out, 1), self._slot(b, into, 0)
        if any(edge.target == End(b, ends[1]) for edge in self.graph.edges):
            raise GraphError(f"link {link[0]}: {b}.{ends[1]} has two sources")
        self.graph.edges.append(Edge(End(a, ends[0]), End(b, ends[1])))

    def _slot(self, id: str, slot: int, side: int) -> str:
        """Return the port of a slot: by its name in the workflow, else by position."""
        declared, names = REGISTRY.get(self.graph.nodes[id].type), self.ports[id][side]
        find = declared.output if side else declared.input
        if 0 <= slot < len(names) and names[slot]:
            port = find(PORTS.get(names[slot], names[slot]))
            if port is not None:
                return port.name
            raise GraphError(f"{id}: {declared.name} has no {'output' if side else 'input'} {names[slot][:40]!r}")
        ports = declared.outputs if side else declared.inputs
        if not 0 <= slot < len(ports):
            raise GraphError(f"{id}: {declared.name} has no slot {slot}")
        return ports[slot].name


def _names(slots: Any) -> list[str]:
    return [str(spec.get("name") or "") for each in as_list(slots) or [] if (spec := as_mapping(each)) is not None]


def _short(type: str) -> str:
    name = {
        "PPOAgentNode": "agent",
        "PPOTrainerNode": "trainer",
        "ActionProcessor": "action",
        "Environment": "env",
        "OR": "either",
    }
    short = name.get(type, type.lower())
    return short if NAME.fullmatch(short) else "node"
