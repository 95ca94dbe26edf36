import type { FastifyReply } from 'fastify';
import { PROBLEM_CONTENT_TYPE, type ProblemError, problem } from '../../core/problems/problem.ts';
import { PROBLEMS, type ProblemCode } from '../../core/problems/problems.ts';
import type { IngressMetrics } from './ingress-metrics.ts';

/** What a problem says beyond its code. */
export interface ProblemDetails {
  readonly detail?: string;
  readonly errors?: readonly ProblemError[];
  readonly headers?: Readonly<Record<string, string>>;
}

/** The answers of ingress. `startedMs` is the monotonic time (performance.now()) at which the request was taken up. */
export interface Answers {
  readonly sendAccepted: (
    reply: FastifyReply,
    startedMs: number,
    id: string,
    duplicate: boolean,
    groupKey: string | undefined,
  ) => void;
  readonly sendProblem: (reply: FastifyReply, startedMs: number, code: ProblemCode, details?: ProblemDetails) => void;
  /** Any other success. */
  readonly sendJson: (reply: FastifyReply, startedMs: number, status: number, document: object) => void;
  /** The sender is gone; nothing can be sent, it is only counted. */
  readonly abandon: (startedMs: number) => void;
}

/** What a 503 asks for: long enough for a failover to be under way, short enough for a restart to go unnoticed. */
const RETRY_AFTER_SECONDS: Partial<Record<ProblemCode, string>> = {
  unavailable: '2',
  overloaded: '1',
  queue_full: '30',
};

/** `isClosing`: from then on each answer asks the sender to take its next request elsewhere. */
export function createAnswers(metrics: Pick<IngressMetrics, 'countRequest'>, isClosing: () => boolean): Answers {
  return {
    sendAccepted(reply, startedMs, id, duplicate, groupKey) {
      metrics.countRequest(202, performance.now() - startedMs);
      // Straight to Node's response: there is nothing to serialize and no hook to run, and this is every event's path.
      const body = `{"id":${JSON.stringify(id)},"duplicate":${duplicate},"groupKey":${JSON.stringify(groupKey ?? null)}}`;
      reply.hijack();
      if (isClosing()) reply.raw.setHeader('connection', 'close');
      const length = Buffer.byteLength(body);
      reply.raw.writeHead(202, { 'content-type': 'application/json; charset=utf-8', 'content-length': length });
      reply.raw.end(body);
    },
    sendProblem(reply, startedMs, code, details = {}) {
      const { status } = PROBLEMS[code];
      metrics.countRequest(status, performance.now() - startedMs);
      const retryAfter = RETRY_AFTER_SECONDS[code];
      if (retryAfter !== undefined) reply.header('retry-after', retryAfter);
      if (isClosing()) reply.header('connection', 'close');
      if (details.headers !== undefined) reply.headers(details.headers);
      // As bytes: to a JSON string Fastify would add a charset, which the media type does not have (RFC 9457, 6.1).
      const document = Buffer.from(JSON.stringify(problem(code, details.detail, details.errors)));
      reply
        .code(status)
        .header('content-type', PROBLEM_CONTENT_TYPE)
        .header('cache-control', 'no-store')
        .send(document);
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
