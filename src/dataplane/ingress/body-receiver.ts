import type { FastifyReply } from 'fastify';
import type { EventRequest } from './admission.ts';
import type { Answers } from './answers.ts';
import { ITEM_OVERHEAD_BYTES } from './batches.ts';
import { type ByteBudget, readRequestBody } from './request-body.ts';

/**
 * Reads the body of a request that was admitted; answers where there is none (413, 503).
 *
 * @param onBody gets the body, and the bytes of the budget that are its own to give back
 */
export type ReceiveBody = (
  request: EventRequest,
  reply: FastifyReply,
  startedMs: number,
  onBody: (body: Buffer, heldBytes: number) => void,
) => void;

export function createBodyReceiver(options: {
  readonly budget: ByteBudget;
  readonly answers: Answers;
  readonly bodyBytes: number;
}): ReceiveBody {
  const { budget, answers } = options;
  return (request, reply, startedMs, onBody) => {
    if (!budget.take(ITEM_OVERHEAD_BYTES)) return answers.sendProblem(reply, startedMs, 'overloaded');
    readRequestBody(request.raw, options, result => {
      if (typeof result !== 'string') return onBody(result, result.length + ITEM_OVERHEAD_BYTES);
      budget.give(ITEM_OVERHEAD_BYTES);
      if (result === 'aborted') answers.abandon(startedMs);
      else answers.sendProblem(reply, startedMs, result === 'too_large' ? 'body_too_large' : 'overloaded');
    });
  };
}
