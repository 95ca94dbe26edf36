import type { FastifyReply, FastifyRequest } from 'fastify';
import { hashIngressKey } from '../../core/ids/ingress-key.ts';
import { MOST_PARAMETERS, queryPieces } from '../../http/query-pieces.ts';
import type { Answers } from './answers.ts';
import { readIngressKey } from './ingress-key.ts';
import type { KeyChecks } from './key-checks.ts';
import type { KnownQueue, QueueCache } from './queue-cache.ts';

/**
 * Parameters shared by all routes that accept events. These are raw request values that have not been validated yet.
 */
export interface EventParams {
  tenant: string;
  queue: string;
}

export type EventRequest = FastifyRequest<{ Params: EventParams }>;

const TENANT_ID = /^ten_[0-9a-hjkmnp-tv-z]{20}$/;
const QUEUE_NAME = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;

/** Admission decides whether a request is accepted. If it isn't, the answer is sent from here. */
export interface Admission {
  /**
   * Returns true if both parameters are well formed. Otherwise answers 404, or 400 in case the Host header is missing.
   * The store is not called.
   */
  readonly checkPath: (request: EventRequest, reply: FastifyReply, startedMs: number) => boolean;
  /**
   * Checks the key and then the queue, answering 401, 503, 404, or 409 in this order. The key comes first so that
   * callers without one can't find out which queues exist. Once both checks have passed, `proceed` is called with the
   * queue and whether it was read for this request.
   */
  readonly admit: (
    request: EventRequest,
    reply: FastifyReply,
    startedMs: number,
    proceed: (known: KnownQueue, fresh: boolean) => void,
  ) => void;
  /** Only checks the key. Used by routes without a queue. Answers 401 or 503 on failure. */
  readonly admitKey: (request: EventRequest, reply: FastifyReply, startedMs: number, proceed: () => void) => void;
}

export function createAdmission(options: {
  keys: KeyChecks;
  queues: QueueCache;
  answers: Answers;
  /** Answers a request after its handler has thrown an error. */
  onError: (reply: FastifyReply, startedMs: number, error: unknown) => void;
}): Admission {
  const { keys, queues, answers, onError } = options;

  async function ask(
    request: EventRequest,
    reply: FastifyReply,
    startedMs: number,
    sha256: string,
    proceed: (known: KnownQueue, fresh: boolean) => void,
  ): Promise<void> {
    const { tenant, queue } = request.params;
    if (!(await checkKey(tenant, reply, startedMs, sha256))) return;
    const known = await queues.read(tenant, queue);
    if (known === 'unavailable') return answers.sendProblem(reply, startedMs, 'unavailable');
    if (known === null) return answers.sendProblem(reply, startedMs, 'unknown_queue');
    if (known.config.state === 'closing') return answers.sendProblem(reply, startedMs, 'stream_closing');
    proceed(known, true);
  }

  /** Returns true if the key is valid, and sends the answer otherwise. */
  async function checkKey(tenant: string, reply: FastifyReply, startedMs: number, sha256: string): Promise<boolean> {
    const valid = keys.isKnown(tenant, sha256) || (await keys.check(tenant, sha256));
    if (valid === 'unavailable') answers.sendProblem(reply, startedMs, 'unavailable');
    else if (!valid) refuseKey(reply, startedMs, 'invalid_token');
    return valid === true;
  }

  function refuseKey(reply: FastifyReply, startedMs: number, error?: 'invalid_token'): void {
    // The challenge must not include an error code when the request has no credentials (RFC 6750, 3.1).
    const challenge = `Bearer realm="sluice"${error === undefined ? '' : `, error="${error}"`}`;
    answers.sendProblem(reply, startedMs, 'unauthenticated', { headers: { 'www-authenticate': challenge } });
  }

  return {
    checkPath(request, reply, startedMs) {
      const { tenant, queue } = request.params;
      // Required by RFC 9112, 3.2. Node could do this for us, but it would answer without a problem document.
      if (request.headers.host === undefined && request.raw.httpVersionMinor === 1) {
        answers.sendProblem(reply, startedMs, 'malformed_request', { detail: 'HTTP/1.1 requires a Host header.' });
        return false;
      }
      if (!TENANT_ID.test(tenant)) {
        const detail =
          'The tenant in the path is not a valid workspace id. An id consists of "ten_" and 20 lowercase characters.';
        answers.sendProblem(reply, startedMs, 'not_found', { detail });
        return false;
      }
      if (!QUEUE_NAME.test(queue)) {
        const detail = 'The queue in the path is not valid. Names have at most 63 lowercase letters, digits and "-".';
        answers.sendProblem(reply, startedMs, 'unknown_queue', { detail });
        return false;
      }
      if (queryPieces(request.raw.url ?? '') === undefined) {
        const detail = `The query contains more than ${MOST_PARAMETERS} parameters. Send the event without them.`;
        answers.sendProblem(reply, startedMs, 'malformed_request', { detail });
        return false;
      }
      return true;
    },
    admit(request, reply, startedMs, proceed) {
      const key = readIngressKey(request.headers);
      if (key === undefined) return refuseKey(reply, startedMs);
      const { tenant, queue } = request.params;
      const sha256 = hashIngressKey(key);
      if (keys.isKnown(tenant, sha256)) {
        const known = queues.peek(tenant, queue);
        if (known !== undefined) return proceed(known, false);
      }
      ask(request, reply, startedMs, sha256, proceed).catch((error: unknown) => onError(reply, startedMs, error));
    },
    admitKey(request, reply, startedMs, proceed) {
      const key = readIngressKey(request.headers);
      if (key === undefined) return refuseKey(reply, startedMs);
      checkKey(request.params.tenant, reply, startedMs, hashIngressKey(key)).then(
        valid => {
          if (valid) proceed();
        },
        (error: unknown) => onError(reply, startedMs, error),
      );
    },
  };
}
