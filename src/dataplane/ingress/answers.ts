import type { IncomingMessage } from 'node:http';
import type { ProblemCode } from '../../core/problems/problems.ts';
import { problemAnswer } from '../../http/problem-answers.ts';
import type { RefusalFacts } from '../../http/refusal.ts';
import type { EventReply } from './event-request.ts';
import type { IngressMetrics } from './ingress-metrics.ts';

/**
 * Sends all responses of ingress. `startedMs` is the monotonic time, as returned by performance.now(), when we started
 * to handle the request.
 */
export interface Answers {
  readonly sendAccepted: (
    reply: EventReply,
    startedMs: number,
    id: string,
    duplicate: boolean,
    groupKey: string | undefined,
  ) => void;
  readonly sendProblem: (reply: EventReply, startedMs: number, code: ProblemCode, facts?: RefusalFacts) => void;
  /** Sends any other response that is successful. */
  readonly sendJson: (reply: EventReply, startedMs: number, status: number, document: object) => void;
  /** Counts a request if its sender has disconnected. In this case, it is not possible to send a response. */
  readonly abandon: (startedMs: number) => void;
}

/**
 * Creates the functions that send responses. If `endsConnection` returns true, the sender is asked to use a new
 * connection for its next request. Answers are written directly to the response of Node because there is nothing to
 * serialize and no hook to run.
 */
export function createAnswers(
  metrics: Pick<IngressMetrics, 'countRequest'>,
  endsConnection: (request: IncomingMessage) => boolean,
): Answers {
  function send(
    reply: EventReply,
    startedMs: number,
    { status, headers, body }: { status: number; headers: Readonly<Record<string, string>>; body: string | Buffer },
  ) {
    reply.hijack();
    const { raw } = reply;
    // The error occurred after the response.
    if (raw.headersSent) return;
    metrics.countRequest(status, performance.now() - startedMs);
    if (endsConnection(raw.req)) raw.setHeader('connection', 'close');
    raw.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) });
    raw.end(body);
  }

  return {
    sendAccepted(reply, startedMs, id, duplicate, groupKey) {
      const body = `{"id":${JSON.stringify(id)},"duplicate":${duplicate},"groupKey":${JSON.stringify(groupKey ?? null)}}`;
      const headers = { 'content-type': 'application/json; charset=utf-8' };
      send(reply, startedMs, { status: 202, headers, body });
    },
    sendProblem(reply, startedMs, code, facts) {
      const { status, headers, document } = problemAnswer(code, facts);
      send(reply, startedMs, { status, headers, body: document });
    },
    sendJson(reply, startedMs, status, document) {
      const headers = { 'cache-control': 'no-store', 'content-type': 'application/json; charset=utf-8' };
      send(reply, startedMs, { status, headers, body: JSON.stringify(document) });
    },
    abandon: startedMs => metrics.countRequest(499, performance.now() - startedMs),
  };
}
