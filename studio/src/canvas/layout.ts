// Where nodes go when nobody has placed them: in layers by what feeds what, delayed edges left out.

import dagre from "@dagrejs/dagre";
import { portsOf } from "../ports";
import type { Graph, Kind } from "../types";
import { endsOf } from "../words";

export const WIDTH = 212;

// As theme.css has it: the coloured edge and the head, a line, then a row for each port.
const HEAD = 45;
const ROW = 22;
export const HANDLE = 12;

export function heightOf(inputs: number, outputs: number): number {
  return HEAD + ROW * Math.max(1, inputs + outputs) + 9;
}

/** The middle of a card's nth row, from its top. */
export const rowOf = (n: number): number => HEAD + ROW * n + ROW / 2;

/** Where an edge leaves or reaches a card, from its left. */
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
  const found: Record<string, [number, number]> = {};
  for (const id of Object.keys(graph.nodes)) {
    const { x, y, width, height } = flow.node(id) as { x: number; y: number; width: number; height: number };
    found[id] = [Math.round((x - width / 2) / 10) * 10, Math.round((y - height / 2) / 10) * 10];
  }
  return found;
}

/** Tells for each node which part of the graph it is in: parts are what no edge joins. */
export function parts(graph: Graph): (id: string) => string {
  const above = new Map<string, string>();
  const top = (id: string): string => {
    let at = id;
    for (let next = above.get(at); next !== undefined; next = above.get(at)) at = next;
    return at;
  };
  for (const edge of graph.edges) {
    const [a, b] = [top(endsOf(edge.from)[0]), top(endsOf(edge.to)[0])];
    if (a !== b) above.set(a, b);
  }
  return top;
}
