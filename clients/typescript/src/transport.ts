/** HTTP requests with timeouts, cancellation, and retries (exponential backoff with jitter) where a retry is safe. */

import { Aborted, ConnectionFailed, SurefootError, TimedOut, errorOf } from "./errors.js";

export type Fetch = typeof globalThis.fetch;

/** Connection options. */
export interface Options {
  /** Address of the service. Default: http://127.0.0.1:8765 */
  baseURL?: string;
  /** Sent as Authorization: Bearer. */
  token?: string;
  /** Timeout of one attempt in milliseconds. Default: 30 000 */
  timeout?: number;
  /** Number of retries after the first attempt. Default: 2 */
  maxRetries?: number;
  /** Longest Retry-After, in milliseconds, that is waited for. Default: 30 000 */
  maxRetryAfter?: number;
  /** Custom fetch, for example one that uses a proxy. */
  fetch?: Fetch;
  headers?: Record<string, string>;
}

/** Options of a single call; they override those of the client. */
export interface CallOptions {
  signal?: AbortSignal | undefined;
  timeout?: number | undefined;
  maxRetries?: number | undefined;
}

/** A request. */
export interface HttpRequest {
  method: "GET" | "POST" | "PATCH" | "DELETE";
  path: string;
  body?: unknown;
  /** False if the operation is not idempotent: it is not retried after a lost connection or a timeout. */
  repeatable?: boolean;
}

const FIRST_WAIT = 250;
const LONGEST_WAIT = 8_000;
const RETRIED = new Set([408, 429, 500, 502, 503, 504]);
/** Statuses that guarantee that the request was not executed. */
const NOT_EXECUTED = new Set([429, 503]);

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

  /** Send a request and return the response body: parsed JSON, or text for other content types. */
  async send(request: HttpRequest, options: CallOptions = {}): Promise<unknown> {
    const body = request.body === undefined ? undefined : JSON.stringify(request.body);
    const retries = options.maxRetries ?? this.maxRetries;
    for (let tries = 0; ; tries++) {
      let wait: number | undefined;
      try {
        const response = await this.once(request, body, options);
        if (response.ok) return response.value;
        const error = errorOf(response.status, response.problem, response.retryAfter);
        const safe = request.repeatable !== false || NOT_EXECUTED.has(response.status);
        if (tries >= retries || !safe || !RETRIED.has(response.status)) throw error;
        wait = response.retryAfter;
      } catch (why) {
        const lost = why instanceof ConnectionFailed || why instanceof TimedOut;
        if (!lost || tries >= retries || request.repeatable === false) throw why;
      }
      await sleep(Math.min(wait ?? 0, this.maxRetryAfter) || backoff(tries), options.signal);
    }
  }

  private async once(request: HttpRequest, body: string | undefined, options: CallOptions): Promise<ParsedResponse> {
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
      const response = await this.fetch(this.baseURL + request.path, {
        method: request.method,
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
      if (late) throw new TimedOut(`no response from ${this.baseURL} within ${timeout} ms`, { cause: why });
      throw new ConnectionFailed(`cannot reach ${this.baseURL}: ${reason(why)}`, { cause: why });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    }
  }
}

interface ParsedResponse {
  ok: boolean;
  status: number;
  value: unknown;
  problem: Record<string, string>;
  retryAfter: number | undefined;
}

async function read(response: Response): Promise<ParsedResponse> {
  const text = await response.text();
  let value: unknown = text;
  if (/json/.test(response.headers.get("content-type") ?? "") && text !== "") {
    try {
      value = JSON.parse(text);
    } catch (why) {
      if (response.ok) throw new SurefootError(`the response is not JSON: ${text.slice(0, 80)}`, { cause: why });
    }
  }
  const fields = typeof value === "object" && value !== null ? (value as Record<string, string>) : {};
  const requestId = fields.request_id ?? response.headers.get("x-request-id") ?? undefined;
  const detail = fields.detail ?? fields.error ?? response.statusText;
  const problem = { ...fields, detail, ...(requestId === undefined ? {} : { request_id: requestId }) };
  return { ok: response.ok, status: response.status, value, problem, retryAfter: retryAfter(response) };
}

/** Return the Retry-After header, which holds seconds or a date, in milliseconds. */
function retryAfter(response: Response): number | undefined {
  const header = response.headers.get("retry-after");
  if (header === null) return undefined;
  const seconds = Number(header);
  const wait = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(header) - Date.now();
  return Number.isFinite(wait) ? Math.max(0, wait) : undefined;
}

/** Return the wait before the next attempt: doubled each time, with jitter so that clients do not retry simultaneously. */
function backoff(tries: number): number {
  return Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** tries) * (0.5 + 0.5 * Math.random());
}

/** Wait; reject with `Aborted` if the signal fires first. */
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
  return new Aborted("the call was aborted by its AbortSignal", { cause: signal.reason });
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
