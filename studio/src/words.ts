// Numbers and values as people read them.

import type { Summary } from "./types";

export function short(x: unknown): string {
  if (x === null || x === undefined) return "–";
  if (typeof x === "number") {
    if (!Number.isFinite(x)) return String(x);
    const size = Math.abs(x);
    if (size !== 0 && (size >= 1e5 || size < 1e-3)) return x.toExponential(1).replace("e+", "e");
    return Number.isInteger(x) ? String(x) : x.toPrecision(3);
  }
  if (typeof x === "boolean") return x ? "yes" : "no";
  if (Array.isArray(x)) return `[${x.map(short).join(", ")}]`;
  if (typeof x === "object") return `{${Object.entries(x).map(([k, v]) => `${k}: ${short(v)}`).join(", ")}}`;
  return String(x);
}

export const grouped = (x: number | undefined): string => (x === undefined ? "–" : Math.round(x).toLocaleString("en"));

/** The one number that stands for a value, if there is one. */
export function level(seen: Omit<Summary, "tick"> | undefined): number | null {
  if (!seen) return null;
  if (seen.kind === "array") return seen.mean ?? null;
  if (seen.kind === "value" && typeof seen.value === "number") return seen.value;
  if (seen.kind === "parts") return level(Object.values(seen.parts ?? {})[0]);
  if (seen.kind === "table") {
    const first = seen.entries?.return ?? seen.entries?.loss ?? Object.values(seen.entries ?? {})[0];
    return typeof first === "number" ? first : null;
  }
  return null;
}

export function shapeOf(seen: Omit<Summary, "tick"> | undefined): string {
  if (!seen) return "";
  if (seen.kind === "array") return `[${seen.shape?.join("×")}]`;
  if (seen.kind === "parts") return `{${Object.entries(seen.parts ?? {}).map(([name, part]) => `${name} ${shapeOf(part)}`.trim()).join(", ")}}`;
  if (seen.kind === "value") return short(seen.value);
  if (seen.kind === "table") return `${Object.keys(seen.entries ?? {}).length} numbers`;
  if (seen.kind === "list") return `${seen.length} items`;
  return seen.kind;
}

export const endsOf = (end: string): [string, string] => {
  const at = end.lastIndexOf(".");
  return [end.slice(0, at), end.slice(at + 1)];
};

export function ago(seconds: number): string {
  const s = Math.max(0, Date.now() / 1000 - seconds);
  if (s < 60) return "just now";
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ago`;
  return `${Math.floor(s / 86400)} d ago`;
}
