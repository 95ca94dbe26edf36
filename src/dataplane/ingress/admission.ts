import type { Socket } from 'node:net';
import { hashIngressKey } from '../../core/ids/ingress-key.ts';
import { MOST_PARAMETERS, queryPieces } from '../../http/query-pieces.ts';
import type { RefusalFacts } from '../../http/refusal.ts';
import type { Answers } from './answers.ts';
import type { EventReply, EventRequest, KeyedRequest } from './event-request.ts';
import { readIngressKey } from './ingress-key.ts';
import type { KeyChecks, KeyStanding } from './key-checks.ts';
import type { IngressLimits } from './limits.ts';
import type { KnownQueue, QueueCache } from './queue-cache.ts';
import { pointsOf, type SenderLimits } from './sender-limits.ts';

const TENANT_ID = /^ten_[0-9a-hjkmnp-tv-z]{20}$/;
const QUEUE_NAME = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;

/** Admission decides whether a request is accepted. If it isn't, the response is sent from here. */
export interface Admission {
  /**
   * Returns true if both parameters are well formed. If they are not, responds with 404, or with 400 if the Host header
   * is missing. The store is not called.
   */
  readonly checkPath: (request: EventRequest, reply: EventReply, startedMs: number) => boolean;
  /**
   * Checks the address, the key, and then the queue, and responds with 429, 401, 503, 429, 404, or 409 in this order.
   * The key comes before the queue so that callers without one can't find out which queues exist. The limit of the
   * account comes last (429), because it is read with the queue. Once all checks have passed, `proceed` is called with
   * the queue, and with true if the queue was read for this request.
   */
  readonly admit: (
    request: EventRequest,
    reply: EventReply,
    startedMs: number,
    proceed: (known: KnownQueue, fresh: boolean) => void,
  ) => void;
  /**
   * Takes the points of a body whose size was not announced, except for the one that `admit` has taken. Returns false
   * after responding with 429 if one of the limits has too few left.
   */
  readonly chargeBody: (
    request: EventRequest,
    reply: EventReply,
    startedMs: number,
    known: KnownQueue,
    bytes: number,
  ) => boolean;
  /** Only checks the key. Used by routes without a queue. Responds with 429, 401, or 503 on failure. */
  readonly admitKey: (request: EventRequest, reply: EventReply, startedMs: number, proceed: () => void) => void;
}

export function createAdmission(options: {
  senderLimits: SenderLimits;
  keys: KeyChecks;
  queues: QueueCache;
  answers: Answers;
  limits: Pick<IngressLimits, 'bodyBytes'>;
  /** Responds to a request after its handler has thrown an error. */
  onError: (reply: EventReply, startedMs: number, error: unknown) => void;
}): Admission {
  const { senderLimits, keys, queues, answers, limits, onError } = options;

  /** Points of a request. Bodies that are too large, or whose size is not announced, cost a single one at first. */
  function costOf({ headers }: KeyedRequest): number {
    const bytes = Number(headers['content-length'] ?? 0);
    return bytes > limits.bodyBytes ? 1 : pointsOf(bytes);
  }

  /**
   * Returns true if the key may be valid. Responds with 429 if the address has no points left, and 401 if there is no
   * key or a wrong one.
   *
   * @param standing undefined without a key
   */
  function enter(request: KeyedRequest, reply: EventReply, startedMs: number, standing?: KeyStanding): boolean {
    const pass = standing === 'unknown' ? senderLimits.takeForLookup : senderLimits.takeForAddress;
    if (!letIn(reply, startedMs, pass(request.raw, costOf(request)))) return false;
    if (standing !== undefined && standing !== 'wrong') return true;
    refuseKey(reply, startedMs, standing === undefined ? undefined : 'invalid_token');
    return false;
  }

  /** Returns true unless there are facts of a refusal, and sends these otherwise. */
  function letIn(reply: EventReply, startedMs: number, refused: RefusalFacts | undefined): boolean {
    if (refused !== undefined) answers.sendProblem(reply, startedMs, 'rate_limited', refused);
    return refused === undefined;
  }

  /** Returns true if the queue's account has points left, and sends the response otherwise. */
  function hasPoints(request: KeyedRequest, reply: EventReply, startedMs: number, { config }: KnownQueue): boolean {
    const refused = senderLimits.takeForAccount(config.payer, config.eventsPerSecond, costOf(request));
    return letIn(reply, startedMs, refused);
  }

  async function ask(
    request: EventRequest,
    reply: EventReply,
    startedMs: number,
    name: string,
    standing: KeyStanding,
    proceed: (known: KnownQueue, fresh: boolean) => void,
  ): Promise<void> {
    if (await checkKey(request, reply, startedMs, name, standing)) await enterQueue(request, reply, startedMs, proceed);
  }

  /** Continues with the queue. If it has to be read from the store, the returned promise resolves afterwards. */
  function enterQueue(
    request: EventRequest,
    reply: EventReply,
    startedMs: number,
    proceed: (known: KnownQueue, fresh: boolean) => void,
  ): Promise<void> | undefined {
    const { tenant, queue } = request.params;
    const known = queues.peek(tenant, queue);
    if (known === undefined) return askForQueue(request, reply, startedMs, proceed);
    if (hasPoints(request, reply, startedMs, known)) proceed(known, false);
    return undefined;
  }

  async function askForQueue(
    request: EventRequest,
    reply: EventReply,
    startedMs: number,
    proceed: (known: KnownQueue, fresh: boolean) => void,
  ): Promise<void> {
    const { tenant, queue } = request.params;
    const known = await queues.read(tenant, queue);
    if (known === 'unavailable') return answers.sendProblem(reply, startedMs, 'unavailable');
    if (known === null) return answers.sendProblem(reply, startedMs, 'unknown_queue');
    if (known.config.state === 'closing') return answers.sendProblem(reply, startedMs, 'stream_closing');
    if (hasPoints(request, reply, startedMs, known)) proceed(known, true);
  }

  /** Returns true if the key is valid and has points left, and sends the response otherwise. */
  async function checkKey(
    request: KeyedRequest,
    reply: EventReply,
    startedMs: number,
    name: string,
    standing: KeyStanding,
  ): Promise<boolean> {
    const { tenant } = request.params;
    const valid = standing === 'valid' || (await keys.check(tenant, name));
    if (valid === false) {
      refuseKey(reply, startedMs, 'invalid_token');
      return false;
    }
    const cost = costOf(request);
    if (standing === 'unknown') senderLimits.refundLookup(request.raw, cost);
    if (valid === true) return letIn(reply, startedMs, senderLimits.takeForSender(name, tenant, cost));
    answers.sendProblem(reply, startedMs, 'unavailable');
    return false;
  }

  function refuseKey(reply: EventReply, startedMs: number, error?: 'invalid_token'): void {
    // The challenge must not include an error code when the request has no credentials (RFC 6750, 3.1).
    const challenge = `Bearer realm="sluice"${error === undefined ? '' : `, error="${error}"`}`;
    answers.sendProblem(reply, startedMs, 'unauthenticated', { headers: { 'www-authenticate': challenge } });
  }

  return {
    checkPath(request, reply, startedMs) {
      const { tenant, queue } = request.params;
      // Required by RFC 9112, 3.2. Node could do this for us, but it would respond without a problem document.
      if (request.headers.host === undefined && request.raw.httpVersionMinor === 1) {
        answers.sendProblem(reply, startedMs, 'malformed_request', { detail: 'HTTP/1.1 requires a Host header.' });
        return false;
      }
      if (!TENANT_ID.test(tenant)) {
        const detail =
          'The tenant in the path is not a valid workspace id. An id consists of "ten_" and 20 lowercase characters. Copy the path from status.ingressPath of the CatalogStream, or from ingressPath of the REST API.';
        answers.sendProblem(reply, startedMs, 'not_found', { detail });
        return false;
      }
      if (!QUEUE_NAME.test(queue)) {
        const detail =
          'The queue in the path is not valid. Use the key of the stream, not its id. It has at most 63 lowercase letters, digits and "-".';
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
      const name = nameOf(request);
      const standing = name === undefined ? undefined : keys.standingOf(name);
      if (!enter(request, reply, startedMs, standing) || name === undefined || standing === undefined) return;
      if (standing !== 'valid') {
        ask(request, reply, startedMs, name, standing, proceed).catch((error: unknown) =>
          onError(reply, startedMs, error),
        );
        return;
      }
      const { tenant } = request.params;
      if (!letIn(reply, startedMs, senderLimits.takeForSender(name, tenant, costOf(request)))) return;
      enterQueue(request, reply, startedMs, proceed)?.catch((error: unknown) => onError(reply, startedMs, error));
    },
    chargeBody(request, reply, startedMs, { config }, bytes) {
      const cost = request.headers['content-length'] === undefined ? pointsOf(bytes) : 1;
      if (cost === 1) return true;
      const refused =
        senderLimits.takeForAddress(request.raw, cost, 1) ??
        senderLimits.takeForSender(nameOf(request) ?? '', request.params.tenant, cost, 1) ??
        senderLimits.takeForAccount(config.payer, config.eventsPerSecond, cost, 1);
      return letIn(reply, startedMs, refused);
    },
    admitKey(request, reply, startedMs, proceed) {
      const name = nameOf(request);
      const standing = name === undefined ? undefined : keys.standingOf(name);
      if (!enter(request, reply, startedMs, standing) || name === undefined || standing === undefined) return;
      checkKey(request, reply, startedMs, name, standing).then(
        valid => {
          if (valid) proceed();
        },
        (error: unknown) => onError(reply, startedMs, error),
      );
    },
  };
}

/** The key of the last request of a connection, with its name. */
interface NamedKey {
  readonly tenant: string;
  readonly key: string;
  readonly name: string;
}

/** Senders use the same key for all requests of a connection, so it isn't hashed for each of them. */
const lastKeys = new WeakMap<Socket, NamedKey>();

/** Returns the name of a request's key in the cache of keys, or undefined if there is no key. */
function nameOf({ headers, params: { tenant }, raw: { socket } }: KeyedRequest): string | undefined {
  const key = readIngressKey(headers);
  if (key === undefined) return undefined;
  const last = lastKeys.get(socket);
  if (last?.key === key && last.tenant === tenant) return last.name;
  const name = tenant + hashIngressKey(key);
  lastKeys.set(socket, { tenant, key, name });
  return name;
}
