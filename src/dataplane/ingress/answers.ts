import type { FastifyReply } from 'fastify';
import { PROBLEMS, type ProblemCode } from '../../core/problems/problems.ts';
import { sendProblem } from '../../http/problem-answers.ts';
import type { RefusalFacts } from '../../http/refusal.ts';
import type { IngressMetrics } from './ingress-metrics.ts';

/**
 * Sends all responses of ingress. `startedMs` is the monotonic time, as returned by performance.now(), when we started
 * to handle the request.
 */
export interface Answers {
  readonly sendAccepted: (
    reply: FastifyReply,
    startedMs: number,
    id: string,
    duplicate: boolean,
    groupKey: string | undefined,
  ) => void;
  readonly sendProblem: (reply: FastifyReply, startedMs: number, code: ProblemCode, facts?: RefusalFacts) => void;
  /** Sends any other response that is successful. */
  readonly sendJson: (reply: FastifyReply, startedMs: number, status: number, document: object) => void;
  /** Counts a request if its sender has disconnected. In this case, it is not possible to send a response. */
  readonly abandon: (startedMs: number) => void;
}

/**
 * Creates the functions that send responses. Once `isClosing` returns true, senders are asked to use a new connection
 * for their next request.
 */
export function createAnswers(metrics: Pick<IngressMetrics, 'countRequest'>, isClosing: () => boolean): Answers {
  return {
    sendAccepted(reply, startedMs, id, duplicate, groupKey) {
      metrics.countRequest(202, performance.now() - startedMs);
      // Every event goes through here, so write to Node's response directly. There's nothing to serialize and no hooks
      // to run.
      const body = `{"id":${JSON.stringify(id)},"duplicate":${duplicate},"groupKey":${JSON.stringify(groupKey ?? null)}}`;
      reply.hijack();
      if (isClosing()) reply.raw.setHeader('connection', 'close');
      const length = Buffer.byteLength(body);
      reply.raw.writeHead(202, { 'content-type': 'application/json; charset=utf-8', 'content-length': length });
      reply.raw.end(body);
    },
    sendProblem(reply, startedMs, code, facts) {
      metrics.countRequest(PROBLEMS[code].status, performance.now() - startedMs);
      if (isClosing()) reply.header('connection', 'close');
      sendProblem(reply, code, facts);
    },
    sendJson(reply, startedMs, status, document) {
      metrics.countRequest(status, performance.now() - startedMs);
      if (isClosing()) reply.header('connection', 'close');
      reply.code(status).header('cache-control', 'no-store').type('application/json; charset=utf-8');
      reply.send(Buffer.from(JSON.stringify(document)));
    },
    abandon: startedMs => metrics.countRequest(499, performance.now() - startedMs),
  };
}
