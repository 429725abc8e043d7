// Automatic layout: nodes in layers along the edges; delayed edges are ignored, because they close cycles.

import dagre from "@dagrejs/dagre";
import { portsOf } from "../ports";
import type { Graph, Kind } from "../types";
import { endsOf } from "../words";

export const WIDTH = 212;

// Must match theme.css: the height of the card's head with its borders, then one row per port.
const HEAD = 45;
const ROW = 22;
export const HANDLE = 12;

export function heightOf(inputs: number, outputs: number): number {
  return HEAD + ROW * Math.max(1, inputs + outputs) + 9;
}

/** Return the centre of row n of a card, measured from the top. */
export const rowOf = (n: number): number => HEAD + ROW * n + ROW / 2;

/** Return where an edge leaves or enters a card, measured from the left. */
export const edgeOf = (side: "in" | "out"): number => (side === "in" ? 1 - HANDLE / 2 : WIDTH - 1 + HANDLE / 2);

export function arranged(graph: Graph, kinds: Record<string, Kind>, graphs: Record<string, Graph> | undefined): Record<string, [number, number]> {
  const flow = new dagre.graphlib.Graph();
  flow.setGraph({ rankdir: "LR", nodesep: 34, ranksep: 84, marginx: 0, marginy: 0 });
  flow.setDefaultEdgeLabel(() => ({}));
  for (const [id, node] of Object.entries(graph.nodes)) {
    const { inputs, outputs } = portsOf(node, kinds, graphs);
    flow.setNode(id, { width: WIDTH, height: heightOf(inputs.length, outputs.length) });
  }
  for (const edge of graph.edges) if (!edge.delay) flow.setEdge(endsOf(edge.from)[0], endsOf(edge.to)[0]);
  dagre.layout(flow);
  const places: Record<string, [number, number]> = {};
  for (const id of Object.keys(graph.nodes)) {
    const { x, y, width, height } = flow.node(id) as { x: number; y: number; width: number; height: number };
    places[id] = [Math.round((x - width / 2) / 10) * 10, Math.round((y - height / 2) / 10) * 10];
  }
  return places;
}

/** Return a function that maps a node to its connected component (union-find). */
export function parts(graph: Graph): (id: string) => string {
  const above = new Map<string, string>();
  const top = (id: string): string => {
    let root = id;
    for (let next = above.get(root); next !== undefined; next = above.get(root)) root = next;
    return root;
  };
  for (const edge of graph.edges) {
    const [a, b] = [top(endsOf(edge.from)[0]), top(endsOf(edge.to)[0])];
    if (a !== b) above.set(a, b);
  }
  return top;
}
