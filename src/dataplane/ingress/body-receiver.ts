import { faultOfContentType } from '../../core/events/context-headers-cloudevent.ts';
import { PROBLEMS } from '../../core/problems/problems.ts';
import { faultOfCodings } from '../../http/codings.ts';
import type { Admission } from './admission.ts';
import type { Answers } from './answers.ts';
import type { EventReply, EventRequest } from './event-request.ts';
import type { MemoryRefusal } from './memory/memory-stop.ts';
import { ITEM_OVERHEAD_BYTES } from './queue-batches.ts';
import type { KnownQueue } from './queue-cache.ts';
import { type ByteBudget, type Holding, readRequestBody } from './request-body.ts';

const MIB = 1024 * 1024;
const inMib = (bytes: number) => `${(bytes / MIB).toFixed(1)} MiB`;

/** Sent when Redis is almost full. We add a detail here because the problem title describes the more common reason. */
const NEARLY_FULL = {
  detail:
    'The store is almost full and does not accept new events until memory is available. Send the event again with the same id after the number of seconds in Retry-After.',
  // Longer than the delay for too many requests, since it takes more time for memory to become available.
  headers: { 'retry-after': '10' },
};

function sendMemoryRefusal(answers: Answers, reply: EventReply, startedMs: number, refusal: MemoryRefusal): void {
  if (refusal === 'full') return answers.sendProblem(reply, startedMs, 'overloaded', NEARLY_FULL);
  const { storedBytes, shareBytes } = refusal;
  const detail = `The store is filling up, and the account stores ${inMib(storedBytes)} of it. Its share is ${inMib(shareBytes)}. ${PROBLEMS.storage_pressure.remedy}`;
  answers.sendProblem(reply, startedMs, 'storage_pressure', { detail });
}

/**
 * Reads the body of a request which has been admitted. If this fails, the response is 413, 429, or 503. If the content
 * type is not supported, the body is compressed, or there is a transfer coding other than `chunked`, it is 415.
 *
 * @param onBody called with the body and the bytes of the budget that it must release
 */
export type ReceiveBody = (
  request: EventRequest,
  reply: EventReply,
  startedMs: number,
  known: KnownQueue,
  onBody: (body: Buffer, holding: Holding) => void,
) => void;

export function createBodyReceiver(options: {
  /** Returns the reason why an event of this stream should not be accepted by the store. */
  readonly refusalOf: (request: EventRequest, known: KnownQueue) => MemoryRefusal | undefined;
  readonly admission: Pick<Admission, 'chargeBody'>;
  readonly budget: ByteBudget;
  readonly answers: Answers;
  readonly bodyBytes: number;
}): ReceiveBody {
  const { refusalOf, admission, budget, answers, bodyBytes } = options;
  return (request, reply, startedMs, known, onBody) => {
    const { headers } = request;
    // The sender has disconnected while its key or its queue was read. No event of this request will be emitted
    // anymore.
    if (request.raw.destroyed) return answers.abandon(startedMs);
    const detail = faultOfContentType(headers['content-type']);
    const fault = detail === undefined ? faultOfCodings(headers) : { detail };
    if (fault !== undefined) return answers.sendProblem(reply, startedMs, 'unsupported_media_type', fault);
    const refusal = refusalOf(request, known);
    if (refusal !== undefined) return sendMemoryRefusal(answers, reply, startedMs, refusal);
    const holding = budget.open(request.params);
    if (!holding.take(ITEM_OVERHEAD_BYTES)) return answers.sendProblem(reply, startedMs, 'overloaded');
    readRequestBody(request.raw, { bodyBytes, holding }, result => {
      if (typeof result !== 'string') {
        if (admission.chargeBody(request, reply, startedMs, known, result.length)) onBody(result, holding);
        else holding.release();
        return;
      }
      holding.release();
      if (result === 'aborted') answers.abandon(startedMs);
      else answers.sendProblem(reply, startedMs, result === 'too_large' ? 'body_too_large' : 'overloaded');
    });
  };
}
