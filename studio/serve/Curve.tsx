import { useState } from "react";
import { short } from "./words";

export interface Point {
  x: number;
  y: number;
  live?: boolean;
}

const W = 720;
const H = 240;
const LEFT = 52;
const RIGHT = 14;
const TOP = 14;
const BOTTOM = 28;

function ticks(low: number, high: number, count: number): number[] {
  const step = 10 ** Math.floor(Math.log10((high - low) / count || 1));
  const nice = [1, 2, 5, 10].map((m) => m * step).find((s) => (high - low) / s <= count) ?? step;
  const found: number[] = [];
  for (let t = Math.ceil(low / nice) * nice; t <= high + 1e-9; t += nice) found.push(Math.abs(t) < 1e-12 ? 0 : t);
  return found;
}

/** A curve over versions; the live version has a ring. */
export function Curve({ points, label, empty }: { points: Point[]; label: string; empty: string }) {
  const [near, setNear] = useState<Point | null>(null);
  if (points.length === 0)
    return (
      <div className="no-curve">
        <p>{empty}</p>
      </div>
    );
  const xs = points.map((p) => p.x);
  const ys = points.map((p) => p.y);
  const x0 = Math.min(...xs);
  const x1 = Math.max(...xs, x0 + 1);
  const pad = (Math.max(...ys) - Math.min(...ys)) * 0.12 || Math.max(0.05, Math.abs(ys[0]!) * 0.1);
  const y0 = Math.min(...ys) - pad;
  const y1 = Math.max(...ys) + pad;
  const px = (x: number) => LEFT + ((x - x0) / (x1 - x0)) * (W - LEFT - RIGHT);
  const py = (y: number) => H - BOTTOM - ((y - y0) / (y1 - y0)) * (H - TOP - BOTTOM);
  const line = points.map((p, i) => `${i ? "L" : "M"}${px(p.x).toFixed(1)},${py(p.y).toFixed(1)}`).join("");
  const floor = H - BOTTOM;
  const area = `${line}L${px(points.at(-1)!.x).toFixed(1)},${floor}L${px(points[0]!.x).toFixed(1)},${floor}Z`;
  const live = points.find((p) => p.live);
  const shown = near ?? live ?? points.at(-1)!;
  const look = (event: React.PointerEvent<SVGSVGElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    const x = x0 + (((event.clientX - box.left) / box.width) * W - LEFT) * ((x1 - x0) / (W - LEFT - RIGHT));
    setNear(points.reduce((best, p) => (Math.abs(p.x - x) < Math.abs(best.x - x) ? p : best)));
  };
  return (
    <figure className="curve" aria-label={`${label} by version`}>
      <svg viewBox={`0 0 ${W} ${H}`} onPointerMove={look} onPointerLeave={() => setNear(null)} role="img">
        <defs>
          <linearGradient id="under" x1="0" y1="0" x2="0" y2="1">
            <stop offset="0" stopColor="var(--accent)" stopOpacity="0.28" />
            <stop offset="1" stopColor="var(--accent)" stopOpacity="0" />
          </linearGradient>
        </defs>
        {ticks(y0, y1, 5).map((t) => (
          <g key={t} className="tick">
            <line x1={LEFT} x2={W - RIGHT} y1={py(t)} y2={py(t)} />
            <text x={LEFT - 8} y={py(t) + 3.5} textAnchor="end">
              {short(t, 2)}
            </text>
          </g>
        ))}
        {ticks(x0, x1, 8).filter(Number.isInteger).map((t) => (
          <text key={t} className="tick-x" x={px(t)} y={H - 8} textAnchor="middle">
            {t}
          </text>
        ))}
        <path d={area} fill="url(#under)" />
        <path d={line} className="line" />
        {points.length < 60 && points.map((p) => <circle key={p.x} className="dot" cx={px(p.x)} cy={py(p.y)} r="2.6" />)}
        {live && <circle className="ring" cx={px(live.x)} cy={py(live.y)} r="6.5" />}
        {near && <line className="here" x1={px(near.x)} x2={px(near.x)} y1={TOP} y2={floor} />}
      </svg>
      <figcaption>
        version {shown.x}
        {shown.live ? ", live" : ""}: <b>{short(shown.y)}</b>
      </figcaption>
    </figure>
  );
}

/** A few numbers as a line, without axes. */
export function Spark({ values }: { values: number[] }) {
  if (values.length < 4 || !values.some((v) => v > 0)) return null;
  const high = Math.max(1, ...values);
  const d = values.map((v, i) => `${i ? "L" : "M"}${((i / Math.max(1, values.length - 1)) * 100).toFixed(1)},${(26 - (v / high) * 24).toFixed(1)}`).join("");
  return (
    <svg className="spark" viewBox="0 0 100 28" preserveAspectRatio="none" aria-hidden="true">
      <path d={d} />
    </svg>
  );
}
