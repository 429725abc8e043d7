// Ports of a node. Most nodes have the ports of their kind; those of SubGraph, Code and Split depend on their parameters.

import { endsOf } from "./words";
import type { Graph, GraphNode, Kind, Port, PortType } from "./types";

const ANY: PortType = { kind: "any", text: "any" };
const anyPort = (name: string): Port => ({ name, type: ANY, help: "", optional: true });

export function portsOf(node: GraphNode, kinds: Record<string, Kind>, graphs: Record<string, Graph> | undefined): { inputs: Port[]; outputs: Port[] } {
  if (node.type === "SubGraph") {
    const inner = graphs?.[String(node.params?.graph ?? "")];
    const named = (type: string) =>
      [...new Set(Object.entries(inner?.nodes ?? {}).filter(([, n]) => n.type === type).map(([id, n]) => String(n.params?.port ?? id)))].sort().map(anyPort);
    return { inputs: named("Inlet"), outputs: named("Outlet") };
  }
  if (node.type === "Code") {
    const names = (key: string) => ((node.params?.[key] as string[] | undefined) ?? []).map(anyPort);
    return { inputs: names("inputs"), outputs: names("outputs") };
  }
  const kind = kinds[node.type];
  const outputs = kind?.outputs ?? [];
  const sizes = node.type === "Split" ? ((node.params?.sizes as number[] | undefined) ?? []).length : outputs.length;
  return { inputs: kind?.inputs ?? [], outputs: outputs.slice(0, Math.max(sizes, 1)) };
}

/** Return the output that computes the value of an edge: reroutes and bypassed nodes only pass it on. */
export function originOf(graph: Graph, from: string): string {
  let end = from;
  for (let n = 0; n < 50; n++) {
    const [node] = endsOf(end);
    if (graph.nodes[node]?.type !== "Reroute") return end;
    const before = graph.edges.find((e) => e.to === `${node}.value`);
    if (!before) return end;
    end = before.from;
  }
  return end;
}

export const COLOURS: Record<string, string> = {
  obs: "var(--c-obs)",
  tensor: "var(--c-tensor)",
  policy_output: "var(--c-policy)",
  model: "var(--c-model)",
  learner: "var(--c-model)",
  manager: "var(--c-model)",
  curiosity: "var(--c-model)",
  world: "var(--c-world)",
  trigger: "var(--c-trigger)",
  dict: "var(--c-dict)",
  episodes: "var(--c-dict)",
  number: "var(--c-number)",
  flag: "var(--c-number)",
  schedule: "var(--c-number)",
  text: "var(--c-number)",
  queries: "var(--c-obs)",
  choices: "var(--c-policy)",
  results: "var(--c-dict)",
  toolbox: "var(--c-world)",
  encoder: "var(--c-model)",
  chooser: "var(--c-model)",
  prompts: "var(--c-obs)",
  responses: "var(--c-policy)",
  language: "var(--c-model)",
};

export const colourOf = (kind: string): string => COLOURS[kind] ?? "var(--c-any)";

export const CATEGORY: Record<string, string> = {
  "RL/PPO": "var(--c-policy)",
  "RL/Hierarchy": "var(--c-model)",
  World: "var(--c-world)",
  Town: "var(--c-world)",
  Tools: "var(--c-tensor)",
  Language: "var(--c-obs)",
  Flow: "var(--c-any)",
  Values: "var(--c-number)",
  Look: "var(--c-dict)",
};
