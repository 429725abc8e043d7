// Made from the service's OpenAPI document by `npm run types`; a test fails when it is not current.

/** An action. */
export interface Act {
  action: number | number | unknown[] | Record<string, unknown>;
  began: boolean;
}

/** Actions in the order of the request. */
export interface ActList {
  acts: Act[];
}

/** Outcomes of one action. */
export interface ActionStatistics {
  high: number | null;
  low: number | null;
  name: string;
  outcomes: number;
  reward: number;
  share: number;
}

/** Many observations in one request. */
export interface Acts {
  acts: NewAct[];
}

/** Decisions with a similar expected success rate. */
export interface CalibrationBin {
  expected: number;
  observed: number;
  weight: number;
}

/** One option; send one of `description`, `embedding` and `embedding_b64`. */
export interface Candidate {
  description?: string;
  embedding?: number[];
  embedding_b64?: string;
  id: string;
}

/** Probabilities of all choices; no decision was made. */
export interface Chances {
  distribution: number[];
  names: string[];
  /** Lower-case letters, digits, - and _. */
  policy: string;
  policy_version: number;
}

/** A permanently named version. */
export interface Checkpoint {
  checkpoint_id: string;
  created_at: number;
  /** Lower-case letters, digits, - and _. */
  policy: string;
  version: number;
}

/** The chosen action, with probability and policy version. */
export interface Decision {
  /** Default: false */
  abstained: boolean;
  action: number | null;
  /** Default: 0 */
  confidence: number;
  decision_id: string;
  distribution?: number[];
  expires_at: number;
  /** Default: "live" */
  mode: "apprentice" | "live" | "shadow";
  name: string | null;
  /** Lower-case letters, digits, - and _. */
  policy: string;
  policy_version: number;
  probability: number;
}

/** Decisions in the order of the request. */
export interface DecisionList {
  decisions: Decision[];
}

/** Past decisions, newest first. */
export interface DecisionLog {
  /** Default: null */
  before: number | null;
  decisions: LoggedDecision[];
}

/** Many decisions in one request. */
export interface Decisions {
  decisions: NewDecision[];
}

/** A policy that was deleted. */
export interface Deleted {
  decisions: number;
  /** Lower-case letters, digits, - and _. */
  policy: string;
}

/** An estimate and its 95 % interval. */
export interface Estimate {
  high: number;
  low: number;
  value: number;
}

/** Explanation of a decision. */
export interface Explained {
  decision: Decision;
  distribution: number[];
  exploration: number;
  learned: number;
  names: string[];
  /** Default: [] */
  nearest: Past[];
  prior: number;
  /** Default: null */
  reward: number | null;
}

/** State of the service. */
export interface Health {
  status: "draining" | "ok";
}

/** State of a background job. */
export interface Job {
  job_id: string;
  kind: "evaluation" | "update";
  /** Default: "" */
  message: string;
  /** Lower-case letters, digits, - and _. */
  policy: string;
  /** Default: {} */
  result: Record<string, unknown>;
  state: "done" | "failed" | "running" | "waiting";
}

/** A past decision and its reward. */
export interface LoggedDecision {
  abstained: boolean;
  confidence: number;
  decision_id: string;
  mode: "apprentice" | "live" | "shadow";
  name: string | null;
  number: number;
  policy_version: number;
  probability: number;
  /** Default: null */
  reward: number | null;
  time: number;
}

/** A flattened observation: `observation` or `observation_b64`, or named `parts` and `parts_b64`. */
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

/** The version to name; default: the live one. */
export interface NewCheckpoint {
  name?: string;
  version?: number;
}

/** The input of a decision; send one of `embedding`, `embedding_b64` and `text`. */
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
  features?: Record<string, number | boolean | string>;
  mask?: boolean[];
  /** Default: "live" */
  mode?: "apprentice" | "live" | "shadow";
  subject?: string;
  text?: string;
}

/** Off-policy evaluation of a version. */
export interface NewEvaluation {
  /** Default: 10000 */
  last?: number;
  version: number;
}

/** A learning job. */
export interface NewJob {
  least?: number;
}

/** A policy to create: its input and its choices. */
export interface NewPolicy {
  /** Default: null */
  abstain_below?: number | null;
  /** Default: [] */
  actions?: string[];
  /** Default: "first" */
  aggregation?: "first" | "last" | "sum";
  /** Default: "actions" */
  choose?: "actions" | "candidates";
  /** Default: 0 */
  default_reward?: number;
  /** Default: {} */
  description_embeddings?: Record<string, number[]>;
  /** Default: {} */
  descriptions?: Record<string, string>;
  /** Default: 384 */
  embedding_size?: number;
  /** Default: "none" */
  encoder?: "hashing" | "none";
  /** Default: 0 */
  feature_size?: number;
  /** Lower-case letters, digits, - and _. */
  name: string;
  /** Default: 1 */
  prior?: number;
  /** Default: [0,1] */
  reward_range?: [number, number];
  /** Default: 0 */
  seed?: number;
  training?: Training;
  /** Default: 600 */
  wait_seconds?: number;
}

/** The outcome of a decision. */
export interface NewReward {
  parts?: Record<string, number>;
  reward_id?: string;
  /** Default: true */
  terminated?: boolean;
  /** Default: false */
  truncated?: boolean;
  value?: number;
}

/** Off-policy estimates of a version's mean reward. */
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

/** A similar past decision and its reward. */
export interface Past {
  decision_id: string;
  likeness: number;
  name: string;
  reward: number;
}

/** A policy and its statistics. */
export interface Policy {
  /** Default: null */
  abstain_below: number | null;
  /** Default: [] */
  actions: string[];
  /** Default: "first" */
  aggregation: "first" | "last" | "sum";
  /** Default: null */
  calibration_error: number | null;
  /** Default: null */
  canary: [number, number] | null;
  /** Default: "actions" */
  choose: "actions" | "candidates";
  /** Default: 0 */
  decisions: number;
  /** Default: 0 */
  default_reward: number;
  /** Default: {} */
  description_embeddings: Record<string, number[]>;
  /** Default: {} */
  descriptions: Record<string, string>;
  /** Default: 384 */
  embedding_size: number;
  /** Default: "none" */
  encoder: "hashing" | "none";
  /** Default: 0 */
  feature_size: number;
  /** Default: false */
  frozen: boolean;
  /** Default: null */
  mean_reward: number | null;
  /** Lower-case letters, digits, - and _. */
  name: string;
  /** Default: 0 */
  newest: number;
  /** Default: 0 */
  outcomes: number;
  /** Default: 1 */
  prior: number;
  /** Default: [] */
  retired: string[];
  /** Default: [0,1] */
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

/** Changes of a policy; what is omitted stays unchanged. */
export interface PolicyChange {
  abstain_below?: number | null;
  /** Default: [] */
  add_actions?: string[];
  /** Default: {} */
  description_embeddings?: Record<string, number[]>;
  /** Default: {} */
  descriptions?: Record<string, string>;
  frozen?: boolean;
  /** Lower-case letters, digits, - and _. */
  name?: string;
  /** Default: [] */
  retire_actions?: string[];
}

/** Actions and calibration of a policy over its last outcomes, at most 20,000. */
export interface PolicyStatistics {
  actions: ActionStatistics[];
  calibration: CalibrationBin[];
  outcomes: number;
  /** Lower-case letters, digits, - and _. */
  policy: string;
}

/** An error, as RFC 9457 problem. */
export interface Problem {
  detail: string;
  pointer?: string;
  request_id: string;
  status: number;
  title: string;
  type: string;
}

/** The version to make live. */
export interface Promotion {
  /** Default: false */
  gate?: boolean;
  /** Default: 1 */
  share?: number;
  version: number;
}

/** The reward that counts for the decision. */
export interface Reward {
  decision_id: string;
  status: "added" | "ignored" | "replayed" | "stored";
  value: number;
}

/** A trained policy, served without learning. */
export interface Run {
  action: Record<string, unknown>;
  env: string;
  memory: boolean;
  name: string;
  observation: Record<string, Part>;
  steps: number;
}

/** Automatic learning of a policy. */
export interface Training {
  /** Default: true */
  automatic?: boolean;
  /** Default: 0.2 */
  client_share?: number;
  /** Default: 128 */
  every?: number;
  /** Default: 1 */
  least?: number;
  /** Default: {} */
  settings?: Record<string, number>;
}

/** A version of the policy's weights. */
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

/** Versions, newest first. */
export interface VersionList {
  versions: Version[];
}

/** Operations by name: method and path. */
export interface Operations {
  /** Liveness probe. No authentication. */
  health: ["GET", "/healthz"];
  /** Metrics in Prometheus format. */
  metrics: ["GET", "/metrics"];
  /** This OpenAPI document. */
  openapi: ["GET", "/openapi.json"];
  /** Readiness probe. No authentication. */
  ready: ["GET", "/readyz"];
  /** Make the version of a checkpoint live. */
  activateCheckpoint: ["POST", "/v1/checkpoints/{checkpoint}/activate"];
  /** Explain a decision, with similar past decisions and their rewards. */
  explain: ["GET", "/v1/decisions/{decision}"];
  /** Report that a deferred decision was carried out. */
  activate: ["POST", "/v1/decisions/{decision}/activate"];
  /** Report the reward of a decision. */
  reward: ["POST", "/v1/decisions/{decision}/reward"];
  /** Return the state of a job. */
  getJob: ["GET", "/v1/jobs/{job}"];
  /** List the policies. */
  listPolicies: ["GET", "/v1/policies"];
  /** Create a policy; repeating the same request returns the same policy. */
  createPolicy: ["POST", "/v1/policies"];
  /** Delete a policy with its versions, decisions and rewards. */
  deletePolicy: ["DELETE", "/v1/policies/{policy}"];
  /** Return the configuration and statistics of a policy. */
  getPolicy: ["GET", "/v1/policies/{policy}"];
  /** Rename or freeze a policy; add, describe or retire actions. */
  changePolicy: ["PATCH", "/v1/policies/{policy}"];
  /** Name a version permanently. */
  createCheckpoint: ["POST", "/v1/policies/{policy}/checkpoints"];
  /** List past decisions, newest first. */
  listDecisions: ["GET", "/v1/policies/{policy}/decisions"];
  /** Choose an action. The decision is on disk when the response arrives. */
  decide: ["POST", "/v1/policies/{policy}/decisions"];
  /** Export past decisions as CSV, newest first. */
  exportCsv: ["GET", "/v1/policies/{policy}/decisions.csv"];
  /** Export past decisions, one JSON object per line, newest first. */
  exportNdjson: ["GET", "/v1/policies/{policy}/decisions.ndjson"];
  /** Choose many actions in one request, all or none. */
  decideMany: ["POST", "/v1/policies/{policy}/decisions/batch"];
  /** Return the probability of every choice without deciding. Needs the scope `distribution`, as it reveals the policy. */
  distribution: ["POST", "/v1/policies/{policy}/distribution"];
  /** Estimate from the log what another version would have earned. */
  evaluate: ["POST", "/v1/policies/{policy}/evaluations"];
  /** Make a version live for all decisions, or for a share of them. */
  promote: ["POST", "/v1/policies/{policy}/promote"];
  /** Make the previously live version live again. */
  rollback: ["POST", "/v1/policies/{policy}/rollback"];
  /** Return the share and the mean reward of each action, and the calibration. */
  statistics: ["GET", "/v1/policies/{policy}/statistics"];
  /** Start a learning job. */
  update: ["POST", "/v1/policies/{policy}/updates"];
  /** List the versions, newest first. */
  listVersions: ["GET", "/v1/policies/{policy}/versions"];
  /** List the trained policies that `surefoot serve RUN` serves. */
  listRuns: ["GET", "/v1/runs"];
  /** Return the observation and action spaces of a trained policy. */
  getRun: ["GET", "/v1/runs/{run}"];
  /** Return an action for an observation; nothing is stored. */
  act: ["POST", "/v1/runs/{run}/actions"];
  /** Return actions for many observations. */
  actMany: ["POST", "/v1/runs/{run}/actions/batch"];
}
