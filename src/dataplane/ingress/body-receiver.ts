import type { FastifyReply } from 'fastify';
import { faultOfContentType } from '../../core/events/context-headers-cloudevent.ts';
import type { EventRequest } from './admission.ts';
import type { Answers } from './answers.ts';
import { ITEM_OVERHEAD_BYTES } from './batches.ts';
import type { MemoryStop } from './memory-stop.ts';
import { type ByteBudget, readRequestBody } from './request-body.ts';

/**
 * The answer that is sent when Redis is almost full. It has a detail because the title of the problem describes the
 * more common reason.
 */
const NEARLY_FULL = {
  detail:
    'The store is almost full and does not accept new events until memory is available. Send the event again with the same id after the number of seconds in Retry-After.',
  // This delay is longer than the one for too many requests because it takes more time until memory becomes available.
  headers: { 'retry-after': '10' },
};

/**
 * Reads the body of an admitted request. Answers 413 or 503 if the body cannot be read, and 415 if the content type is
 * not supported.
 *
 * @param onBody is called with the body and the number of budget bytes that it must give back
 */
export type ReceiveBody = (
  request: EventRequest,
  reply: FastifyReply,
  startedMs: number,
  onBody: (body: Buffer, heldBytes: number) => void,
) => void;

export function createBodyReceiver(options: {
  readonly memory: Pick<MemoryStop, 'isFull'>;
  readonly budget: ByteBudget;
  readonly answers: Answers;
  readonly bodyBytes: number;
}): ReceiveBody {
  const { memory, budget, answers } = options;
  return (request, reply, startedMs, onBody) => {
    const detail = faultOfContentType(request.headers['content-type']);
    if (detail !== undefined) return answers.sendProblem(reply, startedMs, 'unsupported_media_type', { detail });
    if (memory.isFull()) return answers.sendProblem(reply, startedMs, 'overloaded', NEARLY_FULL);
    if (!budget.take(ITEM_OVERHEAD_BYTES)) return answers.sendProblem(reply, startedMs, 'overloaded');
    readRequestBody(request.raw, options, result => {
      if (typeof result !== 'string') return onBody(result, result.length + ITEM_OVERHEAD_BYTES);
      budget.give(ITEM_OVERHEAD_BYTES);
      if (result === 'aborted') answers.abandon(startedMs);
      else answers.sendProblem(reply, startedMs, result === 'too_large' ? 'body_too_large' : 'overloaded');
    });
  };
}
