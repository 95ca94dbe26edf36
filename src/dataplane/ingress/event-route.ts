import { extractContext } from '../../core/events/context-headers.ts';
import { PROBLEMS } from '../../core/problems/problems.ts';
import type { RefusalFacts } from '../../http/refusal.ts';
import type { Admission } from './admission.ts';
import type { Answers } from './answers.ts';
import type { Batches } from './batches.ts';
import { createBodyReceiver } from './body-receiver.ts';
import type { EventReply, EventRequest } from './event-request.ts';
import { createIngestItem } from './ingest-item.ts';
import type { IngressMetrics } from './ingress-metrics.ts';
import type { IngressLimits } from './limits.ts';
import type { MemoryStop } from './memory/memory-stop.ts';
import type { KnownQueue, QueueCache } from './queue-cache.ts';
import type { ByteBudget, Holding } from './request-body.ts';
import { findSandboxParameter } from './sandbox-parameters.ts';
import type { IngestAnswer, IngestItem, StorageUse } from './store.ts';

/** Request with a complete body. When the response is sent, `holding` is released. */
interface Arrival {
  readonly request: EventRequest;
  readonly reply: EventReply;
  readonly startedMs: number;
  readonly body: Buffer;
  readonly holding: Holding;
  retried: boolean;
}

/**
 * Creates the handler that is used for `POST /events/{tenant}/{queue}`. Checks are made in this order: path (404),
 * sandbox parameters (400), key (401), queue (404, 409), content type (415), store memory (429, 503), size (413),
 * context (400, 422), and finally the store. The response is only 202 `{id, duplicate, groupKey}` if the event was
 * acknowledged by the store. We use callbacks here, because creating a promise for every step would cost more than the
 * step itself.
 */
export function createEventRoute(options: {
  admission: Admission;
  queues: QueueCache;
  batches: Batches;
  memory: Pick<MemoryStop, 'refusalOf'>;
  budget: ByteBudget;
  answers: Answers;
  metrics: IngressMetrics;
  limits: IngressLimits;
  onError: (reply: EventReply, startedMs: number, error: unknown) => void;
}): (request: EventRequest, reply: EventReply) => void {
  const { admission, queues, batches, memory, budget, answers, metrics, limits, onError } = options;
  const receiveBody = createBodyReceiver({ refusalOf, admission, budget, answers, bodyBytes: limits.bodyBytes });

  function refusalOf(request: EventRequest, { config: { payer, bytes } }: KnownQueue) {
    const { tenant, queue } = request.params;
    const refusal = memory.refusalOf({ tenant, queue, payer, bytes });
    if (refusal !== undefined) metrics.countMemoryRefusal(refusal === 'full' ? 'full' : 'share');
    return refusal;
  }

  function handleEvent(request: EventRequest, reply: EventReply): void {
    const startedMs = performance.now();
    if (!admission.checkPath(request, reply, startedMs)) return;
    const parameter = findSandboxParameter(request.raw.url ?? '');
    if (parameter !== undefined) {
      const errors = [{ parameter, detail: 'can only be used with the sandbox route' }];
      answers.sendProblem(reply, startedMs, 'sandbox_parameter', { errors });
      return;
    }
    admission.admit(request, reply, startedMs, (known, fresh) => receive(request, reply, startedMs, known, fresh));
  }

  function receive(
    request: EventRequest,
    reply: EventReply,
    startedMs: number,
    known: KnownQueue,
    fresh: boolean,
  ): void {
    const { tenant, queue } = request.params;
    if (batches.isSilent(tenant, queue)) return answers.sendProblem(reply, startedMs, 'unavailable');
    receiveBody(request, reply, startedMs, known, (body, holding) => {
      const arrival: Arrival = { request, reply, startedMs, body, holding, retried: false };
      guarded(arrival, () => decide(arrival, known, fresh));
    });
  }

  function decide(arrival: Arrival, known: KnownQueue, fresh: boolean): void {
    const { request, reply, startedMs, body } = arrival;
    const { headers, rawHeaders } = request.raw;
    const context = extractContext(known.rules, { headers, rawHeaders, body });
    if ('code' in context) {
      // The cached configuration could predate a change already confirmed to the sender. Read it from the store before
      // refusing the event.
      if (!fresh) return decideAgain(arrival);
      arrival.holding.release();
      return answers.sendProblem(reply, startedMs, context.code, context);
    }
    const item = createIngestItem(context.id, context, headers, body);
    const { tenant, queue } = request.params;
    const { payer } = known.config;
    const refused = batches.submit(tenant, queue, known.config, item, answer => settle(arrival, item, answer, payer));
    if (refused === undefined) return;
    arrival.holding.release();
    answers.sendProblem(reply, startedMs, refused);
  }

  function settle(arrival: Arrival, item: IngestItem, answered: IngestAnswer, payer: string): void {
    const { reply, startedMs } = arrival;
    const { answer } = answered;
    switch (answer) {
      case 'OK':
      case 'DUP':
        metrics.countEvent(
          answer === 'DUP' ? 'duplicate' : item.groupKey === undefined ? 'missing_group_key' : 'accepted',
        );
        arrival.holding.release();
        answers.sendAccepted(reply, startedMs, answered.id, answer === 'DUP', item.groupKey);
        return;
      case 'STALE':
      case 'CLOSED':
      case 'GONE':
        metrics.countEvent(answer === 'STALE' ? 'stale' : answer === 'CLOSED' ? 'closed' : 'gone');
        if (!arrival.retried) {
          arrival.retried = true;
          decideAgain(arrival);
          return;
        }
        arrival.holding.release();
        answers.sendProblem(reply, startedMs, PROBLEM_OF[answer]);
        return;
      case 'LIMIT':
        metrics.countEvent('limit');
        arrival.holding.release();
        answers.sendProblem(reply, startedMs, 'storage_limit', factsOfLimit(answered.use, payer));
        return;
      case 'FULL':
      case 'UNAVAILABLE':
        metrics.countEvent(answer === 'FULL' ? 'full' : 'unavailable');
        arrival.holding.release();
        answers.sendProblem(reply, startedMs, PROBLEM_OF[answer]);
        return;
      case 'RESERVED':
        metrics.countEvent('reserved');
        arrival.holding.release();
        answers.sendProblem(reply, startedMs, 'invalid_context', { errors: [RESERVED_ID] });
        return;
      default:
        answer satisfies never;
    }
  }

  /** Reads the queue from the store and decides using the new configuration. */
  function decideAgain(arrival: Arrival): void {
    const { request, reply, startedMs } = arrival;
    const { tenant, queue } = request.params;
    queues.read(tenant, queue).then(
      known =>
        guarded(arrival, () => {
          if (known !== null && known !== 'unavailable' && known.config.state === 'open') {
            return decide(arrival, known, true);
          }
          arrival.holding.release();
          const code = known === null ? 'unknown_queue' : known === 'unavailable' ? 'unavailable' : 'stream_closing';
          answers.sendProblem(reply, startedMs, code);
        }),
      (error: unknown) => {
        arrival.holding.release();
        onError(reply, startedMs, error);
      },
    );
  }

  function guarded(arrival: Arrival, step: () => void): void {
    try {
      step();
    } catch (error) {
      arrival.holding.release();
      onError(arrival.reply, arrival.startedMs, error);
    }
  }

  return handleEvent;
}

/** Problem to send when the second attempt gave the same result as the first. */
const PROBLEM_OF = {
  STALE: 'unavailable',
  CLOSED: 'stream_closing',
  GONE: 'unknown_queue',
  FULL: 'queue_full',
  UNAVAILABLE: 'unavailable',
} as const;

/**
 * Returns the details of a 429 `storage_limit`, including the limit of the account, its usage, and the bytes that the
 * event needs.
 */
function factsOfLimit(use: StorageUse | undefined, account: string): RefusalFacts {
  if (use === undefined) return {};
  const { limitBytes, usedBytes, neededBytes } = use;
  const used = usedBytes === undefined ? '' : `, and ${usedBytes} are in use or reserved by its streams`;
  const why = `The limit of account ${account} is ${limitBytes} bytes${used}; this event needs ${neededBytes}.`;
  return { detail: `${why} ${PROBLEMS.storage_limit.remedy}` };
}

/** The error to use for an event id that is, or could become, the generated id of another event. */
const RESERVED_ID = {
  detail:
    'the event id has the form of the ids that ingress generates for this stream. No event of the stream has this id. To use a generated id, omit it',
};
