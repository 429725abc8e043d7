/** One request with retries where they are safe: deadlines, backoff with jitter, and cancellation. */

import { Aborted, ConnectionFailed, SurefootError, TimedOut, errorOf } from "./errors.js";

export type Fetch = typeof globalThis.fetch;

/** How the service is reached. */
export interface Options {
  /** Where it listens. Default: http://127.0.0.1:8765 */
  baseURL?: string;
  /** Sent as Authorization: Bearer. */
  token?: string;
  /** Milliseconds for one try. Default: 30 000 */
  timeout?: number;
  /** Tries after the first. Default: 2 */
  maxRetries?: number;
  /** The longest wait, in milliseconds, that a Retry-After is granted. Default: 30 000 */
  maxRetryAfter?: number;
  /** Another fetch, such as one with a proxy. */
  fetch?: Fetch;
  headers?: Record<string, string>;
}

/** What may be otherwise for a single call. */
export interface CallOptions {
  signal?: AbortSignal | undefined;
  timeout?: number | undefined;
  maxRetries?: number | undefined;
}

/** A request. */
export interface Ask {
  method: "GET" | "POST";
  path: string;
  body?: unknown;
  /** False: doing it twice is not doing it once, so an answer that was lost is not asked for again. */
  repeatable?: boolean;
}

const FIRST_WAIT = 250;
const LONGEST_WAIT = 8_000;
const AGAIN = new Set([408, 429, 500, 502, 503, 504]);
/** Answers that say that nothing was done. */
const NOTHING_DONE = new Set([429, 503]);

export class Transport {
  readonly baseURL: string;
  readonly timeout: number;
  readonly maxRetries: number;
  private readonly maxRetryAfter: number;
  private readonly fetch: Fetch;
  private readonly headers: Record<string, string>;

  constructor(options: Options) {
    this.baseURL = (options.baseURL ?? "http://127.0.0.1:8765").replace(/\/+$/, "");
    this.timeout = positive("timeout", options.timeout ?? 30_000);
    this.maxRetries = atLeastZero("maxRetries", options.maxRetries ?? 2);
    this.maxRetryAfter = atLeastZero("maxRetryAfter", options.maxRetryAfter ?? 30_000);
    this.fetch = options.fetch ?? ((...args) => globalThis.fetch(...args));
    this.headers = { ...options.headers, ...(options.token ? { Authorization: `Bearer ${options.token}` } : {}) };
  }

  /** The answer: JSON as a value, anything else as text. */
  async send(ask: Ask, options: CallOptions = {}): Promise<unknown> {
    const body = ask.body === undefined ? undefined : JSON.stringify(ask.body);
    const retries = options.maxRetries ?? this.maxRetries;
    for (let tries = 0; ; tries++) {
      let wait: number | undefined;
      try {
        const answer = await this.once(ask, body, options);
        if (answer.ok) return answer.value;
        const error = errorOf(answer.status, answer.problem, answer.retryAfter);
        const safe = ask.repeatable !== false || NOTHING_DONE.has(answer.status);
        if (tries >= retries || !safe || !AGAIN.has(answer.status)) throw error;
        wait = answer.retryAfter;
      } catch (why) {
        const lost = why instanceof ConnectionFailed || why instanceof TimedOut;
        if (!lost || tries >= retries || ask.repeatable === false) throw why;
      }
      await sleep(Math.min(wait ?? 0, this.maxRetryAfter) || backoff(tries), options.signal);
    }
  }

  private async once(ask: Ask, body: string | undefined, options: CallOptions): Promise<Answer> {
    const { signal } = options;
    if (signal?.aborted) throw aborted(signal);
    const timeout = options.timeout ?? this.timeout;
    const stop = new AbortController();
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      stop.abort();
    }, timeout);
    const onAbort = () => stop.abort();
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      const response = await this.fetch(this.baseURL + ask.path, {
        method: ask.method,
        headers: {
          Accept: "application/json",
          ...(body === undefined ? {} : { "Content-Type": "application/json" }),
          ...this.headers,
        },
        body: body ?? null,
        signal: stop.signal,
        redirect: "error",
      });
      return await read(response);
    } catch (why) {
      if (why instanceof SurefootError) throw why;
      if (signal?.aborted) throw aborted(signal);
      if (late) throw new TimedOut(`no answer from ${this.baseURL} within ${timeout} ms`, { cause: why });
      throw new ConnectionFailed(`cannot reach ${this.baseURL}: ${reason(why)}`, { cause: why });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    }
  }
}

interface Answer {
  ok: boolean;
  status: number;
  value: unknown;
  problem: Record<string, string>;
  retryAfter: number | undefined;
}

async function read(response: Response): Promise<Answer> {
  const text = await response.text();
  let value: unknown = text;
  if (/json/.test(response.headers.get("content-type") ?? "") && text !== "") {
    try {
      value = JSON.parse(text);
    } catch (why) {
      if (response.ok) throw new SurefootError(`the answer is not JSON: ${text.slice(0, 80)}`, { cause: why });
    }
  }
  const told = typeof value === "object" && value !== null ? (value as Record<string, string>) : {};
  const requestId = told.request_id ?? response.headers.get("x-request-id") ?? undefined;
  const detail = told.detail ?? told.error ?? response.statusText;
  const problem = { ...told, detail, ...(requestId === undefined ? {} : { request_id: requestId }) };
  return { ok: response.ok, status: response.status, value, problem, retryAfter: retryAfter(response) };
}

/** Milliseconds, from seconds or a date. */
function retryAfter(response: Response): number | undefined {
  const given = response.headers.get("retry-after");
  if (given === null) return undefined;
  const seconds = Number(given);
  const wait = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(given) - Date.now();
  return Number.isFinite(wait) ? Math.max(0, wait) : undefined;
}

/** Longer each time, with jitter so that clients do not retry together. */
function backoff(tries: number): number {
  return Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** tries) * (0.5 + 0.5 * Math.random());
}

/** Wait, unless the caller ends it. */
export function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(aborted(signal));
    const onAbort = () => {
      clearTimeout(timer);
      reject(aborted(signal as AbortSignal));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

function aborted(signal: AbortSignal): Aborted {
  return new Aborted("the caller ended it", { cause: signal.reason });
}

function reason(why: unknown): string {
  const cause = why instanceof Error && why.cause instanceof Error ? why.cause : why;
  return cause instanceof Error ? cause.message || cause.name : String(cause);
}

function positive(name: string, value: number): number {
  if (!(value > 0)) throw new SurefootError(`${name} is ${value}; it must be positive`);
  return value;
}

function atLeastZero(name: string, value: number): number {
  if (!(value >= 0)) throw new SurefootError(`${name} is ${value}; it must not be negative`);
  return value;
}
