import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useStudio } from "../store";
import { short } from "../words";

export interface Series {
  label: string;
  colour: string;
  values: (number | null)[];
  low?: (number | null)[];
  high?: (number | null)[];
  /** Default: a line; "steps" holds each value until the next one, "points" draws one point per value. */
  as?: "steps" | "points";
}

/** Allowed distances between ticks of the x axis, which counts env steps or trials. */
const WHOLE = [1, 2, 5].flatMap((n) => Array.from({ length: 12 }, (_, k) => n * 10 ** k)).sort((a, b) => a - b);

function ink(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** A uPlot chart: curves with bands, the healthy range in the background, and a red mark where a value was not finite. */
export function Plot({ title, x, series, healthy, height = 150, meaning, bad = [] }: { title: string; x: number[]; series: Series[]; healthy?: [number, number] | null; height?: number; meaning?: string; bad?: number[] }) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const marks = useRef<number[]>(bad);
  marks.current = bad;
  const theme = useStudio((s) => s.theme);
  const shape = series.map((s) => `${s.label}${s.low ? "b" : ""}`).join("|");
  useEffect(() => {
    const div = place.current;
    if (!div) return;
    const axis = { stroke: ink("--quiet"), grid: { stroke: ink("--line"), width: 1 }, ticks: { show: false }, font: "10px system-ui" };
    const lines: uPlot.Series[] = [{}];
    const bands: uPlot.Band[] = [];
    for (const one of series) {
      const colour = one.colour.startsWith("var(") ? ink(one.colour.slice(4, -1)) : one.colour;
      const dots = one.as === "points";
      const paths = dots ? () => null : one.as === "steps" ? uPlot.paths.stepped?.({ align: 1 }) : undefined;
      lines.push({ label: one.label, stroke: colour, width: 1.6, spanGaps: true, paths, points: { show: dots || ((u) => (u.data[0]?.length ?? 0) < 3), size: dots ? 6 : 4, fill: dots ? colour : undefined } });
      if (one.low) {
        const low = lines.length;
        lines.push({ stroke: "transparent", points: { show: false } }, { stroke: "transparent", points: { show: false } });
        bands.push({ series: [low + 1, low], fill: `${colour}33` });
      }
    }
    const plot = new uPlot(
      {
        width: div.clientWidth || 300,
        height,
        legend: { show: false },
        cursor: { y: false, points: { size: 5 } },
        scales: { x: { time: false } },
        axes: [
          { ...axis, size: 22, space: 70, incrs: WHOLE, values: (_, ticks) => ticks.map((t) => (t >= 1e6 ? `${t / 1e6}M` : t >= 1e3 ? `${t / 1e3}k` : String(t))) },
          { ...axis, size: 54, space: 26, values: (_, ticks) => ticks.map(short) },
        ],
        series: lines,
        bands,
        hooks: {
          drawClear: [
            (u) => {
              if (!healthy) return;
              const top = Math.max(u.bbox.top, u.valToPos(healthy[1], "y", true));
              const bottom = Math.min(u.bbox.top + u.bbox.height, u.valToPos(healthy[0], "y", true));
              u.ctx.save(); // uPlot caches the fill style it set last and would not set it again
              u.ctx.fillStyle = ink("--healthy");
              if (bottom > top) u.ctx.fillRect(u.bbox.left, top, u.bbox.width, bottom - top);
              u.ctx.restore();
            },
          ],
          draw: [
            (u) => {
              u.ctx.save();
              u.ctx.fillStyle = ink("--bad");
              for (const i of marks.current) u.ctx.fillRect(u.valToPos(u.data[0][i] ?? 0, "x", true) - 1, u.bbox.top + u.bbox.height - 8, 3, 8);
              u.ctx.restore();
            },
          ],
        },
      },
      [[], ...lines.slice(1).map(() => [])] as uPlot.AlignedData,
      div,
    );
    chart.current = plot;
    const resize = new ResizeObserver(() => plot.setSize({ width: div.clientWidth || 300, height }));
    resize.observe(div);
    return () => {
      resize.disconnect();
      plot.destroy();
      chart.current = null;
    };
  }, [theme, shape, height, healthy?.[0], healthy?.[1]]);
  useEffect(() => {
    const data: (number | null)[][] = [x];
    for (const one of series) {
      data.push(one.values);
      if (one.low && one.high) data.push(one.low, one.high);
    }
    chart.current?.setData(data as uPlot.AlignedData);
  });
  const last = series[0]?.values.findLast((v) => v !== null);
  const unhealthy = healthy && last !== undefined && last !== null && (last < healthy[0] || last > healthy[1]);
  return (
    <figure className="plot" aria-label={`${title}${last !== undefined ? `, now ${short(last)}` : ""}`} role="group" title={meaning}>
      <figcaption>
        <span>{title}</span>
        {series.length === 1 && <b className={unhealthy ? "warn" : ""}>{short(last)}</b>}
      </figcaption>
      <div ref={place} />
    </figure>
  );
}
