/**
 * The one error catalogue. Handlers throw `ApiError(code, details?)`; status and public text live
 * here, and each service's face renders them (`{error: {code, message, details}}` for the
 * platform, `{detail}` for the tax service). An internal reason goes into `cause` and the log,
 * never into a body.
 */

export const errorCatalogue = {
  bad_request: { status: 400, message: "Bad Request" },
  unauthorized: { status: 401, message: "Unauthorized" },
  usage_limit: { status: 402, message: "Usage Limit Reached" },
  forbidden: { status: 403, message: "Forbidden" },
  not_found: { status: 404, message: "Not Found" },
  method_not_allowed: { status: 405, message: "Method Not Allowed" },
  request_timeout: { status: 408, message: "Request Timeout" },
  conflict: { status: 409, message: "Conflict" },
  gone: { status: 410, message: "Gone" },
  payload_too_large: { status: 413, message: "Payload Too Large" },
  unsupported_media_type: { status: 415, message: "Unsupported Media Type" },
  unprocessable: { status: 422, message: "Unprocessable Content" },
  too_many_requests: { status: 429, message: "Too Many Requests" },
  internal_error: { status: 500, message: "Internal Server Error" },
  unavailable: { status: 503, message: "Service Unavailable" },
} as const;

export type ErrorCode = keyof typeof errorCatalogue;

/** Field path to message, for example `{"config.llm.provider": "Expected one of echo, rules"}`. */
export type ErrorDetails = Readonly<Record<string, string>>;

/** One thing that is wrong with a request, as a list of the tax service shows it. */
export interface ValidationIssue {
  /** What kind of problem, for programs: `missing`, `string_too_short` … */
  type: string;
  /** Where: `body`, `query` or `path`, then names, and numbers for places in an array. */
  loc: readonly (string | number)[];
  /** For people. */
  msg: string;
}

/** The envelope's `error` object, as clients of the platform see it. */
export interface ErrorBody {
  code: ErrorCode;
  message: string;
  details?: ErrorDetails;
}

export interface ApiErrorOptions {
  /** Public explanation by field path. */
  details?: ErrorDetails;
  /** The same of a request that does not fit its schema, for the service that lists problems. */
  issues?: readonly ValidationIssue[];
  /** Public explanation in one sentence, for the service that says no more. */
  detail?: string;
  /** What the tax service answers beside the sentence, by name. */
  beside?: Readonly<Record<string, unknown>> | undefined;
  /** Why it really happened: for the log only. */
  cause?: unknown;
  /** Seconds for the `Retry-After` header (429 and 503). */
  retryAfterS?: number;
  /** Methods for the `Allow` header (405). */
  allow?: readonly string[];
}

/** An answer that the client is meant to see. Anything else that is thrown is a 500. */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly details: ErrorDetails | undefined;
  readonly issues: readonly ValidationIssue[] | undefined;
  readonly detail: string | undefined;
  readonly beside: Readonly<Record<string, unknown>> | undefined;
  readonly retryAfterS: number | undefined;
  readonly allow: readonly string[] | undefined;

  constructor(code: ErrorCode, options: ApiErrorOptions = {}) {
    super(errorCatalogue[code].message, { cause: options.cause });
    this.name = "ApiError";
    this.code = code;
    this.details = options.details;
    this.issues = options.issues;
    this.detail = options.detail;
    this.beside = options.beside;
    this.retryAfterS = options.retryAfterS;
    this.allow = options.allow;
  }

  get status(): number {
    return errorCatalogue[this.code].status;
  }

  /** The platform's envelope content. */
  body(): ErrorBody {
    const { code, message, details } = this;
    return details ? { code, message, details } : { code, message };
  }
}
