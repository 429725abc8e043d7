// Messages of the WebSocket; field names are those of the server.

export interface PortType {
  kind: string;
  text: string;
  dtype?: string;
  shape?: (number | string)[];
  tags?: string[];
}

export interface Port {
  name: string;
  type: PortType;
  help: string;
  optional: boolean;
}

export interface Param {
  name: string;
  type: string;
  default: unknown;
  required: boolean;
  legal: string;
  help: string;
}

export interface Kind {
  name: string;
  category: string;
  summary: string;
  inputs: Port[];
  outputs: Port[];
  params: Param[];
  presets: Record<string, Record<string, unknown>>;
  calls: string;
  effect: string;
  formula: string;
  paper: string;
  file: string;
}

export interface GraphNode {
  type: string;
  params?: Record<string, unknown>;
  /** mute: left out, bypass: replaced by its input. */
  mode?: "mute" | "bypass";
}

/** A comment behind the nodes. */
export interface Comment {
  text: string;
  at: [number, number];
  size: [number, number];
}

export interface GraphEdge {
  from: string;
  to: string;
  delay?: { initial?: unknown };
}

export interface Graph {
  name?: string;
  about?: string;
  nodes: Record<string, GraphNode>;
  edges: GraphEdge[];
  layout?: Record<string, [number, number]>;
  graphs?: Record<string, Graph>;
  frames?: Record<string, Comment>;
  run: { seed: number; total_steps: number; path: string };
}

export interface CheckFinding {
  level: "error" | "lint";
  code: string;
  node: string;
  port: string;
  message: string;
  nodes: string[];
  /** Description of what the Fix button would do. */
  fix?: string;
}

export interface Check {
  ok: boolean;
  findings: CheckFinding[];
  order: string[];
  outputs: Record<string, { type: PortType; clock: string }>;
}

export interface Doc {
  doc: string;
  version: number;
  graph: Graph;
  check: Check;
  inside: Record<string, Check>;
  done: number;
  undone: number;
}

export interface Summary {
  tick: number;
  kind: string;
  shape?: number[];
  dtype?: string;
  nonfinite?: number;
  mean?: number;
  std?: number;
  min?: number;
  max?: number;
  histogram?: number[];
  edges?: [number, number];
  first?: number[];
  value?: unknown;
  length?: number;
  entries?: Record<string, number | string>;
  parts?: Record<string, Omit<Summary, "tick">>;
}

export interface Finding {
  rule: string;
  severity: "info" | "warn" | "error" | "fatal";
  status: "open" | "resolved";
  since_update: number;
  title: string;
  evidence: Record<string, number | null>;
  causes: string[];
  patch: Record<string, unknown>;
  primary: boolean;
  /** the finding that explains this one; empty for a cause */
  root: string;
  node: string;
}

export type Row = Record<string, number | null>;

export interface RunError {
  message: string;
  node: string;
  tick: number;
  inputs: Record<string, Omit<Summary, "tick">>;
}

export interface Status {
  doc: string;
  run: string;
  state: "starting" | "running" | "paused" | "finished" | "stopped" | "failed";
  why: string;
  error: RunError | null;
  sha256: string;
  total_ticks: number;
  order: string[];
  tick?: number;
  updates?: number;
  env_steps?: number;
  next?: string;
  ticks_per_second?: number;
  shares?: Record<string, number>;
  waiting?: number;
}

export interface Frame {
  kind: string;
  env_id: string;
  step: string;
  tick: number;
  states: number[][];
  pictures?: string[];
  /** Why there is no picture. */
  why?: string;
}

/** A run that waits for the active one. */
export interface Waiting {
  id: number;
  doc: string;
  label: string;
}

export interface SavedNode {
  name: string;
  inputs: string[];
  outputs: string[];
}

/** One stream of a trainer's last rollout. */
export interface Advantages {
  update: number;
  gamma: number;
  lam: number;
  stream: number;
  streams: number;
  rows: { reward: number; value: number; next: number; delta: number; advantage: number; ended: boolean }[];
}

export interface BreakCondition {
  end: string;
  test: string;
  limit: number;
  key: string;
}

export interface Template {
  name: string;
  about: string;
  graph: Graph;
}

export interface Hello {
  catalogue: Kind[];
  templates: Template[];
  documents: { name: string; changed: number; graph: Pick<Graph, "nodes" | "edges" | "layout"> | null }[];
  metrics: Record<string, { healthy: [number, number] | null; meaning: string }>;
  panels: string[];
  session: (Status & { curves: Row[]; findings: Finding[] }) | null;
  breaks: BreakCondition[];
  pace: number;
  queue: Waiting[];
  saved_nodes: SavedNode[];
}

export interface RunRow {
  run: string;
  env: string;
  state: string;
  env_steps: number;
  score: number | null;
  return: number | null;
  finding: string | null;
  graph: boolean;
  document: string;
  created: string;
  total_steps: number | null;
  checkpoint: boolean;
  tags: string[];
}

export interface Curve {
  mean: (number | null)[];
  min: (number | null)[];
  max: (number | null)[];
}

export interface RunPage {
  env: string;
  run: string;
  state_text: string;
  facts: { label: string; value: string; note: string }[];
  x: { env_steps: number[]; updates: number[]; elapsed: number[] };
  returns: Curve;
  panels: (Curve & { name: string; meaning: string; healthy: [number, number] | null; bad: number[] })[];
  findings: { rule: string; severity: string; status: string; title: string; evidence: string; causes: string[]; patch: string }[];
  config: [string, string][];
}

export interface Compared {
  what: string;
  groups: {
    label: string;
    runs: string[];
    scores: number[];
    count: number;
    iqm: number;
    minimum: number;
    maximum: number;
    steps: number[];
    middle: number[];
    low: number[];
    high: number[];
  }[];
  different: Record<string, string[]>;
  runs: string[];
  first_above_second?: number;
}

export interface SearchRow {
  search: string;
  of: string;
  state: "running" | "ended" | "stopped" | "unreadable";
  why?: string;
  begun?: number;
  planned?: number;
  best?: number | null;
  score?: number | null;
  base?: number | null;
  fresh?: boolean;
}

export interface Trial {
  number: number;
  state: string;
  score: number | null;
  params: Record<string, unknown>;
  rungs: (number | null)[];
  scores: (number | null)[];
  seconds: number | null;
  why: string | null;
}

export interface Search extends SearchRow {
  seeds: number;
  rungs: number;
  graph: boolean;
  names: string[];
  trials: Trial[];
  so_far: (number | null)[];
  importance: Record<string, number>;
  finals: { number: number; score: number | null }[];
  settings: string;
}

export type Op = { op: string; [key: string]: unknown };
