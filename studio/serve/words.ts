/** Numbers and times formatted for people. */

export function short(value: number | null | undefined, digits = 3): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e6) return `${(value / 1e6).toFixed(1)}M`;
  if (size >= 1e4) return `${(value / 1e3).toFixed(1)}k`;
  if (Number.isInteger(value)) return value.toLocaleString("en");
  if (size !== 0 && size < 1e-3) return value.toExponential(1);
  return value.toFixed(size >= 100 ? 1 : digits);
}

export function percent(value: number): string {
  return `${(100 * value).toFixed(value >= 0.9995 || value === 0 ? 0 : 1)} %`;
}

export function ago(seconds: number): string {
  if (seconds < 0 || !Number.isFinite(seconds)) return "–";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86_400)} d ago`;
}
