// Where nodes go when nobody has placed them: in layers by what feeds what, delayed edges left out.

import dagre from "@dagrejs/dagre";
import { portsOf } from "../ports";
import type { Graph, Kind } from "../types";
import { endsOf } from "../words";

export const WIDTH = 212;

export function heightOf(inputs: number, outputs: number): number {
  return 46 + 22 * Math.max(1, inputs + outputs) + 8;
}

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
