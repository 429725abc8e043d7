// Small charts: a curve that fits into a line of text, and a histogram.

export function Spark({ values, width, height }: { values: (number | null)[]; width: number; height: number }) {
  const known = values.filter((v): v is number => v !== null && Number.isFinite(v));
  if (known.length < 2) return null;
  const low = Math.min(...known);
  const range = Math.max(...known) - low || 1;
  const step = width / (values.length - 1);
  const points = values.map((v, i) => (v === null ? "" : `${(i * step).toFixed(1)},${(height - 1 - ((v - low) / range) * (height - 2)).toFixed(1)}`)).join(" ");
  return (
    <svg width={width} height={height} aria-hidden="true" className="spark">
      <polyline points={points} fill="none" stroke="currentColor" strokeWidth="1.4" />
    </svg>
  );
}

export function Histogram({ counts, edges }: { counts: number[]; edges: [number, number] }) {
  const most = Math.max(...counts, 1);
  return (
    <figure className="histogram">
      <svg viewBox={`0 0 ${counts.length * 10} 60`} preserveAspectRatio="none" role="img" aria-label={`histogram from ${edges[0]} to ${edges[1]}`}>
        {counts.map((count, i) => (
          <rect key={i} x={i * 10 + 1} width="8" y={60 - (count / most) * 58} height={(count / most) * 58} fill="currentColor" />
        ))}
      </svg>
      <figcaption>
        <span>{edges[0].toPrecision(3)}</span>
        <span>{edges[1].toPrecision(3)}</span>
      </figcaption>
    </figure>
  );
}
