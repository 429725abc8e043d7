// Copies nodes as JSON text, which can be pasted in another tab or into a file.

import { get, graphOf, op, set, toast } from "../store";
import type { Graph, GraphEdge, GraphNode, Op } from "../types";
import { endsOf } from "../words";

interface Clip {
  format: "surefoot.clip";
  nodes: Record<string, GraphNode>;
  edges: GraphEdge[];
  layout: Record<string, [number, number]>;
}

let lastCopy = "";

export function freeName(wanted: string, graph: Graph, also: Set<string> = new Set()): string {
  const base = wanted.replace(/[^A-Za-z0-9_]/g, "_").replace(/^[^A-Za-z_]/, "n") || "node";
  let name = base;
  for (let n = 2; name in graph.nodes || also.has(name); n++) name = `${base.replace(/_\d+$/, "")}_${n}`;
  return name;
}

export function copy(selected: string[]): void {
  const graph = graphOf(get());
  const ids = selected.filter((id) => graph?.nodes[id]);
  if (!graph || ids.length === 0) return;
  const chosen = new Set(ids);
  const clip: Clip = {
    format: "surefoot.clip",
    nodes: Object.fromEntries(ids.map((id) => [id, graph.nodes[id] as GraphNode])),
    edges: graph.edges.filter((e) => chosen.has(endsOf(e.from)[0]) && chosen.has(endsOf(e.to)[0])),
    layout: Object.fromEntries(ids.map((id) => [id, graph.layout?.[id] ?? [0, 0]])),
  };
  lastCopy = JSON.stringify(clip);
  void navigator.clipboard?.writeText(lastCopy).catch(() => {});
  toast(`copied ${ids.length} node${ids.length > 1 ? "s" : ""}`);
}

export async function paste(): Promise<void> {
  const graph = graphOf(get());
  if (!graph) return;
  let text = lastCopy;
  try {
    text = (await navigator.clipboard.readText()) || lastCopy;
  } catch {
    // Without permission to read the clipboard, paste the last copy of this tab.
  }
  let clip: Clip;
  try {
    clip = JSON.parse(text) as Clip;
    if (clip.format !== "surefoot.clip") throw new Error();
  } catch {
    toast("the clipboard does not contain nodes; copy some with Ctrl+C first", "error");
    return;
  }
  const used = new Set<string>();
  const names: Record<string, string> = {};
  for (const id of Object.keys(clip.nodes)) {
    names[id] = freeName(id, graph, used);
    used.add(names[id] as string);
  }
  const ops: Op[] = Object.entries(clip.nodes).map(([id, node]) => {
    const [x, y] = clip.layout[id] ?? [0, 0];
    return { op: "add", id: names[id], type: node.type, params: node.params ?? {}, ...(node.mode ? { mode: node.mode } : {}), at: [x + 40, y + 60] };
  });
  const end = (text: string) => {
    const [node, port] = endsOf(text);
    return `${names[node]}.${port}`;
  };
  for (const edge of clip.edges) ops.push({ op: "connect", from: end(edge.from), to: end(edge.to), ...(edge.delay ? { delay: edge.delay } : {}) });
  await op({ op: "batch", ops });
  set({ selected: Object.values(names) });
}
