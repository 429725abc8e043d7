// State of the page. The server owns documents and runs; this is a copy for display.

import { create } from "zustand";
import { socket } from "./socket";
import type { BreakCondition, Check, Doc, Finding, Frame, Graph, Hello, Kind, Op, Row, Status, Summary } from "./types";

// Summaries per watched output, as many as the server stores (graph/run/live_values.py).
export const RING = 256;
// Rows of metrics; beyond that every second row is dropped, so that memory and drawing time stay bounded.
export const MOST_ROWS = 4000;

export type View = "gallery" | "canvas" | "runs";
export type Drawer = "run" | "world" | "doctor" | "history" | "";
export type Dialog = "" | "add" | "connect" | "keys" | "import" | "group" | "open" | "find";

export interface Toast {
  id: number;
  text: string;
  kind: "note" | "error";
}

export interface State {
  online: boolean;
  kinds: Record<string, Kind>;
  templates: Hello["templates"];
  metrics: Hello["metrics"];
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

const wanted = new URLSearchParams(location.hash.slice(1));

export const useStudio = create<State>(() => ({
  online: false,
  kinds: {},
  templates: [],
  metrics: {},
  documents: [],
  view: (wanted.get("view") as View | null) ?? "gallery",
  doc: null,
  inside: "",
  through: "",
  trail: [],
  selected: [],
  edge: "",
  drawer: "run",
  dialog: "",
  dialogNode: "",
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

/** Write view and document into the address, so that a reload shows them again. */
export function remember(): void {
  const s = get();
  const words = new URLSearchParams({ view: s.view });
  if (s.doc) words.set("doc", s.doc.doc);
  history.replaceState(null, "", `#${words}`);
}

export function show(view: View): void {
  set({ view });
  remember();
}

function replaceDoc(doc: Doc): void {
  const inside = get().inside && doc.graph.graphs?.[get().inside] ? get().inside : "";
  set(inside ? { doc } : { doc, inside: "", through: "", trail: [] });
}

/** Leave sub-graphs up to the given position of the trail. */
export function leave(to: number): void {
  const { trail } = get();
  const target = trail[to];
  if (target) set({ ...target, trail: trail.slice(0, to), selected: [], edge: "" });
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
  if (running(s)) {
    command(s.session?.state === "running" ? "pause" : "run");
    return;
  }
  const code = Object.entries(s.doc.graph.nodes).filter(([, node]) => node.type === "Code");
  const trust =
    code.length > 0 &&
    confirm(`This graph contains Python code in ${code.map(([id]) => id).join(", ")}:\n\n${code.map(([, n]) => String(n.params?.source ?? "")).join("\n\n").slice(0, 2000)}\n\nRun it?`);
  if (code.length > 0 && !trust) return;
  set({ rows: [], findings: [], values: {}, rings: {}, shares: {}, frames: [] });
  await ask("start", { doc: s.doc.doc, paused, trust });
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
    case "documents":
      set({ documents: message.documents as Hello["documents"] });
      break;
    case "session": {
      const session = message.session as Hello["session"];
      set({ session, rows: session?.curves ?? [], findings: session?.findings ?? [], shares: session?.shares ?? {} });
      break;
    }
    case "status":
      updateStatus(message as unknown as Status & { values: Record<string, Summary>; news: Row[] });
      break;
    case "frames":
      set({ frames: message.frames as Frame[] });
      break;
    case "finding": {
      const finding = message.finding as Finding;
      set({ findings: [...s.findings.filter((f) => f.rule !== finding.rule), finding] });
      break;
    }
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
  socket.closed = () => set({ online: false });
  socket.opened = () => {
    void (async () => {
      const hello = await ask<Hello>("hello");
      if (!hello) return;
      set({
        online: true,
        kinds: Object.fromEntries(hello.catalogue.map((kind) => [kind.name, kind])),
        templates: hello.templates,
        metrics: hello.metrics,
        documents: hello.documents,
        session: hello.session,
        rows: hello.session?.curves ?? [],
        findings: hello.session?.findings ?? [],
        shares: hello.session?.shares ?? {},
        breaks: hello.breaks,
        pace: hello.pace,
      });
      const name = get().doc?.doc ?? wanted.get("doc");
      if (name && hello.documents.some((d) => d.name === name)) {
        const doc = await ask<Doc>("open", { doc: name });
        if (doc) get().doc ? replaceDoc(doc) : set({ doc });
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
