// State of the page. The server owns documents and runs; this is a copy for display.

import { create } from "zustand";
import { socket } from "./socket";
import type { BreakCondition, Check, Doc, Finding, Frame, Graph, Hello, Kind, Op, Row, SavedNode, Status, Summary, Waiting } from "./types";

// Summaries per watched output, as many as the server stores (graph/run/live_values.py).
export const RING = 256;
// Rows of metrics; beyond that every second row is dropped, so that memory and drawing time stay bounded.
export const MOST_ROWS = 4000;

/** Begins the id of a comment among the selected nodes. */
export const FRAME = "frame:";

export type View = "gallery" | "canvas" | "runs";
export type Drawer = "run" | "world" | "doctor" | "history" | "";
export type Dialog = "" | "add" | "connect" | "keys" | "import" | "group" | "open" | "find" | "consent" | "trash" | "share" | "sweep" | "save node";

export interface Toast {
  id: number;
  text: string;
  kind: "note" | "error";
}

/** Sizes of the panels in pixels; 0 is collapsed. */
export interface Panels {
  left: number;
  right: number;
  bottom: number;
}

/** {node.parameter: values} that a sweep combines. */
export type Sweep = Record<string, unknown[]>;

export interface Menu {
  x: number;
  y: number;
  node: string;
  edge: string;
  /** The place on the canvas. */
  at: { x: number; y: number };
}

export interface State {
  online: boolean;
  /** Why the page is not connected, and what to do. */
  offline: string;
  /** Changes that wait for the connection. */
  unsent: number;
  panels: Panels;
  menu: Menu | null;
  /** Runs with other seeds that follow the active one. */
  seeds: number;
  /** The run that the page of runs shows; "compare" compares `compared`. */
  shownRun: string;
  compared: string[];
  /** Runs that one click started with several seeds or the values of a sweep. */
  batch: string[];
  batching: boolean;
  /** Runs that wait for the active one. */
  queue: Waiting[];
  savedNodes: SavedNode[];
  /** Metrics of the previous run, drawn behind those of the current one. */
  previous: Row[];
  tour: number;
  kinds: Record<string, Kind>;
  templates: Hello["templates"];
  metrics: Hello["metrics"];
  /** The metrics that are drawn. */
  panelNames: string[];
  documents: Hello["documents"];
  view: View;
  doc: Doc | null;
  inside: string;
  through: string;
  /** The graphs above the one that is shown, outermost first. */
  trail: { inside: string; through: string }[];
  selected: string[];
  edge: string;
  drawer: Drawer;
  dialog: Dialog;
  dialogNode: string;
  /** Where the node of the add dialog is placed, and the output that it is connected to. */
  dialogAt: [number, number] | null;
  dialogFrom: string;
  /** Code that waits for consent: [node, source], and whether the run starts paused. */
  consent: { code: [string, string][]; paused: boolean; sweep?: Sweep } | null;
  code: boolean;
  theme: "dark" | "light";
  toasts: Toast[];
  session: Status | null;
  rows: Row[];
  findings: Finding[];
  values: Record<string, Summary>;
  rings: Record<string, Summary[]>;
  shares: Record<string, number>;
  frames: Frame[];
  breaks: BreakCondition[];
  pace: number;
}

/** Panels as the user left them; narrow windows begin without those that would leave no canvas. */
function storedPanels(): Panels {
  const wide = innerWidth;
  const first: Panels = { left: wide < 1100 ? 0 : 172, right: wide < 900 ? 0 : 276, bottom: Math.min(236, Math.max(150, Math.round(0.2625 * innerHeight))) };
  try {
    return { ...first, ...(JSON.parse(localStorage.getItem(wide < 1100 ? "panels-narrow" : "panels") ?? "{}") as Partial<Panels>) };
  } catch {
    return first;
  }
}

export function setPanels(change: Partial<Panels>): void {
  const panels = { ...get().panels, ...change };
  localStorage.setItem(innerWidth < 1100 ? "panels-narrow" : "panels", JSON.stringify(panels));
  set({ panels });
}

const wanted = () => new URLSearchParams(location.hash.slice(1));

export const useStudio = create<State>(() => ({
  online: false,
  offline: "",
  unsent: 0,
  panels: storedPanels(),
  menu: null,
  seeds: 1,
  shownRun: wanted().get("run") ?? "",
  compared: [],
  batch: [],
  batching: false,
  queue: [],
  savedNodes: [],
  previous: [],
  tour: -1,
  kinds: {},
  templates: [],
  metrics: {},
  panelNames: [],
  documents: [],
  view: (wanted().get("view") as View | null) ?? "gallery",
  doc: null,
  inside: "",
  through: "",
  trail: [],
  selected: [],
  edge: "",
  drawer: (localStorage.getItem("drawer") as Drawer | null) ?? "",
  dialog: "",
  dialogNode: "",
  dialogAt: null,
  dialogFrom: "",
  consent: null,
  code: false,
  theme: (localStorage.getItem("theme") as "dark" | "light" | null) ?? "dark",
  toasts: [],
  session: null,
  rows: [],
  findings: [],
  values: {},
  rings: {},
  shares: {},
  frames: [],
  breaks: [],
  pace: 0,
}));

export const get = useStudio.getState;
export const set = useStudio.setState;

let toastNumber = 1;

export function toast(text: string, kind: Toast["kind"] = "note"): void {
  const id = toastNumber++;
  if (get().toasts.some((t) => t.text === text)) return;
  set((s) => ({ toasts: [...s.toasts.slice(-3), { id, text, kind }] }));
  setTimeout(() => set((s) => ({ toasts: s.toasts.filter((t) => t.id !== id) })), kind === "error" ? 9000 : 4000);
}

/** Send a request; show the error and return null if the server refuses it. */
export async function ask<T>(verb: string, args: Record<string, unknown> = {}): Promise<T | null> {
  try {
    return await socket.ask<T>(verb, args);
  } catch (why) {
    toast((why as Error).message, "error");
    return null;
  }
}

export function graphOf(s: State): Graph | null {
  if (!s.doc) return null;
  return s.inside ? (s.doc.graph.graphs?.[s.inside] ?? null) : s.doc.graph;
}

export function checkOf(s: State): Check | null {
  if (!s.doc) return null;
  return s.inside ? (s.doc.inside[s.inside] ?? null) : s.doc.check;
}

/** Return the id of a node in the running engine, which flattens sub-graphs. */
export function flatId(s: Pick<State, "through">, id: string): string {
  return s.through ? `${s.through}__${id}` : id;
}

/** Return whether the current run belongs to the open document. */
export function running(s: State): boolean {
  return !!s.session && s.session.doc === s.doc?.doc && ["running", "paused", "starting"].includes(s.session.state);
}

/** Write what is shown into the address: a reload, a link and the back button show it again. */
export function remember(): void {
  const s = get();
  const words = new URLSearchParams({ view: s.view });
  if (s.doc) words.set("doc", s.doc.doc);
  if (s.view === "canvas" && s.selected.length === 1) words.set("node", s.selected[0] as string);
  if (s.view === "runs" && s.shownRun) words.set("run", s.shownRun);
  const before = wanted();
  if (`#${words}` === location.hash) return;
  // Another view, graph or run is a step back; another node is not.
  const step = ["view", "doc", "run"].some((name) => before.get(name) !== words.get(name));
  history[step ? "pushState" : "replaceState"](null, "", `#${words}`);
}

/** Show what the address names, after a step back or forward or a changed link. */
async function follow(): Promise<void> {
  const words = wanted();
  const view = (words.get("view") as View | null) ?? "gallery";
  const doc = words.get("doc");
  if (view === "canvas" && doc && doc !== get().doc?.doc) {
    const opened = await ask<Doc>("open", { doc });
    if (!opened) return;
    replaceDoc(opened);
  }
  const node = words.get("node") ?? "";
  set({ view: view === "canvas" && !get().doc ? "gallery" : view, shownRun: words.get("run") ?? "", selected: node && graphOf(get())?.nodes[node] ? [node] : [], edge: "", dialog: "" });
}

export function openDrawer(drawer: Drawer): void {
  localStorage.setItem("drawer", drawer);
  set({ drawer });
}

export function show(view: View): void {
  set({ view });
  remember();
}

function replaceDoc(doc: Doc): void {
  const inside = get().inside && doc.graph.graphs?.[get().inside] ? get().inside : "";
  const nodes = (inside ? doc.graph.graphs?.[inside] : doc.graph)?.nodes ?? {};
  // A node that is gone must not stay selected beside the next one.
  const frames = (inside ? doc.graph.graphs?.[inside] : doc.graph)?.frames ?? {};
  const exists = (id: string) => id in nodes || id.slice(FRAME.length) in frames;
  const selected = get().selected.every(exists) ? get().selected : get().selected.filter(exists);
  set(inside ? { doc, selected } : { doc, selected, inside: "", through: "", trail: [] });
}

/** Leave sub-graphs up to the given position of the trail. */
export function leave(to: number): void {
  const { trail } = get();
  const target = trail[to];
  if (target) set({ ...target, trail: trail.slice(0, to), selected: [], edge: "" });
}

export function showRun(run: string): void {
  set({ shownRun: run });
  remember();
}

export async function openDoc(name: string): Promise<void> {
  const doc = await ask<Doc>("open", { doc: name });
  if (doc) enter(doc);
}

export function enter(doc: Doc): void {
  set({ doc, inside: "", through: "", trail: [], selected: [], edge: "", view: "canvas", dialog: "", values: {}, rings: {} });
  remember();
}

export async function newDoc(options: { name?: string; template?: string }): Promise<void> {
  const doc = await ask<Doc>("new", options);
  if (doc) enter(doc);
}

export function op(change: Op): Promise<unknown> {
  const s = get();
  if (!s.doc) return Promise.resolve(null);
  return ask("op", { doc: s.doc.doc, op: change, inside: s.inside });
}

export function undo(): void {
  const doc = get().doc;
  if (doc) void ask("undo", { doc: doc.doc });
}

export function redo(): void {
  const doc = get().doc;
  if (doc) void ask("redo", { doc: doc.doc });
}

export function command(name: string): void {
  void ask("command", { name });
}

export async function run(paused = false): Promise<void> {
  const s = get();
  if (!s.doc) return;
  if (s.session?.state === "starting") return;
  if (running(s)) {
    command(s.session?.state === "running" ? "pause" : "run");
    return;
  }
  await consented(paused);
}

/** Start or queue a run; ask for consent first if the graph contains code. */
export async function consented(paused: boolean, sweep?: Sweep): Promise<void> {
  const doc = get().doc;
  if (!doc) return;
  const code = codeOf(doc.graph);
  if (code.length > 0) set({ dialog: "consent", consent: { code, paused, sweep } });
  else await start(paused, false, sweep);
}

/** Return [node, source] of all Code nodes, those of sub-graphs included. */
function codeOf(graph: Graph, path = ""): [string, string][] {
  const here = Object.entries(graph.nodes).filter(([, node]) => node.type === "Code").map(([id, node]): [string, string] => [`${path}${id}`, String(node.params?.source ?? "")]);
  return [...here, ...Object.entries(graph.graphs ?? {}).flatMap(([name, inner]) => codeOf(inner, `${path}${name} / `))];
}

export async function start(paused: boolean, trust: boolean, sweep?: Sweep): Promise<void> {
  const s = get();
  if (!s.doc) return;
  const wanted = { doc: s.doc.doc, paused, trust, seeds: s.seeds, ...(sweep ? { sweep } : {}) };
  if (["running", "paused", "starting"].includes(s.session?.state ?? "")) {
    set({ dialog: "", consent: null });
    const done = await ask<{ waiting: number }>("start", wanted);
    if (done) toast(`${done.waiting} run${done.waiting > 1 ? "s" : ""} in the queue`);
    return;
  }
  // Immediately: the server answers only after it has imported torch.
  const session: Status = { doc: s.doc.doc, run: "", state: "starting", why: "", error: null, sha256: "", total_ticks: 0, order: [] };
  const previous = s.session?.doc === s.doc.doc ? s.rows : [];
  set({ session, previous, batch: [], batching: s.seeds > 1 || !!sweep, rows: [], findings: [], values: {}, rings: {}, shares: {}, frames: [], dialog: "", consent: null });
  if (!s.drawer) openDrawer("run");
  const begun = await ask("start", wanted);
  if (!begun && get().session === session) set({ session: s.session });
}

export function setTheme(theme: "dark" | "light"): void {
  localStorage.setItem("theme", theme);
  document.documentElement.dataset.theme = theme;
  set({ theme });
}

function onMessage(message: Record<string, unknown> & { on: string }): void {
  const s = get();
  switch (message.on) {
    case "doc":
      if (s.doc?.doc === message.doc) replaceDoc(message as unknown as Doc);
      break;
    case "moved":
      moved(message as unknown as { doc: string; moves: Record<string, [number, number] | null>; inside: string; done: number; undone: number; version: number });
      break;
    case "documents": {
      const documents = message.documents as Hello["documents"];
      set({ documents });
      if (!s.doc || documents.some((each) => each.name === s.doc?.doc)) break;
      // Otherwise every change would be refused here, and what is shown would be of no graph.
      if (s.view === "canvas") toast(`${s.doc.doc} was renamed or moved to the trash in another tab`, "error");
      set({ doc: null, selected: [], edge: "", view: s.view === "canvas" ? "gallery" : s.view });
      break;
    }
    case "starting":
      if (s.session?.state !== "starting") set({ session: { doc: message.doc as string, run: "", state: "starting", why: "", error: null, sha256: "", total_ticks: 0, order: [] } });
      break;
    case "session": {
      const session = message.session as Hello["session"];
      const again = session && session.run !== s.session?.run && s.batching;
      set({ session, batch: again ? [...s.batch, session.run] : s.batch, previous: again && s.rows.length ? s.rows : s.previous, rows: session?.curves ?? [], findings: session?.findings ?? [], shares: session?.shares ?? {} });
      break;
    }
    case "status":
      updateStatus(message as unknown as Status & { values: Record<string, Summary>; news: Row[] });
      break;
    case "frames":
      set({ frames: message.frames as Frame[] });
      break;
    case "findings":
      set({ findings: message.findings as Finding[] });
      break;
    case "queue":
      set({ queue: message.queue as Waiting[] });
      break;
    case "saved_nodes":
      set({ savedNodes: message.nodes as SavedNode[] });
      break;
    case "breaks":
      set({ breaks: message.breaks as BreakCondition[] });
      break;
    case "pace":
      set({ pace: message.pace as number });
      break;
  }
}

function updateStatus(status: Status & { values: Record<string, Summary>; news: Row[] }): void {
  const s = get();
  const { values, news, ...session } = status;
  const rings = Object.keys(values).length ? { ...s.rings } : s.rings;
  for (const [end, value] of Object.entries(values)) {
    const ring = rings[end] ?? [];
    if (ring.at(-1)?.tick !== value.tick) rings[end] = [...ring.slice(-RING + 1), value];
  }
  let rows = news.length ? [...s.rows, ...news] : s.rows;
  if (rows.length > MOST_ROWS) rows = rows.filter((_, i) => i % 2);
  set({ session, values: { ...s.values, ...values }, rings, rows, shares: status.shares ?? s.shares });
}

function moved(message: { doc: string; moves: Record<string, [number, number] | null>; inside: string; done: number; undone: number; version: number }): void {
  const doc = get().doc;
  if (!doc || doc.doc !== message.doc) return;
  const place = (graph: Graph): Graph => {
    const layout = { ...graph.layout };
    for (const [id, position] of Object.entries(message.moves)) {
      if (position) layout[id] = position;
      else delete layout[id];
    }
    return { ...graph, layout };
  };
  const inner = message.inside ? doc.graph.graphs?.[message.inside] : undefined;
  const graph = inner ? { ...doc.graph, graphs: { ...doc.graph.graphs, [message.inside]: place(inner) } } : place(doc.graph);
  set({ doc: { ...doc, graph, done: message.done, undone: message.undone, version: message.version } });
}

export function begin(): void {
  document.documentElement.dataset.theme = get().theme;
  socket.listen = onMessage;
  socket.closed = (code, attempts) => {
    // 4403: another studio answers at this address, or the token was replaced.
    const why =
      code === 4403
        ? "This tab belongs to an earlier start of the studio. Open the address that `surefoot studio` printed."
        : attempts < 4
          ? "Not connected to the studio. Reconnecting…"
          : "The studio does not answer. Start `surefoot studio` again in the same directory and on the same port; this tab reconnects by itself.";
    set({ online: false, offline: why });
  };
  socket.queued = (unsent) => set({ unsent });
  // A window that becomes narrow or wide has the panels that were last used at that width.
  const size = () => [innerWidth < 900, innerWidth < 1100].join();
  let before = size();
  window.addEventListener("resize", () => {
    if (size() !== before) set({ panels: storedPanels() });
    before = size();
  });
  window.addEventListener("beforeunload", (e) => {
    // Sends what is typed in a field. Changes that wait for the connection would be lost: the browser asks.
    (document.activeElement as HTMLElement | null)?.blur();
    if (get().unsent > 0) e.preventDefault();
  });
  window.addEventListener("popstate", () => void follow());
  window.addEventListener("hashchange", () => void follow());
  useStudio.subscribe((now, before) => {
    if (now.selected !== before.selected && now.view === "canvas") remember();
  });
  socket.opened = () => {
    void (async () => {
      const hello = await ask<Hello>("hello");
      if (!hello) return;
      set({
        online: true,
        kinds: Object.fromEntries(hello.catalogue.map((kind) => [kind.name, kind])),
        templates: hello.templates,
        metrics: hello.metrics,
        panelNames: hello.panels,
        documents: hello.documents,
        session: hello.session,
        rows: hello.session?.curves ?? [],
        findings: hello.session?.findings ?? [],
        shares: hello.session?.shares ?? {},
        breaks: hello.breaks,
        pace: hello.pace,
        queue: hello.queue,
        savedNodes: hello.saved_nodes,
      });
      const name = get().doc?.doc ?? wanted().get("doc");
      if (name && hello.documents.some((d) => d.name === name)) {
        const doc = await ask<Doc>("open", { doc: name });
        const node = wanted().get("node") ?? "";
        if (doc) get().doc ? replaceDoc(doc) : set({ doc, selected: doc.graph.nodes[node] ? [node] : [] });
      } else if (get().view === "canvas") {
        set({ view: "gallery" });
      }
    })();
  };
  socket.connect();
}

// Constants: a selector that returns a new list on every call would render forever.
export const NO_ROWS: Row[] = [];
export const NO_FINDINGS: Finding[] = [];
export const NO_FRAMES: Frame[] = [];
