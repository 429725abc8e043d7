/** Requests to the service that served this page, with the types of the TypeScript client. */

import type { Chances, Decision, Explained, Job, NewDecision, NewPolicy, Policy, Reward, Version } from "../../clients/typescript/src/schema";

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

async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = {};
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers["Authorization"] = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const sent: RequestInit = { method, headers };
  if (body !== undefined) sent.body = JSON.stringify(body);
  let answer: Response;
  try {
    answer = await fetch(path, sent);
  } catch {
    throw new Problem(0, "The service is not reachable.");
  }
  const told = await answer.json();
  if (!answer.ok) throw new Problem(answer.status, told.detail ?? answer.statusText);
  return told as T;
}

const at = (policy: string) => `/v1/policies/${encodeURIComponent(policy)}`;

export const service = {
  policies: () => ask<Policy[]>("GET", "/v1/policies"),
  create: (policy: NewPolicy) => ask<Policy>("POST", "/v1/policies", policy),
  versions: async (policy: string) => (await ask<{ versions: Version[] }>("GET", `${at(policy)}/versions`)).versions,
  promote: (policy: string, version: number, share = 1) => ask<Policy>("POST", `${at(policy)}/promote`, { version, share }),
  rollback: (policy: string) => ask<Policy>("POST", `${at(policy)}/rollback`),
  update: (policy: string) => ask<Job>("POST", `${at(policy)}/updates`, {}),
  job: (id: string) => ask<Job>("GET", `/v1/jobs/${id}`),
  decide: (policy: string, question: NewDecision) => ask<Decision>("POST", `${at(policy)}/decisions`, question),
  reward: (decision: string, value: number) => ask<Reward>("POST", `/v1/decisions/${decision}/reward`, { value }),
  explain: (decision: string) => ask<Explained>("GET", `/v1/decisions/${decision}`),
};
