/** Requests to the service that served this page, with the types of the TypeScript client. */

import type { Chances, Decision, DecisionLog, Explained, Job, NewDecision, NewPolicy, Policy, PolicyStatistics, Reward, Version } from "../../clients/typescript/src/schema";

export type { Chances, Decision, Explained, Job, NewDecision, NewPolicy, Policy, Version };

const TOKEN = "surefoot-token";

export class Problem extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

export function setToken(token: string): void {
  sessionStorage.setItem(TOKEN, token);
}

async function send<T>(method: string, path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = {};
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers["Authorization"] = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const init: RequestInit = { method, headers };
  if (body !== undefined) init.body = JSON.stringify(body);
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch {
    throw new Problem(0, "The service is not reachable.");
  }
  const result = await response.json();
  if (!response.ok) throw new Problem(response.status, result.detail ?? response.statusText);
  return result as T;
}

const pathOf = (policy: string) => `/v1/policies/${encodeURIComponent(policy)}`;

export const service = {
  policies: () => send<Policy[]>("GET", "/v1/policies"),
  create: (policy: NewPolicy) => send<Policy>("POST", "/v1/policies", policy),
  versions: async (policy: string) => (await send<{ versions: Version[] }>("GET", `${pathOf(policy)}/versions`)).versions,
  promote: (policy: string, version: number, share = 1) => send<Policy>("POST", `${pathOf(policy)}/promote`, { version, share }),
  rollback: (policy: string) => send<Policy>("POST", `${pathOf(policy)}/rollback`),
  update: (policy: string) => send<Job>("POST", `${pathOf(policy)}/updates`, {}),
  job: (id: string) => send<Job>("GET", `/v1/jobs/${id}`),
  decide: (policy: string, request: NewDecision) => send<Decision>("POST", `${pathOf(policy)}/decisions`, request),
  reward: (decision: string, value: number) => send<Reward>("POST", `/v1/decisions/${decision}/reward`, { value }),
  decisions: async (policy: string) => (await send<DecisionLog>("GET", `${pathOf(policy)}/decisions?limit=20`)).decisions,
  statistics: (policy: string) => send<PolicyStatistics>("GET", `${pathOf(policy)}/statistics`),
  explain: (decision: string) => send<Explained>("GET", `/v1/decisions/${decision}`),
};
