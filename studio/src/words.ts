// Formats numbers and values for display.

import type { Summary } from "./types";

export function short(x: unknown): string {
  if (x === null || x === undefined) return "–";
  if (typeof x === "number") {
    if (!Number.isFinite(x)) return String(x);
    const size = Math.abs(x);
    if (size !== 0 && (size >= 1e5 || size < 1e-3)) return x.toExponential(1).replace("e+", "e");
    if (Number.isInteger(x)) return String(x);
    // As in reports: a run has the same score on every page.
    return size >= 1000 ? x.toFixed(0) : size >= 100 ? x.toFixed(1) : x.toPrecision(3);
  }
  if (typeof x === "boolean") return x ? "yes" : "no";
  if (Array.isArray(x)) return `[${x.map(short).join(", ")}]`;
  if (typeof x === "object") return scheduleText(x) || `{${Object.entries(x).map(([k, v]) => `${k}: ${short(v)}`).join(", ")}}`;
  return String(x);
}

/** Return a schedule to 0 as one types it, such as lin_0.001; of anything else an empty text. */
export function scheduleText(value: unknown): string {
  const { kind, start, end } = value as { kind?: string; start?: number; end?: number };
  const word = { linear: "lin", cosine: "cos" }[kind ?? ""];
  return word && end === 0 ? `${word}_${start}` : "";
}

/** Return a number with two digits. */
export const brief = (x: number): string => (Math.abs(x) >= 1e-3 && Math.abs(x) < 1e5 ? String(Number(x.toPrecision(2))) : short(x));

export const grouped = (x: number | undefined): string => (x === undefined ? "–" : Math.round(x).toLocaleString("en"));

/** Return the number that represents a value in a curve, or null if it has none. */
export function level(summary: Omit<Summary, "tick"> | undefined): number | null {
  if (!summary) return null;
  if (summary.kind === "array") return summary.mean ?? null;
  if (summary.kind === "value" && typeof summary.value === "number") return summary.value;
  if (summary.kind === "parts") return level(Object.values(summary.parts ?? {})[0]);
  if (summary.kind === "table") {
    const first = summary.entries?.return ?? summary.entries?.loss ?? Object.values(summary.entries ?? {})[0];
    return typeof first === "number" ? first : null;
  }
  return null;
}

export function shapeOf(summary: Omit<Summary, "tick"> | undefined): string {
  if (!summary) return "";
  if (summary.kind === "array") return `[${summary.shape?.join("×")}]`;
  if (summary.kind === "parts") return `{${Object.entries(summary.parts ?? {}).map(([name, part]) => `${name} ${shapeOf(part)}`.trim()).join(", ")}}`;
  if (summary.kind === "value") return short(summary.value);
  if (summary.kind === "table") return `${Object.keys(summary.entries ?? {}).length} numbers`;
  if (summary.kind === "list") return `${summary.length} items`;
  return summary.kind;
}

/** Split `node.port` at the last dot. */
export const endsOf = (end: string): [string, string] => {
  const dot = end.lastIndexOf(".");
  return [end.slice(0, dot), end.slice(dot + 1)];
};

export function ago(seconds: number): string {
  const s = Math.max(0, Date.now() / 1000 - seconds);
  if (s < 60) return "just now";
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ago`;
  return `${Math.floor(s / 86400)} d ago`;
}
