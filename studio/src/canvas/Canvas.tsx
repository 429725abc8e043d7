import {
  applyNodeChanges,
  Background,
  BackgroundVariant,
  type Connection,
  Controls,
  type Edge,
  type EdgeChange,
  type FinalConnectionState,
  getViewportForBounds,
  MiniMap,
  type Node,
  type NodeChange,
  type OnConnectStartParams,
  Position,
  ReactFlow,
  ReactFlowProvider,
  SelectionMode,
  useReactFlow,
  useStore,
  type Viewport,
  ViewportPortal,
} from "@xyflow/react";
import { memo, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { CATEGORY, colourOf, originOf, portsOf } from "../ports";
import { ask, checkOf, FRAME, flatId, get, graphOf, op, set, toast, useStudio } from "../store";
import type { GraphEdge, Op } from "../types";
import { endsOf } from "../words";
import { arranged, cardHeight, edgeOf, HANDLE, heightOf, REROUTE, rowOf, WIDTH } from "./layout";
import { CommentFrame, commentNodes, framesMoved, Reroute } from "./marks";
import { type CardData, NodeCard, TROUBLE } from "./NodeCard";
import { freeName } from "./clipboard";
import { type Box, type Ends, routes } from "./route";
import { FarLine, Wire, type WireData } from "./Wire";

export type Fits = Record<string, { ok: boolean; why: string; delay: boolean; replaces: string }>;

const nodeTypes = { card: NodeCard, comment: CommentFrame, reroute: Reroute };
const edgeTypes = { wire: Wire };
const NO_EDGES: Edge[] = [];
// Zoom below which a card shows only its name: port names are too small to read there.
const FAR = 0.35;
/** Above this number of nodes only visible elements are rendered, and edges of a zoomed-out graph cannot be selected. */
const MANY = 60;
/** Up to this number of nodes all ports are shown and a zoomed-out card keeps them. */
const SMALL = 12;
/** Above this number of nodes edges are curves: finding paths around the cards would take too long. */
const ROUTED = 80;
/** Space around what is fitted to the canvas. */
const LEAST_ZOOM = 0.1;
const PADDING = "14px";
/** On a phone a loop opens at this zoom, at which it can be read, and the first nodes are shown. */
const LEAST_ZOOM_ON_A_PHONE = 0.56;
const PHONE = 560;
const KEYS = ["Shift", "Meta", "Control"];
const PRO = { hideAttribution: false };
const MAP = { width: 150, height: 96 };
const mapColour = (n: Node): string => CATEGORY[(n.data as CardData).category] ?? "var(--c-any)";

// Text of the cards in pixels, the least that it has on the screen, and how much larger it may become within its rows.
const CARD_TEXT = 13.5;
const LEAST_TEXT = 11.05;
const LARGEST_SCALE = 1.7;
/** The same of messages and parameters, which have lines of a fixed height (theme.css). */
const LARGEST_SMALL = 1.4;

/** Return the scale of the text on the cards at a zoom: it shrinks less than the cards, to stay readable. In few steps, each of
 * which lays out all cards. */
const textScale = (zoom: number): number => Math.min(LARGEST_SCALE, Math.max(1, Math.ceil((10 * LEAST_TEXT) / (CARD_TEXT * zoom) - 0.001) / 10));

const Around = memo(function Around({ far, map, heavy }: { far: boolean; map: boolean; heavy: boolean }) {
  return (
    <>
      {!far && <Background variant={BackgroundVariant.Dots} gap={22} size={1.4} color="var(--dot)" />}
      {map && <MiniMap pannable zoomable className={heavy ? "heavy" : ""} style={MAP} ariaLabel="map of the whole graph" nodeColor={mapColour} maskColor="var(--mask)" />}
      {/* Where the last row of a graph leaves room most often. */}
      <Controls showInteractive={false} position="bottom-right" orientation="horizontal" className={map ? "beside-map" : ""} />
    </>
  );
});

/** All edges of a large graph in one SVG element below the cards. */
function Lines({ nodes, edges }: { nodes: Node[]; edges: Edge[] }) {
  const ends = useMemo(() => {
    const rows = new Map<string, number>();
    for (const { id, data } of nodes) {
      const { inputs, outputs } = data as CardData;
      inputs.forEach((port, n) => rows.set(`i${id}.${port.name}`, rowOf(n)));
      outputs.forEach((port, n) => rows.set(`o${id}.${port.name}`, rowOf(inputs.length + n)));
    }
    return rows;
  }, [nodes]);
  const at = new Map(nodes.map((n) => [n.id, n.position]));
  return (
    <ViewportPortal>
      <svg className="lines" aria-hidden="true">
        {edges.map((edge) => {
          const data = edge.data as WireData;
          const from = at.get(edge.source);
          const to = at.get(edge.target);
          if (!from || !to) return null;
          return <FarLine key={edge.id} x1={from.x + edgeOf("out")} y1={from.y + (ends.get(`o${data.from}`) ?? 0)} x2={to.x + edgeOf("in")} y2={to.y + (ends.get(`i${data.to}`) ?? 0)} data={data} chosen={edge.selected === true} />;
        })}
      </svg>
    </ViewportPortal>
  );
}

/** Add a node, and connect it to the output that a wire was drawn from. */
export async function addFrom(type: string, at: [number, number] | null, source: string): Promise<void> {
  const id = await addNode(type, at ?? undefined);
  if (!id || !source) return;
  const fits = await ask<Fits>("fits", { doc: get().doc?.doc, source, inside: get().inside });
  const ends = Object.entries(fits ?? {}).filter(([end, fit]) => endsOf(end)[0] === id && fit.ok).map(([end]) => end);
  // An input of the same name, if there is one; else the first that fits.
  const best = ends.find((end) => endsOf(end)[1] === endsOf(source)[1]) ?? ends[0];
  if (best) await connect(source, best);
}

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

/** Add a saved group as a node. */
export async function addSaved(name: string, at?: [number, number]): Promise<void> {
  const s = get();
  const graph = graphOf(s);
  if (!graph || !s.doc) return;
  const id = freeName(name, graph);
  if (await ask("add_saved", { doc: s.doc.doc, name, id, at: at ?? nextPlace(), inside: s.inside })) set({ selected: [id], edge: "" });
}

/** Lead an edge through a new reroute at a place of the screen. */
export async function reroute(edge: string, place: { x: number; y: number }): Promise<void> {
  const graph = graphOf(get());
  const old = graph?.edges.find((e) => e.to === edge);
  if (!graph || !old) return;
  const id = freeName("via", graph);
  const done = await op({
    op: "batch",
    ops: [
      { op: "disconnect", to: old.to },
      { op: "add", id, type: "Reroute", at: [Math.round(place.x - REROUTE / 2), Math.round(place.y - REROUTE / 2)] },
      { op: "connect", from: old.from, to: `${id}.value` },
      { op: "connect", from: `${id}.value`, to: old.to, ...(old.delay ? { delay: old.delay } : {}) },
    ],
  });
  if (done) set({ selected: [id], edge: "" });
}

/** Mute or bypass the selected nodes, or activate them again if all of them are. */
export function setMode(mode: "mute" | "bypass"): void {
  const graph = graphOf(get());
  const ids = get().selected.filter((id) => graph?.nodes[id]);
  const off = ids.every((id) => graph?.nodes[id]?.mode === mode);
  if (ids.length) void op({ op: "batch", ops: ids.map((id) => ({ op: "mode", id, mode: off ? "" : mode })) });
}

const SHORT: Record<string, string> = { PPOAgentNode: "agent", PPOTrainerNode: "trainer", Environment: "env", OR: "either", ActionProcessor: "action" };

/** Return a free place: right of the last node, or in a new row after four. */
function nextPlace(): [number, number] {
  const graph = graphOf(get());
  const places = Object.values(graph?.layout ?? {});
  if (places.length === 0) return [0, 0];
  const bottom = Math.max(...places.map(([, y]) => y));
  const row = places.filter(([, y]) => y > bottom - 200).map(([x]) => x);
  const left = Math.min(...places.map(([x]) => x));
  const next = Math.max(...row) + WIDTH + 76;
  return next - left > 3 * (WIDTH + 76) ? [left, bottom + 420] : [next, bottom];
}

/** Return the size of the canvas in pixels. */
function room(): { width: number; height: number } | undefined {
  const box = document.querySelector(".stage")?.getBoundingClientRect();
  return box && box.width > 100 ? { width: box.width - 80, height: box.height - 48 } : undefined;
}

export function tidy(): void {
  const s = get();
  const graph = graphOf(s);
  if (!graph) return;
  const places = arranged(graph, s.kinds, s.doc?.graph.graphs, room());
  const ops: Op[] = Object.entries(places).map(([id, at]) => ({ op: "move", id, at }));
  if (ops.length) void op({ op: "batch", ops }).then(() => setTimeout(() => window.dispatchEvent(new Event("studio:fit")), 60));
}

export async function connect(source: string, target: string): Promise<boolean> {
  const s = get();
  if (!s.doc) return false;
  const done = await ask<{ delay: unknown }>("connect", { doc: s.doc.doc, source, target, inside: s.inside });
  if (done?.delay) toast(`${source} → ${target} closes a cycle, so its value arrives one tick later`);
  return done !== null;
}

export function removeSelected(): void {
  const s = get();
  const ops: Op[] = s.edge ? [{ op: "disconnect", to: s.edge }] : s.selected.map((id) => (id.startsWith(FRAME) ? { op: "frame", id: id.slice(FRAME.length), frame: null } : { op: "remove", id }));
  if (ops.length === 0) return;
  set({ selected: [], edge: "" });
  void op(ops.length === 1 ? (ops[0] as Op) : { op: "batch", ops });
}

export function openInside(id: string): void {
  const s = get();
  const node = graphOf(s)?.nodes[id];
  if (node?.type !== "SubGraph") return;
  const name = String(node.params?.graph ?? "");
  if (s.doc?.graph.graphs?.[name]) set({ inside: name, through: flatId(s, id), trail: [...s.trail, { inside: s.inside, through: s.through }], selected: [], edge: "" });
}

/** Connect to the input of a node that a wire was dropped on: the one of that name, or the only one that fits. */
async function dropOn(source: string, node: string): Promise<void> {
  const fits = await ask<Fits>("fits", { doc: get().doc?.doc, source, inside: get().inside });
  const all = Object.entries(fits ?? {}).filter(([end]) => endsOf(end)[0] === node);
  const ends = all.filter(([, fit]) => fit.ok);
  const free = ends.filter(([, fit]) => !fit.replaces);
  const best = free.find(([end]) => endsOf(end)[1] === endsOf(source)[1]) ?? (free.length === 1 ? free[0] : ends.length === 1 ? ends[0] : undefined);
  if (best) await connect(source, best[0]);
  else if (ends.length === 0) toast(all[0]?.[1].why ?? `${node} has no inputs`, "error");
  else set({ dialog: "connect", dialogNode: endsOf(source)[0], dialogFrom: source });
}

function openMenu(e: React.MouseEvent | MouseEvent, node: string, edge: string, flow: { screenToFlowPosition: (p: { x: number; y: number }) => { x: number; y: number } }): void {
  e.preventDefault();
  if (node && !get().selected.includes(node)) set({ selected: [node], edge: "" });
  if (edge) set({ edge, selected: [] });
  set({ menu: { x: e.clientX, y: e.clientY, node, edge, at: flow.screenToFlowPosition({ x: e.clientX, y: e.clientY }) } });
}

const tall = ({ inputs, outputs, params, trouble }: CardData): number => cardHeight(inputs.length, outputs.length, params.length) + trouble;

/** Return the paths of all edges around the cards. */
function pathsOf(cards: Node[], edges: GraphEdge[]): ReturnType<typeof routes> {
  const boxes: Box[] = [];
  const ends = new Map<string, [number, number]>();
  for (const { id, position, data } of cards) {
    const { inputs, outputs, type } = data as CardData;
    // Somebody led the edge there by hand: its two halves are plain curves.
    if (type === "Reroute") continue;
    boxes.push({ id, x: position.x, y: position.y, width: WIDTH, height: tall(data as CardData) });
    inputs.forEach((port, n) => ends.set(`i${id}.${port.name}`, [position.x + edgeOf("in"), position.y + rowOf(n)]));
    outputs.forEach((port, n) => ends.set(`o${id}.${port.name}`, [position.x + edgeOf("out"), position.y + rowOf(inputs.length + n)]));
  }
  const list: Ends[] = [];
  for (const edge of edges) {
    const [a, b] = [ends.get(`o${edge.from}`), ends.get(`i${edge.to}`)];
    if (a && b) list.push({ id: edge.to, source: endsOf(edge.from)[0], target: endsOf(edge.to)[0], x1: a[0], y1: a[1], x2: b[0], y2: b[1], labelled: Boolean(edge.delay) });
  }
  return routes(list, boxes);
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
  const panels = useStudio((s) => s.panels);
  const flow = useReactFlow();
  const count = useStudio((s) => Object.keys(graphOf(s)?.nodes ?? {}).length);
  const small = useStore((s) => s.transform[2] < FAR) && count > SMALL;
  // A large graph changes its cards after a zoom, not within it: hundreds of cards would stop the motion.
  const [zooming, setZooming] = useState(false);
  const stable = useRef(small);
  if (!zooming) stable.current = small;
  const far = count > MANY ? stable.current : small;
  const scale = useStore((s) => textScale(s.transform[2]));
  const shownScale = useRef(scale);
  if (!zooming || count <= MANY) shownScale.current = scale;
  const style = useMemo(() => ({ "--read": shownScale.current }) as React.CSSProperties, [shownScale.current]);
  const [nodes, setNodes] = useState<Node[]>([]);
  const [fit, setFit] = useState<Fits | null>(null);
  const from = useRef("");
  const graph = useMemo(() => graphOf({ ...get(), doc, inside }), [doc, inside]);
  const places = useMemo(() => {
    if (!graph) return {};
    const missing = Object.keys(graph.nodes).some((id) => !graph.layout?.[id]);
    return missing ? arranged(graph, kinds, doc?.graph.graphs, room()) : (graph.layout ?? {});
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
      // While a wire is drawn, every compatible input must be visible as a drop target.
      const shown = inputs.filter((port) => count <= SMALL || !port.optional || into.includes(port.name) || inputs.length <= 4 || id === chosen[0] || fit?.[`${id}.${port.name}`]?.ok);
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
        far,
        height: heightOf(shown.length, outputs.length),
        mode: node.mode ?? "",
        findings: check?.findings.filter((f) => f.node === id || f.node.startsWith(`${id}__`) || f.nodes.includes(id)) ?? [],
        trouble: 0,
      };
      // A line takes about 28 characters, fewer in larger text.
      const message = data.findings.find((f) => f.level === "error")?.message ?? "";
      data.trouble = message ? 11 + 17 * LARGEST_SMALL * Math.ceil((Math.min(message.length, TROUBLE) / 28) * LARGEST_SMALL) : 0;
      const [x, y] = places[id] ?? [0, 0];
      if (node.type === "Reroute") {
        const handle = (kind: "target" | "source") => ({ id: "value", type: kind, position: kind === "target" ? Position.Left : Position.Right, x: kind === "target" ? 0 : REROUTE - 1, y: REROUTE / 2, width: 1, height: 1 });
        return { id, type: "reroute", position: { x, y }, data: { ...data, height: REROUTE }, handles: [handle("target"), handle("source")], width: REROUTE, initialHeight: REROUTE, selected: chosen.includes(id), ariaLabel: `${id}, reroute` } as Node;
      }
      // Handle positions are computed, not measured: a zoomed-out card has no handles to measure.
      const handles = [
        ...shown.map((port, n) => ({ id: port.name, type: "target", position: Position.Left, x: edgeOf("in"), y: rowOf(n) - HANDLE / 2, width: HANDLE, height: HANDLE })),
        ...outputs.map((port, n) => ({ id: port.name, type: "source", position: Position.Right, x: edgeOf("out") - HANDLE, y: rowOf(shown.length + n) - HANDLE / 2, width: HANDLE, height: HANDLE })),
      ];
      return { id, type: "card", position: { x, y }, data, handles, width: WIDTH, initialHeight: data.height, selected: chosen.includes(id), ariaLabel: `${id}, ${node.type}`, domAttributes: { "aria-roledescription": "node" } } as Node;
    });
  }, [graph, kinds, doc, inside, places, chosen, far, fit, count]);

  const comments = useMemo(() => commentNodes(graph, chosen), [graph, chosen]);
  useEffect(() => {
    setNodes((before) => {
      const old = new Map(before.map((n) => [n.id, n]));
      return [...comments, ...cards].map((card) => {
        const was = old.get(card.id);
        // React Flow does not measure cards outside the viewport, but fitView needs their sizes.
        const measured = was?.measured ?? { width: card.width ?? WIDTH, height: (card.data as CardData).height };
        return was?.dragging ? { ...card, position: was.position, measured, dragging: true } : { ...card, measured };
      });
    });
  }, [cards, comments]);

  const drawn = useRef<Box[]>([]);
  const edges = useMemo<Edge[]>(() => {
    if (!graph) return [];
    const check = checkOf({ ...get(), doc, inside });
    const paths = count <= ROUTED ? pathsOf(cards, graph.edges) : null;
    drawn.current = [
      ...cards.map(({ id, position, data }) => ({ id, ...position, width: WIDTH, height: tall(data as CardData) })),
      ...Object.entries(graph.frames ?? {}).map(([id, { at, size }]) => ({ id, x: at[0], y: at[1], width: size[0], height: size[1] })),
      ...[...(paths?.values() ?? [])].flatMap(({ id, points }) => points.map(([x, y]) => ({ id, x, y, width: 0, height: 0 }))),
    ];
    return graph.edges.map((edge) => {
      const [source, sourceHandle] = endsOf(edge.from);
      const [target, targetHandle] = endsOf(edge.to);
      const origin = originOf(graph, edge.from);
      const node = graph.nodes[source];
      const known = check?.outputs[origin]?.type.kind ?? (node ? portsOf(node, kinds, doc?.graph.graphs).outputs.find((p) => p.name === sourceHandle)?.type.kind : "any") ?? "any";
      const data: WireData = { from: edge.from, origin, to: edge.to, colour: colourOf(known), delay: edge.delay ?? null, route: paths?.get(edge.to) ?? null };
      return { id: edge.to, type: "wire", source, sourceHandle, target, targetHandle, data, selected: chosenEdge === edge.to, ariaLabel: `${edge.from} to ${edge.to}${edge.delay ? ", one tick later" : ""}` };
    });
  }, [graph, doc, inside, kinds, cards, chosenEdge, count]);

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
  const boxing = useRef(false);
  const waiting = useRef(new Map<string, [number, number]>());
  const timer = useRef(0);
  const moveSoon = (moves: [string, { x: number; y: number }][]) => {
    for (const [id, at] of moves) waiting.current.set(id, [Math.round(at.x), Math.round(at.y)]);
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => {
      const moves = new Map(waiting.current);
      const ops: Op[] = [...framesMoved(graphOf(get()), moves), ...[...moves].filter(([id]) => !id.startsWith(FRAME)).map(([id, at]) => ({ op: "move", id, at }))];
      waiting.current.clear();
      if (ops.length) void op({ op: "batch", ops });
    }, 250);
  };

  // Watch only the outputs in the viewport: the server summarises every watched output several times per second.
  const watch = useCallback(() => {
    const s = get();
    const current = graphOf(s);
    if (!current || s.view !== "canvas") return;
    const { x, y, zoom } = flow.getViewport();
    const box = document.querySelector(".react-flow")?.getBoundingClientRect();
    if (!box) return;
    const left = -x / zoom;
    const top = -y / zoom;
    const visible = new Set(flow.getNodes().filter((n) => n.position.x + WIDTH > left && n.position.x < left + box.width / zoom && n.position.y + 300 > top && n.position.y < top + box.height / zoom).map((n) => n.id));
    const ends = new Set<string>();
    if (zoom > 0.38) for (const edge of current.edges) {
      const [a, port] = endsOf(originOf(current, edge.from));
      if (visible.has(a) || visible.has(endsOf(edge.to)[0])) ends.add(`${flatId(s, a)}.${port}`);
    }
    const picked = current.edges.find((e) => e.to === s.edge);
    if (picked) {
      const [a, port] = endsOf(originOf(current, picked.from));
      ends.add(`${flatId(s, a)}.${port}`);
    }
    void ask("watch", { ends: [...ends] });
  }, [flow]);
  useEffect(() => {
    const soon = setTimeout(watch, 200);
    return () => clearTimeout(soon);
  }, [watch, graph, on, chosenEdge, inside]);
  useEffect(() => () => void ask("watch", { ends: [] }), []);

  // The view follows the graph and the size of the canvas until a person moves it.
  const moved = useRef(false);
  const fittedView = useRef<Viewport>({ x: 0, y: 0, zoom: 1 });
  const fitAll = useCallback(
    async (duration: number): Promise<void> => {
      const stage = document.querySelector(".stage")?.getBoundingClientRect();
      const boxes = drawn.current;
      moved.current = false;
      if (!stage || stage.width < 10 || boxes.length === 0) return;
      const [left, top] = [Math.min(...boxes.map((b) => b.x)), Math.min(...boxes.map((b) => b.y))];
      const bounds = { x: left, y: top, width: Math.max(...boxes.map((b) => b.x + b.width)) - left, height: Math.max(...boxes.map((b) => b.y + b.height)) - top };
      const whole = getViewportForBounds(bounds, stage.width, stage.height, LEAST_ZOOM, 1, PADDING);
      const zoom = Math.max(whole.zoom, innerWidth <= PHONE ? LEAST_ZOOM_ON_A_PHONE : 0);
      fittedView.current = zoom > whole.zoom ? { x: 14 - left * zoom, y: 14 - top * zoom, zoom } : whole;
      await flow.setViewport(fittedView.current, { duration });
    },
    [flow],
  );
  useEffect(() => {
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const again = () => void fitAll(still ? 0 : 200);
    window.addEventListener("studio:fit", again);
    const stage = document.querySelector(".stage");
    let soon = 0;
    let size = "";
    const resized = new ResizeObserver(() => {
      const now = `${stage?.clientWidth} ${stage?.clientHeight}`;
      // Parts of a pixel count as a change, too: they must not cancel the fit to the change before them.
      if (now === size) return;
      clearTimeout(soon);
      if (size && !moved.current) soon = window.setTimeout(() => moved.current || void fitAll(0), 60);
      size = now;
    });
    if (stage) resized.observe(stage);
    return () => {
      clearTimeout(soon);
      resized.disconnect();
      window.removeEventListener("studio:fit", again);
    };
  }, [fitAll]);
  useEffect(() => {
    const stage = document.querySelector<HTMLElement>(".stage");
    delete stage?.dataset.placed;
    const placed = () => {
      if (stage) stage.dataset.placed = "";
    };
    const soon = setTimeout(() => void fitAll(0).then(placed), 120);
    return () => clearTimeout(soon);
  }, [doc?.doc, inside, fitAll, code, panels.left === 0, panels.right === 0]);

  // After a dialog has closed, return keyboard focus to the selected node.
  useEffect(() => {
    if (chosen.length !== 1) return;
    const soon = setTimeout(() => {
      if (document.activeElement?.closest("input,select,textarea,dialog")) return;
      document.querySelector<HTMLElement>(`.react-flow__node[data-id="${chosen[0]}"]`)?.focus({ preventScroll: true });
    }, 60);
    return () => clearTimeout(soon);
  }, [chosen, nodes.length]);

  // Created once: a handler with a new identity makes React Flow update all its components.
  const reactions = useMemo(
    () => ({
      onNodeDragStart: () => {
        dragged.current = true;
      },
      onNodeDragStop: (_: unknown, __: unknown, moved: Node[]) => {
        moveSoon(moved.map((n) => [n.id, n.position]));
        setTimeout(() => {
          dragged.current = false;
        }, 0);
      },
      onConnectStart: (_: unknown, { nodeId, handleId, handleType }: OnConnectStartParams) => {
        if (handleType !== "source" || !nodeId) return;
        from.current = nodeId;
        void ask<Fits>("fits", { doc: get().doc?.doc, source: `${nodeId}.${handleId}`, inside: get().inside }).then(setFit);
      },
      onConnectEnd: (e: MouseEvent | TouchEvent, end: FinalConnectionState) => {
        setFit(null);
        from.current = "";
        if (end.toHandle || !end.fromNode || end.fromHandle?.type !== "source") return;
        const source = `${end.fromNode.id}.${end.fromHandle.id}`;
        const point = "clientX" in e ? e : e.changedTouches[0];
        const target = (document.elementFromPoint(point?.clientX ?? 0, point?.clientY ?? 0) as HTMLElement | null)?.closest<HTMLElement>(".react-flow__node")?.dataset.id;
        if (target && target !== end.fromNode.id) void dropOn(source, target);
        else if (!target && point) {
          const at = flow.screenToFlowPosition({ x: point.clientX, y: point.clientY });
          set({ dialog: "add", dialogFrom: source, dialogAt: [Math.round(at.x), Math.round(at.y - 60)] });
        }
      },
      onSelectionStart: () => {
        boxing.current = true;
      },
      onSelectionEnd: () => {
        setTimeout(() => {
          boxing.current = false;
        }, 50);
      },
      onNodeContextMenu: (e: React.MouseEvent, node: Node) => openMenu(e, node.id, "", flow),
      onEdgeContextMenu: (e: React.MouseEvent, edge: Edge) => openMenu(e, "", edge.id, flow),
      onPaneContextMenu: (e: React.MouseEvent | MouseEvent) => openMenu(e, "", "", flow),
      onDoubleClick: (e: React.MouseEvent) => {
        if (!(e.target as HTMLElement).classList.contains("react-flow__pane")) return;
        const at = flow.screenToFlowPosition({ x: e.clientX, y: e.clientY });
        set({ dialog: "add", dialogFrom: "", dialogAt: [Math.round(at.x), Math.round(at.y)] });
      },
      onConnect: (c: Connection) => void connect(`${c.source}.${c.sourceHandle}`, `${c.target}.${c.targetHandle}`),
      onEdgeClick: (_: unknown, edge: Edge) => set({ edge: edge.id, selected: [] }),
      onEdgesChange: (changes: EdgeChange[]) => {
        // A box selects nodes; the edges inside it follow them.
        if (boxing.current) return;
        for (const c of changes) if (c.type === "select" && c.selected) set({ edge: c.id, selected: [] });
      },
      onPaneClick: () => set({ selected: [], edge: "", menu: null }),
      onNodeDoubleClick: (_: unknown, node: Node) => openInside(node.id),
      // A move by the map itself has no event; it stays visible then.
      onMoveStart: (e: unknown) => {
        if (!e) return;
        document.querySelector(".stage")?.classList.add("moving");
        setZooming(true);
      },
      // A click on the canvas is a move, too: to the same place.
      onMove: (e: unknown, { x, y, zoom }: Viewport) => {
        const { x: left, y: top, zoom: fitted } = fittedView.current;
        if (e && Math.abs(x - left) + Math.abs(y - top) + 1000 * Math.abs(zoom - fitted) > 1) moved.current = true;
      },
      onMoveEnd: () => {
        document.querySelector(".stage")?.classList.remove("moving");
        setZooming(false);
        watch();
      },
      onDragOver: (e: React.DragEvent) => e.preventDefault(),
      onDrop: (e: React.DragEvent) => {
        const type = e.dataTransfer.getData("text/surefoot-node");
        const at = flow.screenToFlowPosition({ x: e.clientX, y: e.clientY });
        const saved = e.dataTransfer.getData("text/surefoot-saved");
        if (type) void addNode(type, [Math.round(at.x), Math.round(at.y)]);
        if (saved) void addSaved(saved, [Math.round(at.x), Math.round(at.y)]);
      },
    }),
    [flow, watch],
  );

  if (!graph) return null;
  const many = nodes.length > MANY;
  const shadedNodes = fit ? nodes.map((n) => ({ ...n, className: Object.entries(fit).some(([end, f]) => f.ok && endsOf(end)[0] === n.id) ? "fits" : n.id === from.current ? "" : "fits-not" })) : nodes;
  return (
    <ReactFlow
      nodes={shadedNodes}
      edges={many && far ? NO_EDGES : edges}
      nodeTypes={nodeTypes}
      edgeTypes={edgeTypes}
      onNodesChange={onNodesChange}
      {...reactions}
      colorMode={theme}
      deleteKeyCode={null}
      elevateNodesOnSelect={false}
      minZoom={LEAST_ZOOM}
      maxZoom={2.5}
      onInit={() => void fitAll(0)}
      style={style}
      // Zoomed out, all cards are mounted: they are simple, and mounting those that come into view would stop the motion.
      onlyRenderVisibleElements={many && !far}
      multiSelectionKeyCode={KEYS}
      selectionMode={SelectionMode.Partial}
      zoomOnDoubleClick={false}
      connectionRadius={28}
      aria-label="canvas"
      proOptions={PRO}
    >
      <Around far={far} map={count > SMALL} heavy={count > MANY} />
      {many && far && <Lines nodes={cards} edges={edges} />}
      {Object.keys(graph.nodes).length === 0 && (
        <div className="empty">
          <h2>The canvas is empty</h2>
          <p>
            Double-click or press <kbd>A</kbd> to add a node. Drag from an output to connect it, or press <kbd>C</kbd>. <kbd>?</kbd> lists all keyboard shortcuts.
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
