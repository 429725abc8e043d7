/** Client of the decision service: one method per operation. */

import { base64OfFloats } from "./base64.js";
import { SurefootError } from "./errors.js";
import { newId } from "./ids.js";
import type {
  Act,
  ActList,
  Candidate,
  Chances,
  Checkpoint,
  Decision,
  DecisionList,
  DecisionLog,
  Deleted,
  Explained,
  Health,
  Job,
  NewAct,
  NewDecision,
  NewPolicy,
  NewReward,
  OffPolicy,
  Policy,
  PolicyChange,
  PolicyStatistics,
  Reward,
  Run,
  Version,
  VersionList,
} from "./schema.js";
import { Transport, sleep, type CallOptions, type Options } from "./transport.js";

/** Input of a decision: `text` or an `embedding`. A Float32Array is sent as base64, other numbers as JSON. */
export type DecisionInput = Omit<NewDecision, "embedding" | "embedding_b64" | "candidates"> & {
  embedding?: Float32Array | readonly number[];
  candidates?: readonly CandidateInput[];
};

/** A flat observation, or its named `parts`. A Float32Array is sent as base64. */
export type ActInput = Omit<NewAct, "observation" | "observation_b64" | "parts" | "parts_b64"> & {
  observation?: Float32Array | readonly number[];
  parts?: Readonly<Record<string, Float32Array | readonly number[]>>;
};

/** One option to choose from, with its `description` or an `embedding`. */
export type CandidateInput = Omit<Candidate, "embedding" | "embedding_b64"> & {
  embedding?: Float32Array | readonly number[];
};

export class Surefoot {
  /** Sends requests; use it for operations without a method. */
  readonly transport: Transport;

  constructor(options: Options = {}) {
    this.transport = new Transport(options);
  }

  /** Liveness probe; no authentication. */
  health(options?: CallOptions): Promise<Health> {
    return this.get("/healthz", options);
  }

  /** Readiness probe; rejects with `Unavailable` while the service shuts down. */
  ready(options?: CallOptions): Promise<Health> {
    return this.get("/readyz", options);
  }

  /** Metrics in the Prometheus text format. */
  metrics(options?: CallOptions): Promise<string> {
    return this.get("/metrics", options);
  }

  policies(options?: CallOptions): Promise<Policy[]> {
    return this.get("/v1/policies", options);
  }

  policy(name: string, options?: CallOptions): Promise<Policy> {
    return this.get(policyPath(name), options);
  }

  /** Create a policy. Repeating the call returns the same policy; other settings under an existing name reject with `Conflict`. */
  createPolicy(policy: NewPolicy, options?: CallOptions): Promise<Policy> {
    return this.post("/v1/policies", policy, options);
  }

  /** Choose an action. The client generates `decision_id` unless you pass one, so that a retry returns the same decision. */
  decide(policy: string, input: DecisionInput, options?: CallOptions): Promise<Decision> {
    return this.post(`${policyPath(policy)}/decisions`, decisionBody(input), options);
  }

  /** Choose several actions in one request; if one input is invalid, none is stored. */
  async decideMany(policy: string, inputs: readonly DecisionInput[], options?: CallOptions): Promise<Decision[]> {
    const body = { decisions: inputs.map(decisionBody) };
    return (await this.post<DecisionList>(`${policyPath(policy)}/decisions/batch`, body, options)).decisions;
  }

  /** Return the probabilities of the actions without making or storing a decision. */
  distribution(policy: string, input: DecisionInput, options?: CallOptions): Promise<Chances> {
    return this.post(`${policyPath(policy)}/distribution`, decisionBody(input), options);
  }

  /** The trained policies that `surefoot serve RUN` serves. */
  runs(options?: CallOptions): Promise<Run[]> {
    return this.get("/v1/runs", options);
  }

  run(name: string, options?: CallOptions): Promise<Run> {
    return this.get(`/v1/runs/${encodeURIComponent(name)}`, options);
  }

  /** Return the action of a trained policy for an observation. */
  act(run: string, input: ActInput, options?: CallOptions): Promise<Act> {
    return this.post(`/v1/runs/${encodeURIComponent(run)}/actions`, observationBody(input), options);
  }

  async actMany(run: string, inputs: readonly ActInput[], options?: CallOptions): Promise<Act[]> {
    const body = { acts: inputs.map(observationBody) };
    return (await this.post<ActList>(`/v1/runs/${encodeURIComponent(run)}/actions/batch`, body, options)).acts;
  }

  /**
   * Report the reward of a decision: a number, or a value with its parts and the end of the episode. Repeated reports count
   * once, unless the policy's `aggregation` is `sum`: pass `maxRetries: 0` there.
   */
  reward(decision: string, reward: number | NewReward, options?: CallOptions): Promise<Reward> {
    const body = typeof reward === "number" ? { value: reward } : reward;
    return this.post(`/v1/decisions/${encodeURIComponent(decision)}/reward`, body, options);
  }

  /** Report that a deferred decision was carried out. */
  activate(decision: string, options?: CallOptions): Promise<Decision> {
    return this.post(`/v1/decisions/${encodeURIComponent(decision)}/activate`, undefined, options);
  }

  /** Explain why an action was chosen, with the rewards of similar decisions. */
  explain(decision: string, options?: CallOptions): Promise<Explained> {
    return this.get(`/v1/decisions/${encodeURIComponent(decision)}`, options);
  }

  /** Rename or freeze a policy; add, describe or retire actions. */
  changePolicy(policy: string, changes: PolicyChange, options?: CallOptions): Promise<Policy> {
    return this.transport.send({ method: "PATCH", path: policyPath(policy), body: changes, repeatable: false }, options) as Promise<Policy>;
  }

  /** Delete a policy with its versions, decisions and rewards. */
  deletePolicy(policy: string, options?: CallOptions): Promise<Deleted> {
    return this.transport.send({ method: "DELETE", path: policyPath(policy), repeatable: false }, options) as Promise<Deleted>;
  }

  /** Past decisions, newest first. */
  decisions(policy: string, query: Readonly<Record<string, string | number | boolean>> = {}, options?: CallOptions): Promise<DecisionLog> {
    const text = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, `${value}`])).toString();
    return this.get(`${policyPath(policy)}/decisions${text && `?${text}`}`, options);
  }

  /** Share and mean reward of each action, and the calibration. */
  statistics(policy: string, options?: CallOptions): Promise<PolicyStatistics> {
    return this.get(`${policyPath(policy)}/statistics`, options);
  }

  /** List the versions of a policy, newest first. */
  async versions(policy: string, options?: CallOptions): Promise<Version[]> {
    return (await this.get<VersionList>(`${policyPath(policy)}/versions`, options)).versions;
  }

  /** Make a version live: for a `share` of the decisions (canary), or with `gate` only if the log shows that it is not worse. */
  promote(policy: string, version: number, options: PromoteOptions = {}): Promise<Policy> {
    const { share, gate, ...call } = options;
    return this.post(`${policyPath(policy)}/promote`, { version, ...defined({ share, gate }) }, call);
  }

  /** Return to the version that was live before. */
  rollback(policy: string, options?: CallOptions): Promise<Policy> {
    return this.once(`${policyPath(policy)}/rollback`, undefined, options);
  }

  /** Estimate the mean reward of a version from the logged decisions (off-policy evaluation). */
  evaluate(policy: string, version: number, options: CallOptions & { last?: number } = {}): Promise<OffPolicy> {
    const { last, ...call } = options;
    return this.post(`${policyPath(policy)}/evaluations`, { version, ...defined({ last }) }, call);
  }

  /** Start an update and return its job; `finished` waits for it. */
  update(policy: string, options: CallOptions & { least?: number } = {}): Promise<Job> {
    const { least, ...call } = options;
    return this.once(`${policyPath(policy)}/updates`, defined({ least }), call);
  }

  job(id: string, options?: CallOptions): Promise<Job> {
    return this.get(`/v1/jobs/${encodeURIComponent(id)}`, options);
  }

  /** Wait for a job, polling it every `every` milliseconds; rejects if it failed. */
  async finished(job: Job | string, options: CallOptions & { every?: number } = {}): Promise<Job> {
    const { every = 200, ...call } = options;
    const id = typeof job === "string" ? job : job.job_id;
    for (;;) {
      const current = await this.job(id, call);
      if (current.state === "done") return current;
      if (current.state === "failed") throw new SurefootError(`job ${id} failed: ${current.message}`);
      await sleep(every, call.signal);
    }
  }

  /** Save a version (default: the live one) as a checkpoint, which is never deleted. */
  checkpoint(policy: string, options: CallOptions & { version?: number } = {}): Promise<Checkpoint> {
    const { version, ...call } = options;
    return this.post(`${policyPath(policy)}/checkpoints`, defined({ version }), call);
  }

  /** Make the version of a checkpoint live. */
  activateCheckpoint(id: string, options?: CallOptions): Promise<Policy> {
    return this.post(`/v1/checkpoints/${encodeURIComponent(id)}/activate`, undefined, options);
  }

  private get<T>(path: string, options?: CallOptions): Promise<T> {
    return this.transport.send({ method: "GET", path }, options) as Promise<T>;
  }

  private post<T>(path: string, body: unknown, options?: CallOptions): Promise<T> {
    return this.transport.send({ method: "POST", path, body }, options) as Promise<T>;
  }

  private once<T>(path: string, body: unknown, options?: CallOptions): Promise<T> {
    return this.transport.send({ method: "POST", path, body, repeatable: false }, options) as Promise<T>;
  }
}

export interface PromoteOptions extends CallOptions {
  share?: number;
  gate?: boolean;
}

function policyPath(policy: string): string {
  return `/v1/policies/${encodeURIComponent(policy)}`;
}

/** Return the request body of a decision, with its id. */
function decisionBody(input: DecisionInput): NewDecision {
  const { embedding, candidates, ...rest } = input;
  const packedCandidates = candidates && {
    candidates: candidates.map(({ embedding, ...each }): Candidate => ({ ...each, ...packed(embedding) })),
  };
  return { ...rest, decision_id: rest.decision_id ?? newId(), ...packedCandidates, ...packed(embedding) };
}

/** Return an embedding as a field of the request body. */
function packed(numbers?: Float32Array | readonly number[]): { embedding?: number[]; embedding_b64?: string } {
  if (numbers === undefined) return {};
  return numbers instanceof Float32Array ? { embedding_b64: base64OfFloats(numbers) } : { embedding: [...numbers] };
}

/** Return the request body of an observation. */
function observationBody(input: ActInput): NewAct {
  const { observation, parts, ...rest } = input;
  const body: NewAct = { ...rest };
  if (observation instanceof Float32Array) body.observation_b64 = base64OfFloats(observation);
  else if (observation !== undefined) body.observation = [...observation];
  for (const [name, numbers] of Object.entries(parts ?? {})) {
    if (numbers instanceof Float32Array) (body.parts_b64 ??= {})[name] = base64OfFloats(numbers);
    else (body.parts ??= {})[name] = [...numbers];
  }
  return body;
}

/** Return the fields without those that are undefined. */
function defined<T extends object>(fields: T): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}
