// One line of telemetry.ndjson, version 2.0. Written by scripts/make_reference.py.

/** The start of a session: a new run, or an old one taken up again. Repeated at the head of each rotated part. */
export interface Header {
  kind: "run";
  /** Semantic version of the schema that wrote the line. */
  v: string;
  run: string;
  /** Strictly increasing over the life of the run, restarts included. */
  seq: number;
  /** Unix time in seconds. */
  t: number;
  env_steps: number;
  /** Updates finished when the line was written. */
  updates: number;
  /** {dotted field: "nan" | "inf" | "-inf"} for every number that JSON cannot hold; the field itself is null. */
  nonfinite?: Record<string, string>;
  env: string;
  seed: number;
  config: Record<string, unknown>;
  /** Names the process that writes; a repeated header keeps it, a resumed run gets another. */
  session: string;
  versions?: Record<string, string>;
  /** The command line that makes this run. */
  command?: string[];
  /** The command line that goes on with it. */
  resume_command?: string[];
  threads?: number | null;
  /** A resumed run is bit-exact. */
  exact?: boolean | null;
  /** Why not, where it is not. */
  exact_reason?: string;
  /** Which implementation learns: "native" or "torch". */
  path?: string;
  path_reason?: string;
  git_commit?: string | null;
  num_envs?: number | null;
  /** Env steps the run means to take. */
  total_steps?: number | null;
  /** Which processes step the envs and why, where that was a choice. */
  placement?: string;
}

/** What one update did; at a high rate, what several did together. */
export interface Update {
  kind: "update";
  /** Semantic version of the schema that wrote the line. */
  v: string;
  run: string;
  /** Strictly increasing over the life of the run, restarts included. */
  seq: number;
  /** Unix time in seconds. */
  t: number;
  env_steps: number;
  /** Updates finished when the line was written. */
  updates: number;
  /** {dotted field: "nan" | "inf" | "-inf"} for every number that JSON cannot hold; the field itself is null. */
  nonfinite?: Record<string, string>;
  /** The numbers of `METRICS` and any a use adds; the mean where the line covers several updates. */
  m: Record<string, number | null>;
  /** How many updates, the last of them number `updates`, this line stands for. */
  covers?: number;
  /** Smallest of each number that varied over the covered updates; likewise `m_max`. */
  m_min?: Record<string, number | null>;
  m_max?: Record<string, number | null>;
  /** One entry an epoch; only where the line covers a single update. */
  epochs?: (Record<string, number | null>)[];
  /** Where the time went, summed over the covered updates. */
  seconds?: Record<string, number | null>;
  episodes?: Episodes | null;
  /** `episode` lines left out since the last update because they came too fast; `episodes` counts them all. */
  episodes_dropped?: number;
  /** Covered updates that the target KL ended. */
  stopped_early?: number;
  /** Covered updates that were undone because their numbers left the finite. */
  rolled_back?: number;
  /** Why the last covered update that learned nothing did not. */
  skipped_reason?: string | null;
  /** Words beside the numbers: `data_mode`, `anneal_stage`. */
  labels?: Record<string, string>;
}

/** The episodes that ended while one rollout was collected; returns as the world paid them, unscaled. */
export interface Episodes {
  count: number;
  return_mean?: number | null;
  return_min?: number | null;
  return_max?: number | null;
  length_mean?: number | null;
  /** Share of those that said whether they succeeded; None if none did. */
  success_rate?: number | null;
}

/** One gradient step of an update. Optional, and sampled: `sample_rate` and `dropped` say how much is missing. */
export interface Minibatch {
  kind: "minibatch";
  /** Semantic version of the schema that wrote the line. */
  v: string;
  run: string;
  /** Strictly increasing over the life of the run, restarts included. */
  seq: number;
  /** Unix time in seconds. */
  t: number;
  env_steps: number;
  /** Updates finished when the line was written. */
  updates: number;
  /** {dotted field: "nan" | "inf" | "-inf"} for every number that JSON cannot hold; the field itself is null. */
  nonfinite?: Record<string, string>;
  epoch: number;
  /** Number of the gradient step within the update. */
  minibatch: number;
  m: Record<string, number | null>;
  /** Share of minibatches that the writer means to keep. */
  sample_rate?: number;
  /** Minibatches left out since the last such line. */
  dropped?: number;
}

/** One finished training episode. Sampled at a high rate (see `Update.episodes_dropped`). */
export interface Episode {
  kind: "episode";
  /** Semantic version of the schema that wrote the line. */
  v: string;
  run: string;
  /** Strictly increasing over the life of the run, restarts included. */
  seq: number;
  /** Unix time in seconds. */
  t: number;
  env_steps: number;
  /** Updates finished when the line was written. */
  updates: number;
  /** {dotted field: "nan" | "inf" | "-inf"} for every number that JSON cannot hold; the field itself is null. */
  nonfinite?: Record<string, string>;
  return: number | null;
  length: number;
  /** The stream it ran in. */
  env: number;
  /** False: it was truncated. */
  terminated?: boolean;
  success?: boolean | null;
}

/** Episodes played only to measure. */
export interface Evaluation {
  kind: "eval";
  /** Semantic version of the schema that wrote the line. */
  v: string;
  run: string;
  /** Strictly increasing over the life of the run, restarts included. */
  seq: number;
  /** Unix time in seconds. */
  t: number;
  env_steps: number;
  /** Updates finished when the line was written. */
  updates: number;
  /** {dotted field: "nan" | "inf" | "-inf"} for every number that JSON cannot hold; the field itself is null. */
  nonfinite?: Record<string, string>;
  episodes: number;
  return_mean: number | null;
  /** Population standard deviation. */
  return_std: number | null;
  return_min: number | null;
  return_max: number | null;
  length_mean: number | null;
  returns: (number | null)[];
  lengths: number[];
  success_rate?: number | null;
  /** Which weights played; None for the ones in memory. */
  checkpoint?: string | null;
  deterministic?: boolean | null;
}

/** Something worth knowing happened: "checkpoint", "resumed", "torn_tail", … */
export interface Event {
  kind: "event";
  /** Semantic version of the schema that wrote the line. */
  v: string;
  run: string;
  /** Strictly increasing over the life of the run, restarts included. */
  seq: number;
  /** Unix time in seconds. */
  t: number;
  env_steps: number;
  /** Updates finished when the line was written. */
  updates: number;
  /** {dotted field: "nan" | "inf" | "-inf"} for every number that JSON cannot hold; the field itself is null. */
  nonfinite?: Record<string, string>;
  name: string;
  message?: string;
  data?: Record<string, unknown>;
}

/** What an examination of the run found; said again with `status` "resolved" when it is over. */
export interface Finding {
  kind: "finding";
  /** Semantic version of the schema that wrote the line. */
  v: string;
  run: string;
  /** Strictly increasing over the life of the run, restarts included. */
  seq: number;
  /** Unix time in seconds. */
  t: number;
  env_steps: number;
  /** Updates finished when the line was written. */
  updates: number;
  /** {dotted field: "nan" | "inf" | "-inf"} for every number that JSON cannot hold; the field itself is null. */
  nonfinite?: Record<string, string>;
  /** Which rule fired: "R03". */
  rule: string;
  severity: "error" | "fatal" | "info" | "warn";
  /** The finding in one sentence. */
  title: string;
  status?: "open" | "resolved";
  /** The update it began at; `since_env_steps` likewise. */
  since_update?: number;
  since_env_steps?: number;
  /** The numbers that speak for it. */
  evidence?: Record<string, number | null>;
  /** What may be behind it, the likeliest first. */
  causes?: string[];
  /** Settings that would mend it, as --set takes them. */
  patch?: Record<string, unknown>;
  /** False: a consequence of another finding. */
  primary?: boolean;
}

/** The last line of a session. A record without it was cut short. */
export interface End {
  kind: "end";
  /** Semantic version of the schema that wrote the line. */
  v: string;
  run: string;
  /** Strictly increasing over the life of the run, restarts included. */
  seq: number;
  /** Unix time in seconds. */
  t: number;
  env_steps: number;
  /** Updates finished when the line was written. */
  updates: number;
  /** {dotted field: "nan" | "inf" | "-inf"} for every number that JSON cannot hold; the field itself is null. */
  nonfinite?: Record<string, string>;
  reason: "diverged" | "error" | "finished" | "interrupted";
  message?: string;
}

export type TelemetryRecord = Header | Update | Minibatch | Episode | Evaluation | Event | Finding | End;
