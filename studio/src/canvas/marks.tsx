// Marks on the canvas that compute nothing: comments behind the nodes, and reroutes in edges.

import { Handle, type Node, type NodeProps, NodeResizer, Position } from "@xyflow/react";
import { memo } from "react";
import { FRAME, get, graphOf, op } from "../store";
import type { Comment, Graph, Op } from "../types";
import { freeName } from "./clipboard";
import { WIDTH } from "./layout";

const NAMELESS = "comment";

/** Return the comments of a graph as nodes that lie behind all others. */
export function commentNodes(graph: Graph | null, chosen: string[]): Node[] {
  return Object.entries(graph?.frames ?? {}).map(([id, frame]) => ({
    id: FRAME + id,
    type: "comment",
    position: { x: frame.at[0], y: frame.at[1] },
    width: frame.size[0],
    height: frame.size[1],
    data: { text: frame.text, height: frame.size[1] },
    zIndex: -2,
    selected: chosen.includes(FRAME + id),
    ariaLabel: `comment: ${frame.text || NAMELESS}`,
  }));
}

/** Change a comment. */
export function setComment(id: string, change: Partial<Comment>): void {
  const frame = graphOf(get())?.frames?.[id];
  if (frame) void op({ op: "frame", id, frame: { ...frame, ...change } });
}

/** Put a comment behind the selected nodes, or at a place of the canvas. */
export async function addComment(at?: { x: number; y: number }): Promise<string | null> {
  const graph = graphOf(get());
  if (!graph) return null;
  const places = get().selected.flatMap((id) => (graph.layout?.[id] ? [graph.layout[id]] : []));
  const id = freeName("note", { ...graph, nodes: { ...graph.nodes, ...Object.fromEntries(Object.keys(graph.frames ?? {}).map((name) => [name, { type: "" }])) } });
  const [left, top] = places.length ? [Math.min(...places.map((p) => p[0])) - 24, Math.min(...places.map((p) => p[1])) - 56] : [at?.x ?? 0, at?.y ?? 0];
  const size: [number, number] = places.length ? [Math.max(...places.map((p) => p[0])) + WIDTH + 24 - left, Math.max(...places.map((p) => p[1])) + 300 - top] : [360, 200];
  const frame: Comment = { text: "Comment", at: [Math.round(left), Math.round(top)], size: [Math.round(size[0]), Math.round(size[1])] };
  return (await op({ op: "frame", id, frame })) ? FRAME + id : null;
}

/** Return the changes of comments that were moved; the nodes on a comment are added to `moves`. */
export function framesMoved(graph: Graph | null, moves: Map<string, [number, number]>): Op[] {
  const ops: Op[] = [];
  for (const [id, at] of [...moves]) {
    const frame = id.startsWith(FRAME) ? graph?.frames?.[id.slice(FRAME.length)] : undefined;
    if (!frame) continue;
    const [dx, dy] = [at[0] - frame.at[0], at[1] - frame.at[1]];
    for (const [node, [x, y]] of Object.entries(graph?.layout ?? {}))
      if (!moves.has(node) && x >= frame.at[0] && y >= frame.at[1] && x < frame.at[0] + frame.size[0] && y < frame.at[1] + frame.size[1]) moves.set(node, [x + dx, y + dy]);
    ops.push({ op: "frame", id: id.slice(FRAME.length), frame: { ...frame, at } });
  }
  return ops;
}

export const CommentFrame = memo(function CommentFrame({ id, data, selected }: NodeProps) {
  return (
    <div className={`comment ${selected ? "chosen" : ""}`} data-testid={id}>
      <NodeResizer isVisible={selected} minWidth={120} minHeight={60} onResizeEnd={(_, box) => setComment(id.slice(FRAME.length), { at: [Math.round(box.x), Math.round(box.y)], size: [Math.round(box.width), Math.round(box.height)] })} />
      <p>{String(data.text)}</p>
    </div>
  );
});

export const Reroute = memo(function Reroute({ id, selected }: NodeProps) {
  return (
    <div className={`reroute ${selected ? "chosen" : ""}`} title={`${id}: passes the value on`} data-testid={`node-${id}`}>
      <Handle id="value" type="target" position={Position.Left} />
      <Handle id="value" type="source" position={Position.Right} />
    </div>
  );
});
