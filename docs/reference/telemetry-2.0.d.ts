// One line of telemetry.ndjson, version 2.0. Written by scripts/make_reference.py.

/** The start of a session, of a new or a resumed run. Repeated at the beginning of each rotated part. */
export interface Header {
  kind: "run";
  /** Semantic version of the schema that wrote the line. */
  v: string;
  run: string;
  /** Strictly increasing over all sessions of the run. */
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
  /** Identifies the writing process; a repeated header has the same one, a resumed run another. */
  session: string;
  versions?: Record<string, string>;
  /** The command line that reproduces this run. */
  command?: string[];
  /** The command line that resumes it. */
  resume_command?: string[];
  threads?: number | null;
  /** Whether a resumed run is bit-exact. */
  exact?: boolean | null;
  /** Why it is not bit-exact. */
  exact_reason?: string;
  /** The implementation of the learner: "native" or "torch". */
  path?: string;
  path_reason?: string;
  git_commit?: string | null;
  num_envs?: number | null;
  /** Planned number of env steps. */
  total_steps?: number | null;
  /** Which processes step the envs and why, if that was chosen automatically. */
  placement?: string;
}

/** The metrics of one update; at a high rate, of several updates together. */
export interface Update {
  kind: "update";
  /** Semantic version of the schema that wrote the line. */
  v: string;
  run: string;
  /** Strictly increasing over all sessions of the run. */
  seq: number;
  /** Unix time in seconds. */
  t: number;
  env_steps: number;
  /** Updates finished when the line was written. */
  updates: number;
  /** {dotted field: "nan" | "inf" | "-inf"} for every number that JSON cannot hold; the field itself is null. */
  nonfinite?: Record<string, string>;
  /** The numbers of `METRICS` and any that a use adds; means if the line covers several updates. */
  m: Record<string, number | null>;
  /** Number of updates that this line covers; the last of them is number `updates`. */
  covers?: number;
  /** Minimum of each number that varied over the covered updates; `m_max` has the maximum. */
  m_min?: Record<string, number | null>;
  m_max?: Record<string, number | null>;
  /** One entry per epoch; only if the line covers a single update. */
  epochs?: (Record<string, number | null>)[];
  /** Time spent per phase, summed over the covered updates. */
  seconds?: Record<string, number | null>;
  episodes?: Episodes | null;
  /** `episode` lines left out since the last update because they came too fast; `episodes` counts them all. */
  episodes_dropped?: number;
  /** Covered updates that the target KL ended. */
  stopped_early?: number;
  /** Covered updates that were rolled back because their numbers were not finite. */
  rolled_back?: number;
  /** Why the last covered update that learned nothing was skipped. */
  skipped_reason?: string | null;
  /** Text values beside the numbers: `data_mode`, `anneal_stage`. */
  labels?: Record<string, string>;
}

/** The episodes that ended during one rollout. Returns are sums of the environment's rewards, unscaled. */
export interface Episodes {
  count: number;
  return_mean?: number | null;
  return_min?: number | null;
  return_max?: number | null;
  length_mean?: number | null;
  /** Share of successes among the episodes that reported success or failure; None if none did. */
  success_rate?: number | null;
}

/** One gradient step of an update. Optional and sampled: `sample_rate` and `dropped` report how many are missing. */
export interface Minibatch {
  kind: "minibatch";
  /** Semantic version of the schema that wrote the line. */
  v: string;
  run: string;
  /** Strictly increasing over all sessions of the run. */
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
  /** Share of minibatches that are recorded. */
  sample_rate?: number;
  /** Minibatches left out since the last such line. */
  dropped?: number;
}

/** One finished training episode. Sampled at a high rate (see `episodes_dropped` of an update). */
export interface Episode {
  kind: "episode";
  /** Semantic version of the schema that wrote the line. */
  v: string;
  run: string;
  /** Strictly increasing over all sessions of the run. */
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
  /** Index of the environment it ran in. */
  env: number;
  /** False if it was truncated. */
  terminated?: boolean;
  success?: boolean | null;
}

/** Episodes played to evaluate the policy. */
export interface Evaluation {
  kind: "eval";
  /** Semantic version of the schema that wrote the line. */
  v: string;
  run: string;
  /** Strictly increasing over all sessions of the run. */
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
  /** The evaluated checkpoint; None for the weights in memory. */
  checkpoint?: string | null;
  deterministic?: boolean | null;
}

/** A notable event: "checkpoint", "resumed", "torn_tail", … */
export interface Event {
  kind: "event";
  /** Semantic version of the schema that wrote the line. */
  v: string;
  run: string;
  /** Strictly increasing over all sessions of the run. */
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

/** A finding of the doctor; written again with `status` "resolved" when the problem is gone. */
export interface Finding {
  kind: "finding";
  /** Semantic version of the schema that wrote the line. */
  v: string;
  run: string;
  /** Strictly increasing over all sessions of the run. */
  seq: number;
  /** Unix time in seconds. */
  t: number;
  env_steps: number;
  /** Updates finished when the line was written. */
  updates: number;
  /** {dotted field: "nan" | "inf" | "-inf"} for every number that JSON cannot hold; the field itself is null. */
  nonfinite?: Record<string, string>;
  /** The rule that fired: "R03". */
  rule: string;
  severity: "error" | "fatal" | "info" | "warn";
  /** The finding in one sentence. */
  title: string;
  status?: "open" | "resolved";
  /** The update at which it began; `since_env_steps` is the env step. */
  since_update?: number;
  since_env_steps?: number;
  /** The numbers that support it. */
  evidence?: Record<string, number | null>;
  /** Possible causes, the likeliest first. */
  causes?: string[];
  /** Settings that may fix it, as --set takes them. */
  patch?: Record<string, unknown>;
  /** False for a consequence of another finding. */
  primary?: boolean;
}

/** The last line of a session. A record without it is of a run that was killed or still runs. */
export interface End {
  kind: "end";
  /** Semantic version of the schema that wrote the line. */
  v: string;
  run: string;
  /** Strictly increasing over all sessions of the run. */
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
