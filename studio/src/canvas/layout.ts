// Automatic layout: layers along the edges, wrapped into rows like text, so that a loop fits the screen at a readable size.

import dagre from "@dagrejs/dagre";
import { portsOf } from "../ports";
import type { Graph, GraphNode, Kind } from "../types";
import { endsOf } from "../words";

export const WIDTH = 248;
/** Width and height of a reroute. */
export const REROUTE = 20;

// Must match theme.css: the height of the card's head with its borders, then one row per port, then one line per parameter.
const HEAD = 56;
const ROW = 24;
const FACT = 20;
export const HANDLE = 12;
/** Parameters that a card shows. */
export const FACTS = 3;
/** Space between columns: edges turn there. */
export const GAP = 76;
const STACK = 34;

export function heightOf(inputs: number, outputs: number): number {
  return HEAD + ROW * Math.max(1, inputs + outputs) + 9;
}

/** Return the height of a card with its parameters. */
export function cardHeight(inputs: number, outputs: number, params: number): number {
  return heightOf(inputs, outputs) + (params ? FACT * Math.min(params, FACTS) + 9 : 0);
}

/** Return the centre of row n of a card, measured from the top. */
export const rowOf = (n: number): number => HEAD + ROW * n + ROW / 2;

/** Return where an edge leaves or enters a card, measured from the left. */
export const edgeOf = (side: "in" | "out"): number => (side === "in" ? 1 - HANDLE / 2 : WIDTH - 1 + HANDLE / 2);

interface Row {
  layers: string[][];
  height: number;
  width: number;
}

export function arranged(graph: Graph, kinds: Record<string, Kind>, graphs: Record<string, Graph> | undefined, room: { width: number; height: number } = { width: 960, height: 700 }): Record<string, [number, number]> {
  const heights = new Map(Object.entries(graph.nodes).map(([id, node]) => [id, sizeOf(node, kinds, graphs)]));
  const layers = layersOf(graph, heights);
  const tall = (layer: string[]) => layer.reduce((sum, id) => sum + (heights.get(id) ?? 0) + STACK, -STACK);
  let best: Row[] = [];
  let bestZoom = 0;
  for (const count of [1, 2, 3, 4]) {
    const perRow = Math.ceil(layers.length / count);
    const rows: Row[] = [];
    for (let at = 0; at < layers.length; at += perRow) {
      const part = layers.slice(at, at + perRow);
      rows.push({ layers: part, height: Math.max(...part.map(tall)), width: part.length * (WIDTH + GAP) - GAP });
    }
    const width = Math.max(...rows.map((r) => r.width));
    const gaps = rows.map((_, n) => gapAfter(graph, rows, n));
    const height = rows.reduce((sum, r, n) => sum + r.height + (gaps[n] ?? 0), 0);
    const zoom = Math.min(1, room.width / width, room.height / height);
    // A further row must gain something: fewer rows are easier to follow.
    if (zoom > bestZoom * 1.05) [best, bestZoom] = [rows, zoom];
  }
  const places: Record<string, [number, number]> = {};
  let y = 0;
  best.forEach((row, n) => {
    row.layers.forEach((layer, column) => {
      let top = y;
      for (const id of layer) {
        places[id] = [column * (WIDTH + GAP), Math.round(top / 10) * 10];
        top += (heights.get(id) ?? 0) + STACK;
      }
    });
    y += row.height + gapAfter(graph, best, n);
  });
  return places;
}

/** Return the space below a row, with a lane for each output that is connected across it. */
function gapAfter(graph: Graph, rows: Row[], n: number): number {
  const rowOfNode = new Map(rows.flatMap((row, r) => row.layers.flat().map((id) => [id, r] as const)));
  const crossing = new Set<string>();
  for (const edge of graph.edges) {
    const [a, b] = [rowOfNode.get(endsOf(edge.from)[0]) ?? 0, rowOfNode.get(endsOf(edge.to)[0]) ?? 0];
    if (Math.min(a, b) <= n && Math.max(a, b) > n) crossing.add(edge.from);
  }
  return n === rows.length - 1 ? 30 : Math.min(12, crossing.size) * 7 + 46;
}

function sizeOf(node: GraphNode, kinds: Record<string, Kind>, graphs: Record<string, Graph> | undefined): number {
  const { inputs, outputs } = portsOf(node, kinds, graphs);
  return cardHeight(inputs.length, outputs.length, Object.keys(node.params ?? {}).length);
}

/** Return the nodes by their distance from the sources; delayed edges close cycles and are ignored. */
function layersOf(graph: Graph, heights: Map<string, number>): string[][] {
  const flow = new dagre.graphlib.Graph();
  flow.setGraph({ rankdir: "LR", nodesep: STACK, ranksep: GAP, marginx: 0, marginy: 0 });
  flow.setDefaultEdgeLabel(() => ({}));
  for (const [id, height] of heights) flow.setNode(id, { width: WIDTH, height });
  for (const edge of graph.edges) if (!edge.delay) flow.setEdge(endsOf(edge.from)[0], endsOf(edge.to)[0]);
  dagre.layout(flow);
  const layers = new Map<number, [string, number][]>();
  for (const id of heights.keys()) {
    const { x, y } = flow.node(id) as { x: number; y: number };
    layers.set(Math.round(x), [...(layers.get(Math.round(x)) ?? []), [id, y]]);
  }
  return [...layers].sort((a, b) => a[0] - b[0]).map(([, nodes]) => nodes.sort((a, b) => a[1] - b[1]).map(([id]) => id));
}
