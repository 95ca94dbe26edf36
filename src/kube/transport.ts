import { pipeline, type Readable } from 'node:stream';
import { text as textOf } from 'node:stream/consumers';
import { createGunzip } from 'node:zlib';
import { errors, request } from 'undici';
import { jittered } from '../time/backoff.ts';
import { type Clock, sleep } from '../time/clock.ts';
import { DeadlineError, withDeadline } from '../time/deadline.ts';
import type { Credentials, Dispatchers } from './credentials/credentials.ts';
import { errorFromStatus, KubeError, NO_ANSWER } from './kube-error.ts';
import type { KubeMetrics } from './kube-metrics.ts';

export type Call = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
  /** Content type of the body. Defaults to `application/json`. */
  readonly contentType?: string;
  /** Content type accepted for the response. Defaults to `application/json`. */
  readonly accept?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /**
   * The timeout for each attempt. Includes the time needed to connect. For a stream, it ends when the response has
   * started. Defaults to 30 seconds.
   */
  readonly timeoutMs?: number | undefined;
  /** If true, the server may compress the response, which it only does above 128 KiB. Defaults to false. */
  readonly compressed?: boolean;
  /** Connections to use. Defaults to `calls`. */
  readonly over?: Exclude<keyof Dispatchers, 'watches'> | undefined;
};

export type Transport = {
  /**
   * Sends a request and returns the parsed JSON response. Retries lost connections, and 429 and 5xx responses with a
   * `Retry-After` header. A 401 response causes the request to be retried with new credentials.
   */
  readonly call: <T>(call: Call) => Promise<T>;
  /** Sends a request and returns the body as a stream. There are no retries. The body can take any time. */
  readonly stream: (call: Call) => Promise<Readable>;
  /** Returns the number of requests that RBAC has refused so far. */
  readonly refusals: () => number;
};

/** The timeout for each attempt. */
const TIMEOUT_MS = 30_000;

/**
 * The number of retries if there is no response, and the delay before the first retry. The delay is doubled after each
 * retry.
 */
const RETRIES = 3;
const RETRY_AFTER_MS = 100;

/**
 * The number of retries requested by the server, for each purpose. For calls, this is the same as in client-go.
 * Together, they don't take longer than the timeout. A process that holds the Lease tries again itself every 2 seconds.
 * With more retries, each attempt would end because of its deadline. The error of the server would then not be
 * reported.
 */
const REQUESTED_RETRIES = { calls: 10, leases: 1 };

/**
 * The longest `Retry-After` for which we retry a request. Above this, the request fails and it is up to the work queue
 * to retry it.
 */
const LONGEST_RETRY_AFTER_SECONDS = 5;

/** Sends the request a single time. Resolves as soon as the response headers have been received. */
async function send(credentials: Credentials, what: Call, over: keyof Dispatchers, bodyTimeout: number) {
  const { method, path, query = {}, body, contentType = 'application/json', timeoutMs = TIMEOUT_MS } = what;
  const access = await orAborted(credentials.access(), what.signal).catch((cause: unknown) => {
    throw new KubeError({ call: nameOf(what), status: NO_ANSWER, reason: 'CredentialsFailed', cause });
  });
  const url = new URL(credentials.server + path);
  for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value);
  const sent = request(url, {
    method,
    dispatcher: access[over],
    headers: {
      ...access.headers,
      accept: what.accept ?? 'application/json',
      'user-agent': 'sluice',
      ...(what.compressed ? { 'accept-encoding': 'gzip' } : {}),
      ...(body === undefined ? {} : { 'content-type': contentType }),
    },
    body: body === undefined ? null : jsonOf(body),
    signal: what.signal ?? null,
    headersTimeout: timeoutMs,
    bodyTimeout,
  });
  // undici only looks at the signal once the request has a connection.
  return orAborted(sent, what.signal);
}

function either(signal: AbortSignal | undefined, late: AbortSignal): AbortSignal {
  return signal === undefined ? late : AbortSignal.any([signal, late]);
}

/** Returns the result, or rejects with the reason of the signal if it is aborted before that. */
async function orAborted<T>(result: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return result;
  const early = Promise.withResolvers<never>();
  const abort = () => early.reject(signal.reason);
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([result, early.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/**
 * Creates the function that counts a request when `send` notes its status, or when it fails before that. The function
 * also converts errors.
 */
function createCount(metrics: KubeMetrics | undefined) {
  return async <T>(what: Call, send: (note: (status: number) => void) => Promise<T>): Promise<T> => {
    const startedMs = performance.now();
    let isNoted = false;
    const note = (status: number) => {
      isNoted = true;
      metrics?.answered(what.method, status, (performance.now() - startedMs) / 1_000);
    };
    try {
      return await send(note);
    } catch (error) {
      what.signal?.throwIfAborted();
      if (!isNoted) note(NO_ANSWER);
      throw toKubeError(nameOf(what), error);
    }
  };
}

/**
 * Creates the transport for requests. Retries are safe for every request in this project: apply requests contain the
 * desired state, updates and deletes have preconditions, and repeating a create request returns AlreadyExists.
 */
export function createTransport(
  credentials: Credentials,
  clock: Clock,
  random: () => number,
  metrics?: KubeMetrics,
): Transport {
  const counted = createCount(metrics);
  let refusals = 0;

  function refuse(...[what, status, text, retryAfter]: Parameters<typeof refusal>): KubeError {
    const error = refusal(what, status, text, retryAfter);
    if (isMissingRight(error)) refusals++;
    return error;
  }

  /** Sends the request a single time. The timeout covers connecting as well as reading the response. */
  function attempt(what: Call): Promise<unknown> {
    const { timeoutMs = TIMEOUT_MS, over = 'calls' } = what;
    const signal = either(what.signal, AbortSignal.timeout(timeoutMs));
    return counted(what, async note => {
      const { statusCode, headers, body } = await send(credentials, { ...what, signal }, over, timeoutMs);
      const text = await readText(body, headers['content-encoding']);
      note(statusCode);
      if (statusCode >= 400) throw refuse(what, statusCode, text, headers['retry-after']);
      const answer = parse(text);
      if (answer === undefined)
        throw new KubeError({ call: nameOf(what), status: statusCode, reason: 'MalformedAnswer' });
      return answer;
    });
  }

  async function call<T>(what: Call): Promise<T> {
    let renewed = false;
    const nextPauseMs = createPauses(clock.nowMs, random, what);
    for (;;) {
      try {
        return (await attempt(what)) as T;
      } catch (error) {
        if (!(error instanceof KubeError)) throw error;
        if (error.status === 401 && !renewed) {
          renewed = true;
          credentials.renew();
          continue;
        }
        const pauseMs = nextPauseMs(error);
        if (pauseMs === undefined) throw error;
        await sleep(clock, pauseMs, what.signal);
        what.signal?.throwIfAborted();
      }
    }
  }

  function stream(what: Call): Promise<Readable> {
    const open = async (note: (status: number) => void, late: AbortSignal): Promise<Readable> => {
      const signal = either(what.signal, late);
      const { statusCode, headers, body } = await send(credentials, { ...what, signal }, 'watches', 0);
      note(statusCode);
      if (statusCode < 400) return body;
      if (statusCode === 401) credentials.renew();
      throw refuse(what, statusCode, await body.text(), headers['retry-after']);
    };
    return counted(what, note => withDeadline(what.timeoutMs ?? TIMEOUT_MS, late => open(note, late)));
  }

  return { call, stream, refusals: () => refusals };
}

/**
 * Reads the response body. A gzip-encoded body is decompressed first. If the body is incomplete or malformed, this
 * rejects.
 */
async function readText(body: Readable, encoding: string | string[] | undefined): Promise<string> {
  // The callback is required, but the same error is thrown by the reader of the last stream.
  return textOf(encoding === 'gzip' ? pipeline(body, createGunzip(), () => {}) : body);
}

/**
 * Creates a function that returns the delay before the next retry of a failed request in milliseconds, or undefined if it
 * should not be retried.
 */
function createPauses(nowMs: () => number, random: () => number, what: Call) {
  const { timeoutMs = TIMEOUT_MS, over = 'calls' } = what;
  const endMs = nowMs() + timeoutMs;
  let lost = 0;
  let requested = 0;
  return ({ reason, status, retryAfterSeconds }: KubeError): number | undefined => {
    if (reason === 'ConnectionFailed')
      return lost < RETRIES ? jittered(RETRY_AFTER_MS * 2 ** lost++, random) : undefined;
    // Without this header, it is a regular response, e.g. to an eviction.
    if ((status !== 429 && status < 500) || retryAfterSeconds === undefined) return undefined;
    // The server must not be asked earlier.
    const pauseMs = retryAfterSeconds * 1_000 * (1 + random() / 4);
    const isLong = retryAfterSeconds > LONGEST_RETRY_AFTER_SECONDS || nowMs() + pauseMs >= endMs;
    return isLong || requested++ === REQUESTED_RETRIES[over] ? undefined : pauseMs;
  };
}

/** Converts a connection error to a {@link KubeError}. The original error is kept as its cause. */
export function toKubeError(call: string, error: unknown): KubeError {
  if (error instanceof KubeError) return error;
  const timeout =
    (error instanceof Error && error.name === 'TimeoutError') ||
    error instanceof DeadlineError ||
    error instanceof errors.HeadersTimeoutError ||
    error instanceof errors.BodyTimeoutError;
  const code = (error as { code?: unknown } | undefined)?.code;
  return new KubeError({
    call,
    status: NO_ANSWER,
    reason: timeout ? 'Timeout' : 'ConnectionFailed',
    detail: typeof code === 'string' ? code : '',
    cause: error,
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function nameOf({ method, path }: Call): string {
  return `${method} ${path}`;
}

/** Returns true for a request that RBAC has refused. An admission policy refuses with the same status. */
function isMissingRight({ status, detail }: KubeError): boolean {
  return status === 403 && / cannot \S+ resource "/.test(detail);
}

function refusal(what: Call, status: number, text: string, retryAfter: string | string[] | undefined): KubeError {
  return errorFromStatus(nameOf(what), status, parse(text), Array.isArray(retryAfter) ? retryAfter[0] : retryAfter);
}

/**
 * Encodes a value as JSON that means the same in YAML because the API server parses apply requests as YAML. Some
 * characters would otherwise be rejected or replaced by spaces, namely DEL, C1 control characters, line separators,
 * byte order marks, and noncharacters.
 */
export function jsonOf(value: unknown): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  return JSON.stringify(value).replace(/[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g, character => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}
