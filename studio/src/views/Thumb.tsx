// A graph as a small image.

import { CATEGORY } from "../ports";
import { arranged, WIDTH } from "../canvas/layout";
import { useStudio } from "../store";
import type { Graph } from "../types";
import { endsOf } from "../words";

/** As far as a wire leaves the cards to the side. */
const BEND = 110;

export function Thumb({ graph }: { graph: Graph }) {
  const kinds = useStudio((s) => s.kinds);
  const ids = Object.keys(graph.nodes);
  const places = ids.every((id) => graph.layout?.[id]) ? (graph.layout ?? {}) : arranged(graph, kinds, graph.graphs);
  const xs = ids.map((id) => places[id]?.[0] ?? 0);
  const ys = ids.map((id) => places[id]?.[1] ?? 0);
  const h = 84;
  const box = [Math.min(...xs) - BEND, Math.min(...ys) - 40, Math.max(...xs) - Math.min(...xs) + WIDTH + 2 * BEND, Math.max(...ys) - Math.min(...ys) + h + 80];
  return (
    <svg viewBox={box.join(" ")} className="thumb" aria-hidden="true" preserveAspectRatio="xMidYMid meet">
      {graph.edges.map((edge) => {
        const [ax, ay] = places[endsOf(edge.from)[0]] ?? [0, 0];
        const [x2, by] = places[endsOf(edge.to)[0]] ?? [0, 0];
        const x1 = ax + WIDTH;
        const y1 = ay + h / 2;
        const y2 = by + h / 2;
        const bend = Math.min(BEND, Math.max(40, Math.abs(x2 - x1) / 2));
        return <path key={`${edge.from}${edge.to}`} d={`M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`} className="thumb-edge" strokeDasharray={edge.delay ? "14 10" : undefined} />;
      })}
      {ids.map((id) => (
        <rect key={id} x={places[id]?.[0]} y={places[id]?.[1]} width={WIDTH} height={h} rx="14" className="thumb-node" style={{ fill: CATEGORY[kinds[graph.nodes[id]?.type ?? ""]?.category ?? ""] ?? "var(--c-any)" }} />
      ))}
    </svg>
  );
}
