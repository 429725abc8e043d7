/** The exceptions of this package: one class per HTTP status, all derived from SurefootError. */

import type { Problem } from "./schema.js";

/** Base class of every exception that this package throws. */
export class SurefootError extends Error {
  override name = "SurefootError";
}

/** The service could not be reached, or closed the connection before it responded. */
export class ConnectionFailed extends SurefootError {
  override name = "ConnectionFailed";
}

/** No response within `timeout`. */
export class TimedOut extends SurefootError {
  override name = "TimedOut";
}

/** The caller's AbortSignal fired; `cause` is its reason. */
export class Aborted extends SurefootError {
  override name = "AbortError";
}

/** The service responded with an error status and a problem document (RFC 9457). */
export class StatusError extends SurefootError {
  override name = "StatusError";
  readonly status: number;
  /** Stable identifier of the error, such as about:surefoot/conflict. */
  readonly type: string;
  readonly title: string;
  readonly detail: string;
  /** JSON pointer to the invalid value in the request body. */
  readonly pointer: string | undefined;
  /** Id of the request in the log of the service. */
  readonly requestId: string | undefined;
  /** Milliseconds to wait before a retry, if the service sent Retry-After. */
  readonly retryAfter: number | undefined;

  constructor(status: number, problem: Partial<Problem>, retryAfter?: number) {
    const detail = problem.detail ?? problem.title ?? "no reason given";
    super(`${status}: ${detail}${problem.pointer ? ` (at ${problem.pointer})` : ""}`);
    this.status = status;
    this.type = problem.type ?? "about:blank";
    this.title = problem.title ?? "";
    this.detail = detail;
    this.pointer = problem.pointer;
    this.requestId = problem.request_id;
    this.retryAfter = retryAfter;
  }
}

/** 400: the body is not JSON. */
export class Malformed extends StatusError {
  override name = "Malformed";
}
/** 401: the token is missing or unknown. */
export class Unauthorized extends StatusError {
  override name = "Unauthorized";
}
/** 403: the token does not have the required scope, or the page's origin is not allowed. */
export class Forbidden extends StatusError {
  override name = "Forbidden";
}
/** 404: there is no such policy, decision, version, job or checkpoint. */
export class NotFound extends StatusError {
  override name = "NotFound";
}
/** 409: an id was used for another decision, a reward was already reported, or an update is running. */
export class Conflict extends StatusError {
  override name = "Conflict";
}
/** 410: the reward was reported after the decision had expired. */
export class Expired extends StatusError {
  override name = "Expired";
}
/** 413: the body is too large. */
export class TooLarge extends StatusError {
  override name = "TooLarge";
}
/** 422: a value of the body is invalid; `pointer` locates it. */
export class Invalid extends StatusError {
  override name = "Invalid";
}
/** 429: too many requests. */
export class RateLimited extends StatusError {
  override name = "RateLimited";
}
/** 500: the service failed. */
export class ServiceFailed extends StatusError {
  override name = "ServiceFailed";
}
/** 502, 503, 504: the service is temporarily unavailable. */
export class Unavailable extends StatusError {
  override name = "Unavailable";
}
/** 507: the disk of the service is full. */
export class DiskFull extends StatusError {
  override name = "DiskFull";
}

const BY_STATUS: Record<number, typeof StatusError> = {
  400: Malformed,
  401: Unauthorized,
  403: Forbidden,
  404: NotFound,
  409: Conflict,
  410: Expired,
  413: TooLarge,
  422: Invalid,
  429: RateLimited,
  500: ServiceFailed,
  502: Unavailable,
  503: Unavailable,
  504: Unavailable,
  507: DiskFull,
};

/** Return the exception for a response status. */
export function errorOf(status: number, problem: Partial<Problem>, retryAfter?: number): StatusError {
  return new (BY_STATUS[status] ?? StatusError)(status, problem, retryAfter);
}
