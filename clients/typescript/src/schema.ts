// Made from the service's OpenAPI document by `npm run types`; a test fails when it is not current.

/** What to do. */
export interface Act {
  action: number | number | unknown[] | Record<string, unknown>;
  began: boolean;
}

/** In the order they were asked for. */
export interface ActList {
  acts: Act[];
}

/** Many at a time. */
export interface Acts {
  acts: NewAct[];
}

/** One thing to choose; give one of `description`, `embedding` and `embedding_b64`. */
export interface Candidate {
  description?: string;
  embedding?: number[];
  embedding_b64?: string;
  id: string;
}

/** What would be chosen how often; nothing was decided. */
export interface Chances {
  distribution: number[];
  names: string[];
  /** Small letters, digits, - and _. */
  policy: string;
  policy_version: number;
}

/** A version under a name that stays. */
export interface Checkpoint {
  checkpoint_id: string;
  created_at: number;
  /** Small letters, digits, - and _. */
  policy: string;
  version: number;
}

/** What was chosen, and all that is needed to make sense of it later. */
export interface Decision {
  action: number;
  decision_id: string;
  distribution?: number[];
  expires_at: number;
  /** Default: "live" */
  mode: "apprentice" | "live" | "shadow";
  name: string;
  /** Small letters, digits, - and _. */
  policy: string;
  policy_version: number;
  probability: number;
}

/** In the order they were asked for. */
export interface DecisionList {
  decisions: Decision[];
}

/** Many at a time. */
export interface Decisions {
  decisions: NewDecision[];
}

/** A number and its 95 % interval. */
export interface Estimate {
  high: number;
  low: number;
  value: number;
}

/** Why it was chosen. */
export interface Explained {
  decision: Decision;
  distribution: number[];
  exploration: number;
  learned: number;
  /** Default: [] */
  nearest: Past[];
  prior: number;
  /** Default: null */
  reward: number | null;
}

/** Whether it lives. */
export interface Health {
  status: "draining" | "ok";
}

/** Something that takes a while. */
export interface Job {
  job_id: string;
  kind: "evaluation" | "update";
  /** Default: "" */
  message: string;
  /** Small letters, digits, - and _. */
  policy: string;
  /** Default: {} */
  result: Record<string, unknown>;
  state: "done" | "failed" | "running" | "waiting";
}

/** What is seen, laid flat: `observation` or `observation_b64`, or its named `parts` and `parts_b64`. */
export interface NewAct {
  /** Default: true */
  deterministic?: boolean;
  episode?: string;
  mask?: boolean[];
  observation?: number[];
  observation_b64?: string;
  parts?: Record<string, number[]>;
  parts_b64?: Record<string, string>;
  /** Default: false */
  start?: boolean;
}

/** Which version to name; the one that answers, if left out. */
export interface NewCheckpoint {
  version?: number;
}

/** What is seen; give one of `embedding`, `embedding_b64` and `text`. */
export interface NewDecision {
  action?: number;
  candidates?: Candidate[];
  decision_id?: string;
  /** Default: false */
  defer?: boolean;
  /** Default: false */
  deterministic?: boolean;
  /** Default: false */
  distribution?: boolean;
  embedding?: number[];
  embedding_b64?: string;
  episode?: string;
  mask?: boolean[];
  /** Default: "live" */
  mode?: "apprentice" | "live" | "shadow";
  subject?: string;
  text?: string;
}

/** What would another version have earned? */
export interface NewEvaluation {
  /** Default: 10000 */
  last?: number;
  version: number;
}

/** Learn now. */
export interface NewJob {
  least?: number;
}

/** A policy to be made: what it sees and what it may choose. */
export interface NewPolicy {
  /** Default: [] */
  actions?: string[];
  /** Default: "first" */
  aggregation?: "first" | "last" | "sum";
  /** Default: "actions" */
  choose?: "actions" | "candidates";
  /** Default: 0 */
  default_reward?: number;
  /** Default: 384 */
  embedding_size?: number;
  /** Default: "none" */
  encoder?: "hashing" | "none";
  /** Small letters, digits, - and _. */
  name: string;
  /** Default: 5 */
  prior?: number;
  /** Default: [-1,1] */
  reward_range?: [number, number];
  /** Default: 0 */
  seed?: number;
  training?: Training;
  /** Default: 600 */
  wait_seconds?: number;
}

/** What came of a decision. */
export interface NewReward {
  parts?: Record<string, number>;
  reward_id?: string;
  /** Default: true */
  terminated?: boolean;
  /** Default: false */
  truncated?: boolean;
  value?: number;
}

/** What the log says a version is worth. */
export interface OffPolicy {
  decisions: number;
  dr: Estimate;
  effective_sample_size: number;
  enough: boolean;
  ips: Estimate;
  logged: Estimate;
  snips: Estimate;
  version: number;
}

/** One part of an observation. */
export interface Part {
  dtype: string;
  shape: number[];
}

/** A decision that saw something alike, and what came of it. */
export interface Past {
  action: number;
  decision_id: string;
  likeness: number;
  reward: number;
}

/** A policy and how it is doing. */
export interface Policy {
  /** Default: [] */
  actions: string[];
  /** Default: "first" */
  aggregation: "first" | "last" | "sum";
  /** Default: null */
  canary: [number, number] | null;
  /** Default: "actions" */
  choose: "actions" | "candidates";
  /** Default: 0 */
  decisions: number;
  /** Default: 0 */
  default_reward: number;
  /** Default: 384 */
  embedding_size: number;
  /** Default: "none" */
  encoder: "hashing" | "none";
  /** Default: null */
  mean_reward: number | null;
  /** Small letters, digits, - and _. */
  name: string;
  /** Default: 0 */
  newest: number;
  /** Default: 5 */
  prior: number;
  /** Default: [-1,1] */
  reward_range: [number, number];
  /** Default: 0 */
  rewards: number;
  /** Default: 0 */
  seed: number;
  training: Training;
  /** Default: 0 */
  version: number;
  /** Default: 600 */
  wait_seconds: number;
}

/** RFC 9457. */
export interface Problem {
  detail: string;
  pointer?: string;
  request_id: string;
  status: number;
  title: string;
  type: string;
}

/** Which version answers from now on. */
export interface Promotion {
  /** Default: false */
  gate?: boolean;
  /** Default: 1 */
  share?: number;
  version: number;
}

/** The reward as it counts. */
export interface Reward {
  decision_id: string;
  status: "added" | "ignored" | "replayed" | "stored";
  value: number;
}

/** A trained policy that is served as it is. */
export interface Run {
  action: Record<string, unknown>;
  env: string;
  memory: boolean;
  name: string;
  observation: Record<string, Part>;
  steps: number;
}

/** When a policy learns by itself. */
export interface Training {
  /** Default: true */
  automatic?: boolean;
  /** Default: 0.2 */
  client_share?: number;
  /** Default: 128 */
  every?: number;
  /** Default: 64 */
  least?: number;
  /** Default: {} */
  settings?: Record<string, unknown>;
}

/** Weights that were learned. */
export interface Version {
  created_at: number;
  /** Default: false */
  live: boolean;
  /** Default: {} */
  metrics: Record<string, number | null>;
  /** Default: 0 */
  samples: number;
  version: number;
}

/** Newest first. */
export interface VersionList {
  versions: Version[];
}

/** What can be asked, by name: method and path. */
export interface Operations {
  /** It lives. Asked without a token. */
  health: ["GET", "/healthz"];
  /** Counters for Prometheus. */
  metrics: ["GET", "/metrics"];
  /** This description. */
  openapi: ["GET", "/openapi.json"];
  /** It answers. Asked without a token. */
  ready: ["GET", "/readyz"];
  /** Let the version of a checkpoint answer. */
  activateCheckpoint: ["POST", "/v1/checkpoints/{checkpoint}/activate"];
  /** Why an action was chosen, and what came of decisions like it. */
  explain: ["GET", "/v1/decisions/{decision}"];
  /** A deferred decision was carried out. */
  activate: ["POST", "/v1/decisions/{decision}/activate"];
  /** What came of a decision. */
  reward: ["POST", "/v1/decisions/{decision}/reward"];
  /** How far a job is. */
  getJob: ["GET", "/v1/jobs/{job}"];
  /** All policies. */
  listPolicies: ["GET", "/v1/policies"];
  /** Make a policy; the same again is the same policy. */
  createPolicy: ["POST", "/v1/policies"];
  /** How a policy is doing. */
  getPolicy: ["GET", "/v1/policies/{policy}"];
  /** Give a version a name that stays. */
  createCheckpoint: ["POST", "/v1/policies/{policy}/checkpoints"];
  /** Choose an action. Acknowledged means on the disk. */
  decide: ["POST", "/v1/policies/{policy}/decisions"];
  /** Choose many actions, all or none. */
  decideMany: ["POST", "/v1/policies/{policy}/decisions/batch"];
  /** What would be chosen how often. Nothing is decided or kept; a scope of its own, as it tells the whole policy. */
  distribution: ["POST", "/v1/policies/{policy}/distribution"];
  /** What another version would have earned, from the log. */
  evaluate: ["POST", "/v1/policies/{policy}/evaluations"];
  /** Let a version answer all decisions, or a share of them. */
  promote: ["POST", "/v1/policies/{policy}/promote"];
  /** Back to the version that answered before. */
  rollback: ["POST", "/v1/policies/{policy}/rollback"];
  /** Learn now, as a job. */
  update: ["POST", "/v1/policies/{policy}/updates"];
  /** What was learned, newest first. */
  listVersions: ["GET", "/v1/policies/{policy}/versions"];
  /** The trained policies that `surefoot serve RUN` serves. */
  listRuns: ["GET", "/v1/runs"];
  /** What a trained policy sees and does. */
  getRun: ["GET", "/v1/runs/{run}"];
  /** An action for an observation; nothing is kept. */
  act: ["POST", "/v1/runs/{run}/actions"];
  /** Actions for many observations. */
  actMany: ["POST", "/v1/runs/{run}/actions/batch"];
}
