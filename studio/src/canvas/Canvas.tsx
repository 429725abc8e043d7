import {
  applyNodeChanges,
  Background,
  BackgroundVariant,
  type Connection,
  Controls,
  type Edge,
  MiniMap,
  type Node,
  type NodeChange,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
} from "@xyflow/react";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { CATEGORY, colourOf, portsOf } from "../ports";
import { ask, checkOf, flatId, get, graphOf, op, set, toast, useStudio } from "../store";
import type { Op } from "../types";
import { endsOf } from "../words";
import { arranged, heightOf, WIDTH } from "./layout";
import { type CardData, NodeCard } from "./NodeCard";
import { freeName } from "./clipboard";
import { Wire, type WireData } from "./Wire";

const nodeTypes = { card: NodeCard };
const edgeTypes = { wire: Wire };

export async function addNode(type: string, at?: [number, number]): Promise<string | null> {
  const s = get();
  const graph = graphOf(s);
  if (!graph) return null;
  const id = freeName(SHORT[type] ?? type.replace(/Node$/, "").toLowerCase(), graph);
  const place = at ?? nextPlace();
  const done = await op({ op: "add", id, type, at: place });
  if (!done) return null;
  set({ selected: [id], edge: "" });
  if (!at) setTimeout(() => window.dispatchEvent(new Event("studio:fit")), 120);
  return id;
}

const SHORT: Record<string, string> = { PPOAgentNode: "agent", PPOTrainerNode: "trainer", Environment: "env", OR: "either", ActionProcessor: "action" };

function nextPlace(): [number, number] {
  const graph = graphOf(get());
  const places = Object.values(graph?.layout ?? {});
  if (places.length === 0) return [0, 0];
  const right = Math.max(...places.map(([x]) => x));
  const row = places.filter(([x]) => x === right).map(([, y]) => y);
  return [right + WIDTH + 60, Math.min(...row)];
}

export function tidy(): void {
  const s = get();
  const graph = graphOf(s);
  if (!graph) return;
  const places = arranged(graph, s.kinds, s.doc?.graph.graphs);
  const ops: Op[] = Object.entries(places).map(([id, at]) => ({ op: "move", id, at }));
  if (ops.length) void op({ op: "batch", ops }).then(() => setTimeout(() => window.dispatchEvent(new Event("studio:fit")), 60));
}

export async function connect(source: string, target: string): Promise<boolean> {
  const s = get();
  if (!s.doc) return false;
  const done = await ask<{ delay: unknown }>("connect", { doc: s.doc.doc, source, target, inside: s.inside });
  if (done?.delay) toast(`${source} → ${target} goes back, so it takes effect a tick later`);
  return done !== null;
}

export function removeChosen(): void {
  const s = get();
  const ops: Op[] = s.edge ? [{ op: "disconnect", to: s.edge }] : s.selected.map((id) => ({ op: "remove", id }));
  if (ops.length === 0) return;
  set({ selected: [], edge: "" });
  void op(ops.length === 1 ? (ops[0] as Op) : { op: "batch", ops });
}

export function openInside(id: string): void {
  const s = get();
  const node = graphOf(s)?.nodes[id];
  if (node?.type !== "SubGraph") return;
  const name = String(node.params?.graph ?? "");
  if (s.doc?.graph.graphs?.[name]) set({ inside: name, through: flatId(s, id), selected: [], edge: "" });
}

function Flow() {
  const doc = useStudio((s) => s.doc);
  const inside = useStudio((s) => s.inside);
  const kinds = useStudio((s) => s.kinds);
  const chosen = useStudio((s) => s.selected);
  const chosenEdge = useStudio((s) => s.edge);
  const theme = useStudio((s) => s.theme);
  const code = useStudio((s) => s.code);
  const on = useStudio((s) => s.session?.doc === s.doc?.doc && s.session !== null);
  const flow = useReactFlow();
  const [nodes, setNodes] = useState<Node[]>([]);
  const [fit, setFit] = useState<Record<string, { ok: boolean; why: string; delay: boolean }> | null>(null);
  const from = useRef("");
  const graph = useMemo(() => graphOf({ ...get(), doc, inside }), [doc, inside]);
  const places = useMemo(() => {
    if (!graph) return {};
    const missing = Object.keys(graph.nodes).some((id) => !graph.layout?.[id]);
    return missing ? arranged(graph, kinds, doc?.graph.graphs) : (graph.layout ?? {});
  }, [graph, kinds, doc]);

  const cards = useMemo<Node[]>(() => {
    if (!graph) return [];
    const check = checkOf({ ...get(), doc, inside });
    const wired = new Map<string, string[]>();
    const feeding = new Map<string, string[]>();
    for (const edge of graph.edges) {
      const [node, port] = endsOf(edge.to);
      wired.set(node, [...(wired.get(node) ?? []), port]);
      const [source, output] = endsOf(edge.from);
      feeding.set(source, [...(feeding.get(source) ?? []), output]);
    }
    return Object.entries(graph.nodes).map(([id, node]) => {
      const kind = kinds[node.type];
      const { inputs, outputs } = portsOf(node, kinds, doc?.graph.graphs);
      const into = wired.get(id) ?? [];
      const shown = inputs.filter((port) => !port.optional || into.includes(port.name) || inputs.length <= 4 || id === chosen[0]);
      const data: CardData = {
        id,
        type: node.type,
        category: kind?.category ?? "",
        summary: kind?.summary ?? "",
        inputs: shown,
        outputs,
        wired: into,
        feeds: feeding.get(id) ?? [],
        params: Object.entries(node.params ?? {}),
        findings: check?.findings.filter((f) => f.node === id || f.node.startsWith(`${id}__`) || f.nodes.includes(id)) ?? [],
      };
      const [x, y] = places[id] ?? [0, 0];
      return { id, type: "card", position: { x, y }, data, width: WIDTH, initialHeight: heightOf(shown.length, outputs.length), selected: chosen.includes(id), ariaLabel: `${id}, ${node.type}`, domAttributes: { "aria-roledescription": "node" } } as Node;
    });
  }, [graph, kinds, doc, inside, places, chosen]);

  useEffect(() => {
    setNodes((before) => {
      const old = new Map(before.map((n) => [n.id, n]));
      return cards.map((card) => {
        const was = old.get(card.id);
        return was?.dragging ? { ...card, position: was.position, measured: was.measured, dragging: true } : { ...card, measured: was?.measured };
      });
    });
  }, [cards]);

  const edges = useMemo<Edge[]>(() => {
    if (!graph) return [];
    const check = checkOf({ ...get(), doc, inside });
    const floor = Math.max(0, ...Object.entries(graph.nodes).map(([id, node]) => {
      const { inputs, outputs } = portsOf(node, kinds, doc?.graph.graphs);
      return (places[id]?.[1] ?? 0) + heightOf(inputs.length, outputs.length) + 10;
    }));
    let lane = 0;
    return graph.edges.map((edge) => {
      const [source, sourceHandle] = endsOf(edge.from);
      const [target, targetHandle] = endsOf(edge.to);
      const node = graph.nodes[source];
      const known = check?.outputs[edge.from]?.type.kind ?? (node ? portsOf(node, kinds, doc?.graph.graphs).outputs.find((p) => p.name === sourceHandle)?.type.kind : "any") ?? "any";
      const data: WireData = { from: edge.from, to: edge.to, colour: colourOf(known), delay: edge.delay ?? null, floor, lane: edge.delay ? lane++ : 0 };
      return { id: edge.to, type: "wire", source, sourceHandle, target, targetHandle, data, selected: chosenEdge === edge.to, ariaLabel: `${edge.from} to ${edge.to}${edge.delay ? ", a tick later" : ""}` };
    });
  }, [graph, doc, inside, kinds, places, chosenEdge]);

  const onNodesChange = useCallback((changes: NodeChange[]) => {
    setNodes((now) => applyNodeChanges(changes.filter((c) => c.type !== "remove"), now));
    const byKey: [string, { x: number; y: number }][] = [];
    for (const c of changes) if (c.type === "position" && !c.dragging && c.position && !dragged.current) byKey.push([c.id, c.position]);
    if (byKey.length) moveSoon(byKey);
    const picks = changes.filter((c) => c.type === "select");
    if (picks.length) {
      const now = new Set(get().selected);
      for (const c of picks) if (c.type === "select") c.selected ? now.add(c.id) : now.delete(c.id);
      const list = [...now];
      set({ selected: list, ...(list.length ? { edge: "" } : {}) });
    }
  }, []);

  const dragged = useRef(false);
  const waiting = useRef(new Map<string, [number, number]>());
  const timer = useRef(0);
  const moveSoon = (moves: [string, { x: number; y: number }][]) => {
    for (const [id, at] of moves) waiting.current.set(id, [Math.round(at.x), Math.round(at.y)]);
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => {
      const ops: Op[] = [...waiting.current].map(([id, at]) => ({ op: "move", id, at }));
      waiting.current.clear();
      if (ops.length) void op({ op: "batch", ops });
    }, 250);
  };

  // Only what is on the screen is looked at.
  const watch = useCallback(() => {
    const s = get();
    const here = graphOf(s);
    if (!here || s.view !== "canvas") return;
    const { x, y, zoom } = flow.getViewport();
    const box = document.querySelector(".react-flow")?.getBoundingClientRect();
    if (!box) return;
    const left = -x / zoom;
    const top = -y / zoom;
    const there = new Set(flow.getNodes().filter((n) => n.position.x + WIDTH > left && n.position.x < left + box.width / zoom && n.position.y + 300 > top && n.position.y < top + box.height / zoom).map((n) => n.id));
    const ends = new Set<string>();
    if (zoom > 0.38) for (const edge of here.edges) {
      const [a, port] = endsOf(edge.from);
      if (there.has(a) || there.has(endsOf(edge.to)[0])) ends.add(`${flatId(s, a)}.${port}`);
    }
    const picked = here.edges.find((e) => e.to === s.edge);
    if (picked) {
      const [a, port] = endsOf(picked.from);
      ends.add(`${flatId(s, a)}.${port}`);
    }
    void ask("watch", { ends: [...ends] });
  }, [flow]);
  useEffect(() => {
    const soon = setTimeout(watch, 200);
    return () => clearTimeout(soon);
  }, [watch, graph, on, chosenEdge, inside]);
  useEffect(() => () => void ask("watch", { ends: [] }), []);

  useEffect(() => {
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const again = () => void flow.fitView({ padding: 0.12, duration: still ? 0 : 200, maxZoom: 1 });
    window.addEventListener("studio:fit", again);
    return () => window.removeEventListener("studio:fit", again);
  }, [flow]);
  useEffect(() => {
    const stage = document.querySelector<HTMLElement>(".stage");
    delete stage?.dataset.placed;
    const placed = () => {
      if (stage) stage.dataset.placed = "";
    };
    const soon = setTimeout(() => void flow.fitView({ padding: 0.12, maxZoom: 1 }).then(placed), 120);
    return () => clearTimeout(soon);
  }, [doc?.doc, inside, flow, code]);

  // Back from a dialog the keyboard should be where the node is.
  useEffect(() => {
    if (chosen.length !== 1) return;
    const soon = setTimeout(() => {
      if (document.activeElement?.closest("input,select,textarea,dialog")) return;
      document.querySelector<HTMLElement>(`.react-flow__node[data-id="${chosen[0]}"]`)?.focus({ preventScroll: true });
    }, 60);
    return () => clearTimeout(soon);
  }, [chosen, nodes.length]);

  if (!graph) return null;
  const shadedNodes = fit ? nodes.map((n) => ({ ...n, className: Object.entries(fit).some(([end, f]) => f.ok && endsOf(end)[0] === n.id) ? "fits" : n.id === from.current ? "" : "fits-not" })) : nodes;
  return (
    <ReactFlow
      nodes={shadedNodes}
      edges={edges}
      nodeTypes={nodeTypes}
      edgeTypes={edgeTypes}
      onNodesChange={onNodesChange}
      onNodeDragStart={() => {
        dragged.current = true;
      }}
      onNodeDragStop={(_, __, moved) => {
        moveSoon(moved.map((n) => [n.id, n.position]));
        setTimeout(() => {
          dragged.current = false;
        }, 0);
      }}
      onConnectStart={(_, { nodeId, handleId, handleType }) => {
        if (handleType !== "source" || !nodeId) return;
        from.current = nodeId;
        void ask<NonNullable<typeof fit>>("fits", { doc: doc?.doc, source: `${nodeId}.${handleId}`, inside }).then(setFit);
      }}
      onConnectEnd={() => {
        setFit(null);
        from.current = "";
      }}
      onConnect={(c: Connection) => void connect(`${c.source}.${c.sourceHandle}`, `${c.target}.${c.targetHandle}`)}
      onEdgeClick={(_, edge) => set({ edge: edge.id, selected: [] })}
      onEdgesChange={(changes) => {
        for (const c of changes) if (c.type === "select" && c.selected) set({ edge: c.id, selected: [] });
      }}
      onPaneClick={() => set({ selected: [], edge: "" })}
      onNodeDoubleClick={(_, node) => openInside(node.id)}
      onMoveStart={() => document.querySelector(".stage")?.classList.add("moving")}
      onMoveEnd={() => {
        document.querySelector(".stage")?.classList.remove("moving");
        watch();
      }}
      onDragOver={(e) => e.preventDefault()}
      onDrop={(e) => {
        const type = e.dataTransfer.getData("text/surefoot-node");
        const at = flow.screenToFlowPosition({ x: e.clientX, y: e.clientY });
        if (type) void addNode(type, [Math.round(at.x), Math.round(at.y)]);
      }}
      colorMode={theme}
      deleteKeyCode={null}
      minZoom={0.1}
      maxZoom={2.5}
      fitView
      fitViewOptions={{ padding: 0.12, maxZoom: 1 }}
      onlyRenderVisibleElements={nodes.length > 60}
      multiSelectionKeyCode={["Shift", "Meta", "Control"]}
      aria-label="canvas"
      proOptions={{ hideAttribution: false }}
    >
      <Background variant={BackgroundVariant.Dots} gap={22} size={1.4} color="var(--dot)" />
      <MiniMap pannable zoomable style={{ width: 150, height: 96 }} ariaLabel="map of the whole graph" nodeColor={(n) => CATEGORY[(n.data as CardData).category] ?? "var(--c-any)"} maskColor="var(--mask)" />
      <Controls showInteractive={false} />
      {Object.keys(graph.nodes).length === 0 && (
        <div className="empty">
          <h2>An empty canvas</h2>
          <p>
            Press <kbd>A</kbd> to add a node, <kbd>C</kbd> to connect the chosen one, <kbd>?</kbd> for all keys.
          </p>
        </div>
      )}
    </ReactFlow>
  );
}

export function Canvas() {
  return (
    <ReactFlowProvider>
      <Flow />
    </ReactFlowProvider>
  );
}
