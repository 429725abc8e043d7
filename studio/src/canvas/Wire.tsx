import { BaseEdge, EdgeLabelRenderer, type EdgeProps, getBezierPath, useStore } from "@xyflow/react";
import { memo } from "react";
import { Spark } from "../panels/Spark";
import { flatId, useStudio } from "../store";
import { endsOf, level, shapeOf, short } from "../words";
import type { Route } from "./route";

export interface WireData extends Record<string, unknown> {
  from: string;
  /** The output that computes the value. */
  origin: string;
  to: string;
  colour: string;
  delay: { initial?: unknown } | null;
  route: Route | null;
}

function Line({ x1, y1, x2, y2, data, chosen }: { x1: number; y1: number; x2: number; y2: number; data: WireData; chosen: boolean }) {
  const bend = Math.max(40, Math.abs(x2 - x1) / 2);
  return <path d={`M${x1},${y1} C${x1 + bend},${y1} ${x2 - bend},${y2} ${x2},${y2}`} stroke={data.colour} strokeWidth={chosen ? 8 : 4} strokeDasharray={data.delay ? "14 10" : undefined} />;
}

/** Edge of a large, zoomed-out graph: no label and no events. */
export const FarLine = memo(Line, (a, b) => a.x1 === b.x1 && a.y1 === b.y1 && a.x2 === b.x2 && a.y2 === b.y2 && a.data === b.data && a.chosen === b.chosen);

/** Scale of edge labels: they shrink less than the graph, to stay readable. */
const readable = (zoom: number): number => Math.min(2, Math.max(1, Math.ceil(3.2 / zoom) / 4));

function Live({ end, x, y }: { end: string; x: number; y: number }) {
  const size = useStore((s) => readable(s.transform[2]));
  const summary = useStudio((s) => (s.session?.doc === s.doc?.doc ? s.values[end] : undefined));
  const ring = useStudio((s) => s.rings[end]);
  if (!summary) return null;
  const now = level(summary);
  return (
    <EdgeLabelRenderer>
      <div className="label" style={{ transform: `translate(-50%,-50%) translate(${x}px,${y}px) scale(${size})` }} data-testid={`label-${end}`}>
        <span>{shapeOf(summary).slice(0, 28)}</span>
        {now !== null && <b>{short(now)}</b>}
        {ring && ring.length > 2 && <Spark values={ring.slice(-48).map(level)} width={46} height={14} />}
      </div>
    </EdgeLabelRenderer>
  );
}

export const Wire = memo(function Wire(props: EdgeProps & { data?: WireData }) {
  const { sourceX, sourceY, targetX, targetY, selected, data } = props;
  const near = useStore((s) => s.transform[2] > 0.38);
  const size = useStore((s) => readable(s.transform[2]));
  const end = useStudio((s) => {
    const [node, port] = endsOf(data?.origin ?? ".");
    return `${flatId(s, node)}.${port}`;
  });
  if (!data) return null;
  // While a card is dragged, its edges are curves: the paths around the cards are found when it is dropped.
  const route = data.route;
  const still = route && Math.abs(route.x1 - sourceX) < 2 && Math.abs(route.y1 - sourceY) < 2 && Math.abs(route.x2 - targetX) < 2 && Math.abs(route.y2 - targetY) < 2;
  const [path, x, y] = still
    ? [route.path, route.x, route.y]
    : getBezierPath({ sourceX, sourceY, sourcePosition: props.sourcePosition, targetX, targetY, targetPosition: props.targetPosition, curvature: 0.3 });
  const initial = data.delay?.initial;
  return (
    <>
      <BaseEdge path={path} style={{ stroke: data.colour, strokeWidth: selected ? 3.5 : 2, strokeDasharray: data.delay ? "7 5" : undefined, opacity: selected ? 1 : 0.85 }} interactionWidth={near ? 16 : 0} />
      {data.delay && near && (
        <EdgeLabelRenderer>
          <div className="delay" style={{ transform: `translate(-50%,-50%) translate(${x}px,${y}px) scale(${size})` }} title={`The value arrives one tick later; in the first tick it is ${initial === undefined ? "empty" : short(initial)}.`}>
            one tick later{initial !== undefined && <b> · initial {short(initial)}</b>}
          </div>
        </EdgeLabelRenderer>
      )}
      {/* On a short edge the label would cover the cards; the port beside it shows the value. */}
      {near && selected && Math.abs(targetX - sourceX) > 200 && <Live end={end} x={x} y={data.delay ? y - 22 * size : y} />}
    </>
  );
});
