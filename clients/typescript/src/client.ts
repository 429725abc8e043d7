/** The service as an object: one method per operation. */

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
  Explained,
  Health,
  Job,
  NewAct,
  NewDecision,
  NewPolicy,
  NewReward,
  OffPolicy,
  Policy,
  Reward,
  Run,
  Version,
  VersionList,
} from "./schema.js";
import { Transport, sleep, type CallOptions, type Options } from "./transport.js";

/** What is seen: `text`, or an `embedding`. A Float32Array goes over the wire as base64, plain numbers as JSON. */
export type DecisionInput = Omit<NewDecision, "embedding" | "embedding_b64" | "candidates"> & {
  embedding?: Float32Array | readonly number[];
  candidates?: readonly CandidateInput[];
};

/** An observation laid flat, or its named `parts`. Float32Arrays go over the wire as base64. */
export type ActInput = Omit<NewAct, "observation" | "observation_b64" | "parts" | "parts_b64"> & {
  observation?: Float32Array | readonly number[];
  parts?: Readonly<Record<string, Float32Array | readonly number[]>>;
};

/** One thing to choose, with its `description` or an `embedding`. */
export type CandidateInput = Omit<Candidate, "embedding" | "embedding_b64"> & {
  embedding?: Float32Array | readonly number[];
};

export class Surefoot {
  /** For operations without a method. */
  readonly transport: Transport;

  constructor(options: Options = {}) {
    this.transport = new Transport(options);
  }

  /** Liveness probe; no authentication. */
  health(options?: CallOptions): Promise<Health> {
    return this.get("/healthz", options);
  }

  /** Whether it answers; rejects with Unavailable while it shuts down. */
  ready(options?: CallOptions): Promise<Health> {
    return this.get("/readyz", options);
  }

  /** Counters in Prometheus' format. */
  metrics(options?: CallOptions): Promise<string> {
    return this.get("/metrics", options);
  }

  policies(options?: CallOptions): Promise<Policy[]> {
    return this.get("/v1/policies", options);
  }

  policy(name: string, options?: CallOptions): Promise<Policy> {
    return this.get(at(name), options);
  }

  /** Make a policy; the same again is the same policy, another under its name a Conflict. */
  createPolicy(policy: NewPolicy, options?: CallOptions): Promise<Policy> {
    return this.post("/v1/policies", policy, options);
  }

  /** Choose an action. The decision's id is made here unless you give one, so that a retry is the same decision. */
  decide(policy: string, input: DecisionInput, options?: CallOptions): Promise<Decision> {
    return this.post(`${at(policy)}/decisions`, wire(input), options);
  }

  /** Choose many actions, all or none. */
  async decideMany(policy: string, inputs: readonly DecisionInput[], options?: CallOptions): Promise<Decision[]> {
    const body = { decisions: inputs.map(wire) };
    return (await this.post<DecisionList>(`${at(policy)}/decisions/batch`, body, options)).decisions;
  }

  /** What would be chosen how often; nothing is decided or kept. */
  distribution(policy: string, input: DecisionInput, options?: CallOptions): Promise<Chances> {
    return this.post(`${at(policy)}/distribution`, wire(input), options);
  }

  /** The trained policies that `surefoot serve RUN` serves. */
  runs(options?: CallOptions): Promise<Run[]> {
    return this.get("/v1/runs", options);
  }

  run(name: string, options?: CallOptions): Promise<Run> {
    return this.get(`/v1/runs/${encodeURIComponent(name)}`, options);
  }

  /** What a trained policy does when it sees this. */
  act(run: string, input: ActInput, options?: CallOptions): Promise<Act> {
    return this.post(`/v1/runs/${encodeURIComponent(run)}/actions`, observed(input), options);
  }

  async actMany(run: string, inputs: readonly ActInput[], options?: CallOptions): Promise<Act[]> {
    const body = { acts: inputs.map(observed) };
    return (await this.post<ActList>(`/v1/runs/${encodeURIComponent(run)}/actions/batch`, body, options)).acts;
  }

  /**
   * The outcome of a decision: a number, or a value with its parts and the end of the episode. A repeated report counts
   * once, except where a policy's `aggregation` is `sum`: give `maxRetries: 0` there.
   */
  reward(decision: string, reward: number | NewReward, options?: CallOptions): Promise<Reward> {
    const body = typeof reward === "number" ? { value: reward } : reward;
    return this.post(`/v1/decisions/${encodeURIComponent(decision)}/reward`, body, options);
  }

  /** A deferred decision was carried out. */
  activate(decision: string, options?: CallOptions): Promise<Decision> {
    return this.post(`/v1/decisions/${encodeURIComponent(decision)}/activate`, undefined, options);
  }

  /** Why an action was chosen, and what came of decisions like it. */
  explain(decision: string, options?: CallOptions): Promise<Explained> {
    return this.get(`/v1/decisions/${encodeURIComponent(decision)}`, options);
  }

  /** Newest first. */
  async versions(policy: string, options?: CallOptions): Promise<Version[]> {
    return (await this.get<VersionList>(`${at(policy)}/versions`, options)).versions;
  }

  /** Promote a version; with a `share` below 1 as a canary, with `gate` only if the log shows that it is not worse. */
  promote(policy: string, version: number, options: PromoteOptions = {}): Promise<Policy> {
    const { share, gate, ...call } = options;
    return this.post(`${at(policy)}/promote`, { version, ...given({ share, gate }) }, call);
  }

  /** Back to the version that answered before. */
  rollback(policy: string, options?: CallOptions): Promise<Policy> {
    return this.once(`${at(policy)}/rollback`, undefined, options);
  }

  /** What another version would have earned, from the log. */
  evaluate(policy: string, version: number, options: CallOptions & { last?: number } = {}): Promise<OffPolicy> {
    const { last, ...call } = options;
    return this.post(`${at(policy)}/evaluations`, { version, ...given({ last }) }, call);
  }

  /** Learn now, as a job; `finished` waits for it. */
  update(policy: string, options: CallOptions & { least?: number } = {}): Promise<Job> {
    const { least, ...call } = options;
    return this.once(`${at(policy)}/updates`, given({ least }), call);
  }

  job(id: string, options?: CallOptions): Promise<Job> {
    return this.get(`/v1/jobs/${encodeURIComponent(id)}`, options);
  }

  /** The job once it is over, asked for every `every` milliseconds; rejects where it failed. */
  async finished(job: Job | string, options: CallOptions & { every?: number } = {}): Promise<Job> {
    const { every = 200, ...call } = options;
    const id = typeof job === "string" ? job : job.job_id;
    for (;;) {
      const now = await this.job(id, call);
      if (now.state === "done") return now;
      if (now.state === "failed") throw new SurefootError(`job ${id} failed: ${now.message}`);
      await sleep(every, call.signal);
    }
  }

  /** Give a version a name that stays; the one that answers, if none is given. */
  checkpoint(policy: string, options: CallOptions & { version?: number } = {}): Promise<Checkpoint> {
    const { version, ...call } = options;
    return this.post(`${at(policy)}/checkpoints`, given({ version }), call);
  }

  /** Let the version of a checkpoint answer. */
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

function at(policy: string): string {
  return `/v1/policies/${encodeURIComponent(policy)}`;
}

/** A decision as it goes over the wire, with its id. */
function wire(input: DecisionInput): NewDecision {
  const { embedding, candidates, ...rest } = input;
  const given = candidates && {
    candidates: candidates.map(({ embedding, ...each }): Candidate => ({ ...each, ...packed(embedding) })),
  };
  return { ...rest, decision_id: rest.decision_id ?? newId(), ...given, ...packed(embedding) };
}

/** Numbers as they go over the wire. */
function packed(numbers?: Float32Array | readonly number[]): { embedding?: number[]; embedding_b64?: string } {
  if (numbers === undefined) return {};
  return numbers instanceof Float32Array ? { embedding_b64: base64OfFloats(numbers) } : { embedding: [...numbers] };
}

/** An observation as it goes over the wire. */
function observed(input: ActInput): NewAct {
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

/** Without what was left out. */
function given<T extends object>(fields: T): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}
